"""E5 of runs that are too large to be judged in one piece: what is asked of the layer below.

E5 consists of properties of the layer below the ordering. All but the last are judged there on
slices, as they are in the ordering. The last is O1r, which spans of what was sent and delivered in
that layer can prove (`proofs.causality`), if the others hold. D4s, by which a message is delivered
in the view in which it was sent, implies D4e, which the proof of O1r asks for.
"""

from collections.abc import Mapping, Sequence

from roundelay.check import Validity, Verdict
from roundelay.check.envelope import VIEW_SYNCHRONY
from roundelay.pipeline.proofs.causality import Implied
from roundelay.pipeline.properties import BELOW

PROVED = "O1r"
"""The property of the layer below that is not judged on slices."""

PARTS = tuple(BELOW + name for name in VIEW_SYNCHRONY if name != PROVED)
"""What is judged on slices."""


def put_together(judged: Mapping[str, Verdict], proved: Sequence[Implied]) -> Verdict:
    """The verdict on E5, from those on its parts and from what spans prove."""
    instances = 0
    for part in PARTS:
        verdict = judged.get(part)
        name = part.removeprefix(BELOW)
        if verdict is None:
            return _open(f"{name} of the layer below was not judged")
        if verdict.validity is Validity.VIOLATED:
            reason = f"{name} of the layer below: {verdict.reason}"
            return Verdict("E5", Validity.VIOLATED, verdict.instances, verdict.witness, reason)
        if verdict.validity is Validity.INCONCLUSIVE:
            return _open(f"{name} of the layer below: {verdict.reason}")
        instances += verdict.instances
    for property_, count, _ in proved:
        if property_ == PROVED:
            return Verdict("E5", Validity.OK, instances + count)
    return _open(
        f"spans do not prove {PROVED} of the layer below, and the run is too large for one piece"
    )


def _open(reason: str) -> Verdict:
    return Verdict("E5", Validity.INCONCLUSIVE, reason=reason)
