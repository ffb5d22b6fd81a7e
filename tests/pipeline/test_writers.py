"""Whether a trace is all there, as the check on Spark finds it from counts."""

from roundelay.check import Validity
from roundelay.pipeline.judge.completeness import gap_free, problems
from roundelay.pipeline.proofs.writer_logs import Log
from roundelay.trace.manifest import Manifest

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
