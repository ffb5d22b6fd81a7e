"""Whether a trace is all there, as the check on Spark finds it from counts."""

import pytest
from tests.pipeline.test_live_judge import table

pytest.importorskip("pyspark")

from roundelay.check import Validity
from roundelay.pipeline.judge.completeness import gap_free, problems
from roundelay.pipeline.proofs.batch_facts import logs_of
from roundelay.pipeline.proofs.writer_logs import Log
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

LOG = Log(0, 7, 2, 0, 0, 0, ordered=False, unplaced=2, message_rows=0)
WHOLE = Manifest("run", ("a", "b"), rows={"0.7": 2})
CUT = Manifest("run", ("a", "b"), rows={"0.7": 2}, ended={"1.9": "as its file is lost"})


def test_a_trace_that_ends_early_is_said_to():
    assert problems([LOG], WHOLE, total=False) == []
    assert problems([LOG], CUT, total=False) == [
        "the trace of node b ends early, as its file is lost"
    ]


def test_nobody_can_say_that_all_of_it_is_there():
    assert gap_free([LOG], WHOLE).validity is Validity.OK
    verdict = gap_free([LOG], CUT)
    assert verdict.validity is Validity.INCONCLUSIVE
    assert verdict.reason == "the trace of node b ends early, as its file is lost"


def test_a_file_that_has_some_pieces_of_a_trace_lacks_no_rows():
    """Pieces are spread over tasks, each of which writes what it read into one file."""
    rows = [Row("token", 0, 7, number, tag="acquire", lam=number) for number in range(20)]
    files = [rows[0:5] + rows[10:15], rows[5:10] + rows[15:20]]
    (log,) = logs_of([table(file) for file in files])
    assert (log.rows, log.missing, log.repeated) == (20, 0, 0)
    (log,) = logs_of([table(file) for file in (rows[0:5] + rows[10:15], rows[15:20] + rows[14:15])])
    assert (log.rows, log.missing, log.first_missing, log.repeated) == (16, 5, 5, 1)
