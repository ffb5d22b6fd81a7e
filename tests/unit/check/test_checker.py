"""When a verdict may count: the frame around the properties."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from roundelay.check import PROPERTIES, Profile, Standing, Validity, check, profile_of
from roundelay.check.profiles import Promise
from roundelay.check.property import Finding, Property
from roundelay.trace import mini, reader
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

FINE = "p!a q?a p.a q.a end{p,q}"
TWICE = "p!a q?a p.a q.a q.a end{p,q}"


def held(*names: str, envelope: tuple[str, ...] = (), optional: tuple[str, ...] = ()) -> Profile:
    entries = [
        Promise(name, Standing.OPTIONAL if name in optional else Standing.PROMISED)
        for name in (*names, *envelope)
    ]
    return Profile("test", tuple(entries), envelope)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch):
    """Puts a property of its own in place of another."""

    def put(name: str, finding: Finding | Exception) -> None:
        def judge(_model: object) -> Finding:
            if isinstance(finding, Exception):
                raise finding
            return finding

        monkeypatch.setitem(PROPERTIES, name, Property(name, "planted", judge))

    return put


def test_ok_and_in_order():
    manifest, rows = mini.parse(FINE)
    report = check(rows, manifest, profile=["D2", "T1", "D1"])
    assert [verdict.property for verdict in report.verdicts] == ["D2", "T1", "D1"]
    assert report.ok
    assert report.worst is Validity.OK
    assert not report.violated


def test_a_violation_is_not_ok():
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=["D1", "D2"])
    assert not report.ok
    assert report.worst is Validity.VIOLATED
    assert [verdict.property for verdict in report.violated] == ["D2"]


def test_an_optional_violation_is_reported_and_forgiven():
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=held("D1", "D2", optional=("D2",)))
    assert report.violated
    assert report.ok
    assert report.worst is Validity.OK


def test_vacuous_is_no_failure_and_no_pass():
    manifest, rows = mini.parse(FINE)
    report = check(rows, manifest, profile=["M1"])
    assert report.ok
    assert report.worst is Validity.VACUOUS


def test_problems_make_everything_inconclusive():
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=["T2", "D1", "D2"], problems=["a file is damaged"])
    assert report["T2"].validity is Validity.OK
    for name in ("D1", "D2"):
        assert report[name].validity is Validity.INCONCLUSIVE
        assert report[name].reason == "a file is damaged"
    assert not report.ok


def test_a_malformed_trace_makes_everything_inconclusive():
    manifest, rows = mini.parse(TWICE)
    del rows[1]
    report = check(rows, manifest, profile=["D1", "D2", "T1", "T2"])
    assert report["T1"].validity is Validity.VIOLATED
    assert report["T2"].validity is Validity.OK
    assert report["D2"].validity is Validity.INCONCLUSIVE
    assert report["D2"].reason == (
        "the trace is not well-formed: the log of q in incarnation 0 lacks row 0"
    )


def test_a_check_that_crashes_has_shown_nothing(plant):
    plant("D1", ZeroDivisionError("by zero"))
    manifest, rows = mini.parse(FINE)
    report = check(rows, manifest, profile=["D1", "D2"])
    assert report["D1"].validity is Validity.INCONCLUSIVE
    assert report["D1"].reason == "the check itself failed: ZeroDivisionError: by zero"
    assert report["D2"].validity is Validity.OK
    assert not report.ok


def test_a_crash_of_a_t_property_leaves_nothing_conclusive(plant):
    plant("T3", RuntimeError("oh"))
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=["T3", "D2"])
    assert report["D2"].validity is Validity.INCONCLUSIVE


def test_without_a_manifest_nothing_is_fine_but_violations_stay():
    _, rows = mini.parse(TWICE)
    report = check(rows, None, profile=["T1", "D1", "D2", "M1"])
    assert report["D2"].validity is Validity.VIOLATED
    assert report["M1"].validity is Validity.VACUOUS
    for name in ("T1", "D1"):
        assert report[name].validity is Validity.INCONCLUSIVE
        assert "no manifest: lost rows at the end would not be noticed" in report[name].reason
    assert report["D1"].instances == 3


def test_a_manifest_that_does_not_count_is_as_bad():
    manifest, rows = mini.parse(TWICE)
    report = check(rows, replace(manifest, rows=None), profile=["D1", "D2"])
    assert report["D2"].validity is Validity.VIOLATED
    assert report["D1"].validity is Validity.INCONCLUSIVE


@pytest.mark.parametrize("counted", [True, False])
def test_what_the_reader_says_of_a_missing_manifest_spares_violations(
    tmp_path: Path, counted: bool
):
    """A trace without counts is a lesser evil than one with holes, and the reader tells both."""
    manifest, rows = mini.parse(TWICE)
    path = tmp_path / "trace.jsonl"
    path.write_text("".join(json.dumps(line(row)) + "\n" for row in rows))
    if counted:
        text = replace(manifest, rows=None).to_json()
        (tmp_path / "manifest.json").write_text(text)
    trace = reader.read(tmp_path)
    assert trace.problems
    report = check(trace.rows, trace.manifest, profile=["D1", "D2"], problems=trace.problems)
    assert report["D2"].validity is Validity.VIOLATED
    assert report["D1"].validity is Validity.INCONCLUSIVE


def line(row: Row) -> dict[str, object]:
    return {name: v for name, v in row._asdict().items() if v is not None} | {"run": "mini"}


def test_a_real_hole_does_not_spare_them(tmp_path: Path):
    _, rows = mini.parse(TWICE)
    del rows[1]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(line(row)) + "\n" for row in rows))
    trace = reader.read(tmp_path)
    report = check(trace.rows, trace.manifest, profile=["D1", "D2"], problems=trace.problems)
    assert not report.violated
    assert {verdict.validity for verdict in report.verdicts} == {Validity.INCONCLUSIVE}


def test_outside_its_envelope_a_protocol_promised_nothing(plant):
    plant("E3", Finding(1, "p crashed"))
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=held("T1", "D1", "D2", envelope=("E3",)))
    assert report["T1"].validity is Validity.OK
    assert report["E3"].validity is Validity.VIOLATED
    for name in ("D1", "D2"):
        assert report[name].validity is Validity.OUTSIDE
        assert report[name].reason == "E3 does not hold: p crashed"
    assert not report.ok


def test_inside_its_envelope_it_is_held_to_them(plant):
    plant("E3", Finding(1))
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=held("D1", "D2", envelope=("E3",)))
    assert report["D2"].validity is Validity.VIOLATED


def test_a_violation_counts_only_if_the_envelope_is_known(plant):
    plant("E3", Finding(1, unknown="who knows"))
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=held("D1", "D2", envelope=("E3",)))
    assert report["D1"].validity is Validity.OK
    assert report["D2"].validity is Validity.INCONCLUSIVE
    assert "q delivers a twice" in report["D2"].reason


def test_a_total_order_is_not_asked_of_real_nodes():
    manifest, rows = mini.parse("p( p!a p.a p) q( q)")
    rows = [row._replace(gseq=None) for row in rows]
    report = check(rows, replace(manifest, protocol="totem"))
    assert report["K3"].validity is Validity.VACUOUS
    assert "total order" in report["K3"].reason
    assert check(rows, manifest, profile=["K3"])["K3"].validity is Validity.INCONCLUSIVE


def test_unknown_names_are_refused():
    manifest, rows = mini.parse(FINE)
    with pytest.raises(ValueError, match="there is no property 'D99'; choose from T1, T2"):
        check(rows, manifest, profile=["D1", "D99"])
    with pytest.raises(ValueError, match="does not say which protocol"):
        check(rows, manifest)
    with pytest.raises(
        ValueError, match="there is no protocol 'paxos'; choose one of allack, atop"
    ):
        check(rows, replace(manifest, protocol="paxos"))


def test_the_manifest_chooses_the_profile():
    manifest, rows = mini.parse(FINE)
    manifest = replace(manifest, protocol="dtp", rules="paper", resilience=1)
    assert check(rows, manifest).profile == profile_of(manifest)
    assert profile_of(manifest).name == "dtp paper static F=1"
    assert profile_of(Manifest("r", ("p",), "fifo", mode="views")).name == "fifo safe views"


def test_the_same_trace_gives_the_same_report():
    manifest, rows = mini.parse(TWICE)
    reports = [check(rows, manifest, profile=list(PROPERTIES)) for _ in range(2)]
    assert reports[0] == reports[1]


def test_progress_is_told():
    manifest, rows = mini.parse(FINE)
    calls: list[tuple[int, int]] = []
    check(rows, manifest, profile=["T1", "D1"], progress=lambda *at: calls.append(at))
    assert calls == [(1, 2), (2, 2)]
