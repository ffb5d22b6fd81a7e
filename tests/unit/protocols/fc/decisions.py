"""Decisions of a group of five, as the figures of the paper have them: members from 1."""

from roundelay.protocols.fc.messages import ROOT, Dec, DecisionId, Epoch, Run

ALL = (1, 2, 3, 4, 5)


def decision(maker, number, ring=ALL, *, evolved=False, parent=ROOT, runs=(), counter=1, version=1):
    """A decision; what is not said is as if nothing had failed."""
    if isinstance(parent, Dec):
        parent = parent.id
    return Dec(
        maker - 1,
        tuple(Run(sender - 1, first, count) for sender, first, count in runs),
        number,
        version,
        tuple(member - 1 for member in ring),
        evolved,
        Epoch(counter, maker - 1 if evolved else 0),
        parent if number > 1 else ROOT,
        (0,) * 5,
        DecisionId(0, Epoch(1, 0), 0),
    )


def anew(maker, number, ring, **more):
    """A decision whose maker made the token anew."""
    return decision(maker, number, ring, evolved=True, counter=2, version=2, **more)
