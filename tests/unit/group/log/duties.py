"""What must be on a node's disk before it says something: asked at every frame that leaves.

The table of the specification ("before this leaves the node, this is on its disk"), stated over
what is on the disk of the harness at that moment.
"""

from typing import Any

from roundelay.core.effects import Send
from roundelay.core.ids import ViewId
from roundelay.core.log import LogRecord, Mark, Place
from roundelay.group.body import is_log_body
from roundelay.group.log.messages import Ack, Offer, Ready, Reply
from roundelay.membership.messages import Commit, RingToken
from roundelay.membership.primary import Standing
from roundelay.membership.storage import unpack
from roundelay.protocols.totem import Data


class BrokenDutyError(AssertionError):
    """A node said something that its disk does not hold."""


def check_duties(member: Any, effect: Send[Any]) -> None:
    """BrokenDutyError if this frame must not leave now."""
    message, view, disk = effect.message, effect.view, member.disk
    if isinstance(message, Offer):
        if member.offered != (view, message.place):  # It is told again also after it was cut.
            places = all_places(disk.records)
            require(message.place in places, f"offers {message.place}, and has not stored it")
            member.offered = view, message.place
    elif isinstance(message, Ready):
        marks = [record.term for record in disk.records if isinstance(record, Mark)]
        require(view in marks, "says that it is ready, and its mark is not stored")
    elif isinstance(message, Ack):
        place = Place(view or ViewId(0, ""), message.length, message.opened)
        require(place in all_places(disk.records), f"acknowledges {place}, which is not stored")
        require_opened(disk.standing, view, "acknowledges")
    elif isinstance(message, Data):
        packet = message.packet
        if is_log_body(packet.body) and packet.span.node == member.name:
            require_opened(disk.standing, view, "sends a log packet")
    elif isinstance(message, Commit):
        check_commit(member, message)
    elif isinstance(message, RingToken):
        recovery = member.stack.membership.recovery
        if recovery is not None and recovery.complete and recovery.ruling.voters:
            standing = standing_in(disk.standing)
            known = [*standing.attempts, *([standing.last] if standing.last else [])]
            require(
                any(primary.id >= recovery.id for primary in known),
                "lets others install a view, and the attempt is not stored",
            )
    if isinstance(message, Ready | Ack | Reply):
        require(view != member.frozen, f"says {type(message).__name__} after the freeze")


def check_commit(member: Any, message: Commit) -> None:
    stored = unpack(member.disk.standing)
    require(stored is not None, "lets others know a ring, and has stored nothing")
    assert stored is not None
    seq, standing = stored
    require(seq >= message.ring.seq, "lets others know a ring number that is not stored")
    for entry in message.entries:
        if entry.node == member.name and entry.old is not None and entry.able:
            require(standing.able, "says that it is able, and that is not stored")


def require_opened(stored: bytes | None, view: ViewId | None, what: str) -> None:
    standing = standing_in(stored)
    require(standing.able, f"{what}, and is not able")
    require(
        standing.last is not None and standing.last.id == view,
        f"{what} in {view}, and has not stored that it is open",
    )
    late = [attempt for attempt in standing.attempts if view is not None and attempt.id <= view]
    require(not late, f"{what} in {view}, and attempts before it are still stored")


def standing_in(stored: bytes | None) -> Standing:
    found = None if stored is None else unpack(stored)
    return Standing() if found is None else found[1]


def all_places(records: list[LogRecord]) -> set[Place]:
    """Every place of a log, its two ends included."""
    place = Place()
    places = {place}
    for i, record in enumerate(records):
        place = record.place if not i and hasattr(record, "place") else place.past(record)
        places.add(place)
    return places


def require(fulfilled: bool, why: str) -> None:
    if not fulfilled:
        raise BrokenDutyError(why)
