"""What members say on the wire. Members are numbered by their place in the view, from 0 on the
wire and from 1 where people read."""

import struct
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, assert_never

from roundelay.core.ids import Packet
from roundelay.core.value import value
from roundelay.wire.packet import MEMBERS_MAX, decode_packet, encode_packet
from roundelay.wire.primitives import I64_MAX, U16_MAX, Reader, Reason, WireError, Writer

BATCH_MAX = 1024
"""Most requests that one decision can order."""
PART_DECISIONS = 16
"""Most decisions in one frame, which must not be larger than a datagram; the rest is asked for."""
ASK_RUNS = 16
"""Most runs of requests that one frame asks for."""

_REQ = struct.Struct(">HQQQHH")
_DEC = struct.Struct(">HQQBQHQHHQH")
_RUN = struct.Struct(">HQH")
_EPOCH = struct.Struct(">QH")


class Epoch(NamedTuple):
    """The time of one token: it begins when the token is made anew."""

    counter: int
    regenerator: int
    """Who made the token. Two members may count alike; then the larger place is the later epoch."""

    def __str__(self) -> str:
        return f"{self.counter}/{self.regenerator + 1}"


FIRST_EPOCH = Epoch(1, 0)
"""Of the token that the first member of a view has at the start."""


class DecisionId(NamedTuple):
    """One decision: no two of them have all three alike."""

    number: int
    epoch: Epoch
    maker: int

    def __str__(self) -> str:
        return f"{self.number} by {self.maker + 1} in {self.epoch}"


ROOT = DecisionId(0, FIRST_EPOCH, 0)
"""What the first decision of a chain extends: nothing."""


class Run(NamedTuple):
    """Requests of one sender whose numbers follow one another."""

    sender: int
    first: int
    """Requests of a sender are numbered from 1 in each view."""
    count: int  # type: ignore[assignment]  # A field; tuple.count has no use here.

    @property
    def last(self) -> int:
        return self.first + self.count - 1

    def __str__(self) -> str:
        more = f"..{self.last}" if self.count > 1 else ""
        return f"{self.sender + 1}.{self.first}{more}"


@value
class Req:
    """A request: a packet that wants a place in the order. From its sender, or from a member that
    was asked for it."""

    sender: int
    number: int
    packet: Packet
    cause: DecisionId = ROOT
    """The last decision of which its sender had delivered something when it sent the request, which
    so may follow from it. A chain orders the request only behind that decision."""

    def __str__(self) -> str:
        return f"{Run(self.sender, self.number, 1)}: {self.packet}"


@value
class Dec:
    """A decision: these requests have this number. It is the token, too: whoever follows its maker
    on the ring decides next."""

    maker: int
    runs: tuple[Run, ...]
    """The requests, in order; none in a NULL decision, which uses up a number all the same."""
    number: int
    """TONum of the paper."""
    version: int
    """rversion: how often the ring has changed on the way here."""
    ring: tuple[int, ...]
    """The members that the token visits, in order."""
    evolved: bool
    """Whether the maker changed the ring; rview of the paper is NULL otherwise."""
    epoch: Epoch
    parent: DecisionId
    """The decision that it extends, which has the number before."""
    have: tuple[int, ...]
    """By member: the number up to which that one is known to hold this chain, with its requests."""
    confirmed: DecisionId
    """The last decision that its maker has confirmed."""

    @property
    def id(self) -> DecisionId:
        return DecisionId(self.number, self.epoch, self.maker)

    def __str__(self) -> str:
        requests = " ".join(map(str, self.runs)) or "null"
        ring = " ring " + ",".join(str(place + 1) for place in self.ring) if self.evolved else ""
        after = f" after {self.parent}" if self.parent.number else ""
        return f"{self.id}: {requests}, version {self.version}{ring}{after}"


@value
class Regen:
    """Asks every member to promise that it takes no decision of an earlier epoch any more."""

    epoch: Epoch
    confirmed: int
    accepted: Epoch
    tip: int
    """Its sender's chain ends with this number, in that epoch."""

    def __str__(self) -> str:
        return f"{self.epoch} from {self.tip} in {self.accepted}"


