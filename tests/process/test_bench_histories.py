"""Histories of real processes through kills, pauses and partitions."""

import re
import time

import pytest

from roundelay.bench.histories.member import KINDS
from roundelay.bench.histories.run import Group, Run, judge, perform, plan
from roundelay.check.verdict import Validity

pytestmark = [pytest.mark.process, pytest.mark.slow]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_what_clients_saw_could_have_been_shown_by_one_copy(tmp_path, kind, seed):
    outcome = perform(Run(kind, seed, 4.0), tmp_path / "run")
    verdict = outcome.judgement
    shown = "\n".join(map(str, verdict.witness))
    assert verdict.validity is Validity.OK, f"{verdict.validity}: {verdict.reason}\n{shown}"
    assert verdict.instances > 0  # How many there are depends on how busy the machine is.
    assert sum(outcome.counted.values())


def test_a_node_that_never_saw_a_majority_ends_when_it_is_told_to(tmp_path):
    """The others may have ended before it."""
    group = Group(Run("map", 9, 1.0), tmp_path)
    try:
        group.start("a")
        limit = time.monotonic() + 20
        while not (tmp_path / "a").exists():
            assert time.monotonic() < limit, "no journal"
            time.sleep(0.05)
        group.stop()
    finally:
        group.close()


def test_runs_are_planned_kind_by_kind():
    assert [(run.kind, run.seed) for run in plan(7, 1.0, 3)] == [
        *(("map", 3), ("counter", 3), ("lock", 3), ("queue", 3), ("own", 3)),
        *(("map", 4), ("counter", 4)),
    ]


def test_a_note_that_lies_is_found(tmp_path):
    """The judge reads what is on disk: with one reply changed it convicts."""
    outcome = perform(Run("counter", 5, 1.0), tmp_path / "run")
    assert outcome.judgement.validity is Validity.OK
    path = max((tmp_path / "run").glob("saw-*[0-9]"), key=lambda path: path.stat().st_size)
    lines = path.read_text().splitlines(True)
    place = max(n for n, line in enumerate(lines) if re.search(r'"reply": \d', line))
    before, reply, after = lines[place].partition('"reply": ')
    number, comma, rest = after.partition(",")
    lines[place] = f"{before}{reply}{int(number) - 5}{comma}{rest}"
    path.write_text("".join(lines))
    assert judge("counter", tmp_path / "run").validity is Validity.VIOLATED
