"""A new generation of a log: what an operator writes to the disks of those that survived.

One of them, with the best log, gets a mark of the next generation behind its log, as if all that
survived had formed a view with that log; all get a standing that knows of this view and of no
other. Its only voter is that one, whose disk alone has the mark: no view without it is primary, or
the others could go on with their logs, and would lose what they confirm when it came. Those that
meet it adopt its log, since a greater generation is better than all of a smaller one, and vote from
then on.
"""

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import KeptLog, Mark, Place
from roundelay.membership.messages import SEQ_MAX, STEP, Primary
from roundelay.membership.primary import Standing
from roundelay.membership.storage import WALL_US_MAX, pack, unpack


def beginning(kept: KeptLog, place: Place, view: ViewId, survivors: tuple[NodeId, ...]) -> Mark:
    """The mark that begins the generation after that of a log which ends at `place`."""
    return Mark(
        term=view,
        base=place.length,
        voters=(view.rep,),
        members=survivors,
        sessions=(0,) * len(survivors),
        generation=kept.generation + 1,
        log=kept.log,
        lossy=True,
        opened=place.opened,
    )


def later_view(node: NodeId, place: Place, stored: bytes | None, wall_us: int) -> ViewId:
    """A view above all that this node has seen, and above those of others, if clocks do not differ
    by more than the time since the last view. `stored` is its stable storage."""
    known = [place.term.seq]
    found = None if stored is None else unpack(stored)
    if found is not None:
        seq, standing = found
        last = [standing.last] if standing.last is not None else []
        known += [seq, *(primary.id.seq for primary in (*last, *standing.attempts))]
    clock = min(wall_us, WALL_US_MAX)
    return ViewId(min(STEP * max(max(known) // STEP + 1, clock), SEQ_MAX), node)


def standing_of(stored: bytes | None, view: ViewId) -> bytes:
    """The stable storage of a node that survived, from what it was."""
    found = None if stored is None else unpack(stored)
    seq = max(0 if found is None else found[0], view.seq)
    return pack(seq, Standing(able=True, last=Primary(view, (view.rep,))))