@value
class Promise:
    """That promise, and where the chain of its sender ends."""

    epoch: Epoch
    tip: DecisionId
    decisions: tuple[Dec, ...] = ()
    """Those of its chain that the one who asked may lack, as far as a frame holds them."""

    def __str__(self) -> str:
        return f"{self.epoch} with {self.tip}{_listed(self.decisions)}"


@value
class Stale:
    """To the sender of a frame of an old epoch: this one was promised to another."""

    promised: Epoch

    def __str__(self) -> str:
        return f"promised {self.promised}"


@value
class Ask:
    """Asks for decisions, from `first` to `last`, and for requests."""

    first: int
    last: int
    """0 if no decisions are wanted."""
    runs: tuple[Run, ...] = ()

    def __str__(self) -> str:
        wanted = [str(run) for run in self.runs]
        if self.last:
            wanted.insert(0, f"decisions {self.first} to {self.last}")
        return ", ".join(wanted)


@value
class Chain:
    """Decisions that somebody asked for. They pass the token too, if it is the last one's turn."""

    decisions: tuple[Dec, ...]

    def __str__(self) -> str:
        return _listed(self.decisions).strip()


@value
class Rejoin:
    """From a member that is off the ring and has caught up: put me on it again."""

    epoch: Epoch
    held: int
    """What it holds of the chain of that epoch."""

    def __str__(self) -> str:
        return f"holding {self.held} in {self.epoch}"


Message: TypeAlias = Req | Dec | Regen | Promise | Stale | Ask | Chain | Rejoin


def _listed(decisions: tuple[Dec, ...]) -> str:
    return "".join(f" [{decision}]" for decision in decisions)


class FcCodec:
    """Messages to bytes and back."""

    tags: Mapping[int, str] = {
        1: "REQ",
        2: "DEC",
        3: "REGEN",
        4: "PROMISE",
        5: "STALE",
        6: "ASK",
        7: "CHAIN",
        8: "REJOIN",
    }

    def encode(self, message: Message) -> tuple[int, bytes]:
        if isinstance(message, Req):
            number, epoch, maker = message.cause
            head = _REQ.pack(message.sender, message.number, number, *epoch, maker)
            return 1, encode_packet(message.packet, head)
        w = Writer()
        match message:
            case Dec():
                write_decision(w, message)
                return 2, w.done()
            case Regen():
                w.fields(_EPOCH, *message.epoch)
                w.u64(message.confirmed)
                w.fields(_EPOCH, *message.accepted)
                w.u64(message.tip)
                return 3, w.done()
            case Promise():
                w.fields(_EPOCH, *message.epoch)
                _write_id(w, message.tip)
                _write_decisions(w, message.decisions)
                return 4, w.done()
            case Stale():
                w.fields(_EPOCH, *message.promised)
                return 5, w.done()
            case Ask():
                w.u64(message.first)
                w.u64(message.last)
                _write_runs(w, message.runs)
                return 6, w.done()
            case Chain():
                _write_decisions(w, message.decisions)
                return 7, w.done()
            case Rejoin():
                w.fields(_EPOCH, *message.epoch)
                w.u64(message.held)
                return 8, w.done()
            case _:
                assert_never(message)

    def decode(self, tag: int, data: bytes, start: int) -> Message:
        if tag == 1:
            packet = decode_packet(data, start + _REQ.size)  # Which refuses what is too short.
            sender, number, cause, counter, regenerator, maker = _REQ.unpack_from(data, start)
            _in_range(0 < number <= I64_MAX and max(cause, counter) <= I64_MAX)
            return Req(
                sender, number, packet, DecisionId(cause, Epoch(counter, regenerator), maker)
            )
        r = Reader(data, start)
        message: Message
        match tag:
            case 2:
                message = read_decision(r)
            case 3:
                message = Regen(_read_epoch(r), r.u64(I64_MAX), _read_epoch(r), r.u64(I64_MAX))
            case 4:
                message = Promise(_read_epoch(r), _read_id(r), _read_decisions(r))
            case 5:
                message = Stale(_read_epoch(r))
            case 6:
                message = Ask(r.u64(I64_MAX), r.u64(I64_MAX), _read_runs(r, ASK_RUNS))
            case 7:
                message = Chain(_read_decisions(r))
            case 8:
                message = Rejoin(_read_epoch(r), r.u64(I64_MAX))
            case _:
                raise WireError(Reason.MALFORMED, f"tag {tag}")
        r.done()
        return message


