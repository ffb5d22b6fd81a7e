"""Every line of corpus.txt is judged as it says."""

import pytest

from roundelay.check import PROPERTIES, Validity, check, profile

from .trial import Case, corpus

CASES = list(corpus())
VIOLATING = [case for case in CASES if not case.clean]
CLEAN = [case for case in CASES if case.clean]


def test_the_corpus_is_complete():
    assert len(VIOLATING) == 133
    assert len(CLEAN) == 11


@pytest.mark.parametrize("case", VIOLATING, ids=str)
def test_a_violating_trace_is_convicted(case: Case):
    manifest, rows = case.trace()
    report = check(rows, manifest, profile=list(PROPERTIES))
    verdict = report[case.head[0]]
    assert verdict in report.violated, verdict
    assert verdict.reason
    assert verdict.witness
    assert verdict.instances >= 1


@pytest.mark.parametrize("case", CLEAN, ids=str)
def test_a_clean_trace_trips_nothing_in_its_profile(case: Case):
    manifest, rows = case.trace()
    _, protocol, rules, mode = case.head[:4]
    log = "log" in case.head
    held = profile(protocol, rules, case.resilience, mode, len(manifest.nodes), log=log)
    report = check(rows, manifest, profile=held)
    bad = {v.property for v in report.verdicts if v.validity not in (Validity.OK, Validity.VACUOUS)}
    assert bad == set(case.exceptions), [v for v in report.verdicts if v.property in bad]
    assert any(verdict.validity is Validity.OK for verdict in report.verdicts)


def test_the_clean_traces_of_logs_put_all_to_the_test():
    shown: set[str] = set()
    for case in CLEAN:
        if "log" in case.head:
            manifest, rows = case.trace()
            held = profile("totem", mode="views", nodes=len(manifest.nodes), log=True)
            verdicts = check(rows, manifest, profile=held).verdicts
            shown |= {v.property for v in verdicts if v.validity is Validity.OK}
    assert {*(f"J{n}" for n in range(1, 13)), "L8", "L9"} <= shown


@pytest.mark.parametrize(
    "case", [case for case in VIOLATING if case.head[0][0] in "MDOJH"], ids=str
)
def test_a_witness_alone_convicts(case: Case):
    """Nothing that matters was left out of it, and the trace may be forgotten."""
    manifest, rows = case.trace()
    name = case.head[0]
    verdict = check(rows, manifest, profile=[name])[name]
    again = check(verdict.witness, manifest, profile=[name])[name]
    assert again.validity is Validity.VIOLATED, (verdict, again)
    assert len(again.witness) <= len(verdict.witness) <= len(rows)