def write_decision(w: Writer, d: Dec) -> None:
    """The members of a ring are told as the bits of a number."""
    parent, confirmed = d.parent, d.confirmed
    w.fields(
        _DEC,
        d.maker,
        d.number,
        d.version,
        d.evolved,
        *d.epoch,
        *parent.epoch,
        *(parent.maker, confirmed.number, confirmed.maker),
    )
    w.fields(_EPOCH, *confirmed.epoch)
    w.u16(len(d.have))
    if max(d.ring, default=0) >= len(d.have):
        raise ValueError(f"a ring of {d.ring} in a view of {len(d.have)}")
    bits = 0
    for place in d.ring:
        bits |= 1 << place
    w.rest(bits.to_bytes((len(d.have) + 7) // 8, "big"))
    w.fields(_numbers(len(d.have)), *d.have)
    _write_runs(w, d.runs)


def read_decision(r: Reader) -> Dec:
    """A decision, or WireError. Whether its numbers suit the view, the member that receives it
    knows."""
    fields = r.fields(_DEC)
    maker, number, version, evolved, counter, regenerator = fields[:6]
    parent_counter, parent_regenerator, parent_maker, confirmed, confirmer = fields[6:]
    _in_range(0 < number <= I64_MAX and version <= I64_MAX and evolved <= 1)
    _in_range(max(counter, parent_counter, confirmed) <= I64_MAX)
    confirmed_epoch = _read_epoch(r)
    size = r.u16(MEMBERS_MAX)
    bits = int.from_bytes(r.take((size + 7) // 8), "big")
    _in_range(bits >> size == 0)
    have = r.fields(_numbers(size))
    _in_range(all(n <= I64_MAX for n in have))
    return Dec(
        maker,
        _read_runs(r, BATCH_MAX),
        number,
        version,
        tuple(place for place in range(size) if bits >> place & 1),
        bool(evolved),
        Epoch(counter, regenerator),
        DecisionId(number - 1, Epoch(parent_counter, parent_regenerator), parent_maker),
        have,
        DecisionId(confirmed, confirmed_epoch, confirmer),
    )


def _numbers(count: int) -> struct.Struct:
    return _FORMS.setdefault(count, struct.Struct(f">{count}Q"))


_FORMS: dict[int, struct.Struct] = {}


def _write_decisions(w: Writer, decisions: tuple[Dec, ...]) -> None:
    w.u16(len(decisions))
    for decision in decisions:
        write_decision(w, decision)


def _read_decisions(r: Reader) -> tuple[Dec, ...]:
    return r.many(lambda: read_decision(r), PART_DECISIONS)


def _write_runs(w: Writer, runs: tuple[Run, ...]) -> None:
    w.u16(len(runs))
    for run in runs:
        w.fields(_RUN, *run)


def _read_runs(r: Reader, most: int) -> tuple[Run, ...]:
    count = r.u16(most)
    if not count:
        return ()
    runs = tuple(Run(*r.fields(_RUN)) for _ in range(count))
    _in_range(all(run.first and run.count and run.last <= I64_MAX for run in runs))
    _in_range(sum(run.count for run in runs) <= U16_MAX)
    return runs


def _write_id(w: Writer, decision: DecisionId) -> None:
    w.u64(decision.number)
    w.fields(_EPOCH, *decision.epoch)
    w.u16(decision.maker)


def _read_id(r: Reader) -> DecisionId:
    return DecisionId(r.u64(I64_MAX), _read_epoch(r), r.u16())


def _read_epoch(r: Reader) -> Epoch:
    counter, regenerator = r.fields(_EPOCH)
    _in_range(counter <= I64_MAX)
    return Epoch(counter, regenerator)


def _in_range(sane: object) -> None:
    if not sane:
        raise WireError(Reason.MALFORMED, "a number out of range")
