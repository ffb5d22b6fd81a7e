"""What membership says on the wire. Tags begin at 64; those below belong to engines."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from roundelay.core.contract import SUMMARY_BYTES_MAX, Item
from roundelay.core.ids import NODE_NAME_BYTES_MAX, NodeId, ViewId
from roundelay.core.value import value
from roundelay.membership.ring import Token
from roundelay.wire.frame import FRAME_BYTES_MAX
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import Reader, Reason, WireError, Writer

FIRST_TAG = 64
SEQ_MAX = 2**62
"""No ring gets past this number; a Join that claims one is forged."""
ATTEMPTS_MAX = 4
"""Primary views in doubt that an entry may carry."""


@value
class Primary:
    """A primary view: which one, and of whom a majority must be there for the next."""

    id: ViewId
    members: tuple[NodeId, ...]


@value
class Join:
    """Who I think should be in the next ring (`procs`), and who of those has failed (`fails`)."""

    procs: tuple[NodeId, ...]
    fails: tuple[NodeId, ...]
    ring_seq: int
    """Of the newest ring whose Commit token the sender accepted."""

    def __str__(self) -> str:
        fails = f" without {','.join(self.fails)}" if self.fails else ""
        return f"{','.join(self.procs)}{fails} after {self.ring_seq}"


@value
class Entry:
    """What a member of the new ring brings along."""

    node: NodeId
    old: ViewId | None = None
    """The view it comes from; None until the member has filled in its entry."""
    summary: bytes = b""
    """Of its engine, on what it holds of that view."""
    obligation: tuple[NodeId, ...] = ()
    """Whose messages a peer that installed before may have delivered behind a gap."""
    primary: Primary | None = None
    """The last primary view it was in."""
    attempts: tuple[Primary, ...] = ()
    """Later ones that somebody may have installed."""


@value
class Commit:
    """Goes round the new ring twice: to collect the entries, then to show them to all."""

    ring: ViewId
    token_seq: int
    index: int
    """Entries that are filled in."""
    entries: tuple[Entry, ...]
    """In ring order, the representative first."""

    def __str__(self) -> str:
        members = ",".join(entry.node for entry in self.entries)
        return f"{self.ring}{{{members}}} hop {self.token_seq} filled {self.index}"


@value
class Merge:
    """A ring that has nothing else to say shows that it is there."""

    def __str__(self) -> str:
        return "we are here"


@value
class RingToken:
    """The token of a ring that is being formed."""

    token: Token

    def __str__(self) -> str:
        return str(self.token)


@value
class RingItem:
    """An item of an old view, exchanged over the ring that is being formed."""

    seq: int
    old: ViewId
    item: Item

    def __str__(self) -> str:
        return f"{self.seq}: item {'.'.join(map(str, self.item.key))} of {self.old}"


@value
class Installed:
    """Answers a token that is still being retransmitted: the sender of this has installed."""

    def __str__(self) -> str:
        return "it has come"


@value
class Leave:
    """Its sender is about to stop: nobody need wait for it."""

    def __str__(self) -> str:
        return "it leaves"


Message: TypeAlias = Join | Commit | Merge | RingToken | RingItem | Installed | Leave
MESSAGES = frozenset((Join, Commit, Merge, RingToken, RingItem, Installed, Leave))
"""Faster to ask than a union: every frame does."""


class MembershipCodec:
    """Membership messages to bytes and back."""

    tags: Mapping[int, str] = {
        64: "JOIN",
        65: "COMMIT",
        66: "MERGE",
        67: "RTOKEN",
        68: "RITEM",
        69: "INSTALLED",
        70: "LEAVE",
    }

    def encode(self, message: Message) -> tuple[int, bytes]:
        w = Writer()
        match message:
            case Join():
                _write_names(w, message.procs)
                _write_names(w, message.fails)
                w.u64(message.ring_seq)
                return 64, w.done()
            case Commit():
                _write_view(w, message.ring)
                w.u64(message.token_seq)
                w.u16(message.index)
                w.u16(len(message.entries))
                for entry in message.entries:
                    _write_entry(w, entry)
                return 65, w.done()
            case Merge():
                return 66, b""
            case RingToken():
                return 67, message.token.encode()
            case RingItem():
                w.u64(message.seq)
                _write_view(w, message.old)
                w.u8(len(message.item.key))
                for part in message.item.key:
                    w.u64(part)
                w.rest(message.item.body)
                return 68, w.done()
            case Installed():
                return 69, b""
            case Leave():
                return 70, b""
            case _:
                assert_never(message)

    def decode(self, tag: int, data: bytes, start: int) -> Message:
        if tag == 67:
            return RingToken(Token.decode(data, start))
        r = Reader(data, start)
        reader = _READERS.get(tag)
        if reader is None:
            raise WireError(Reason.MALFORMED, f"tag {tag}")
        message = reader(r)
        r.done()
        return message


def _read_join(r: Reader) -> Join:
    procs, fails = _read_names(r), _read_names(r)
    return Join(procs, fails, r.u64(SEQ_MAX))


def _read_commit(r: Reader) -> Commit:
    ring, token_seq, index = _read_view(r), r.u64(SEQ_MAX), r.u16(MEMBERS_MAX)
    entries = r.many(lambda: _read_entry(r), MEMBERS_MAX)
    names = [entry.node for entry in entries]
    if names != sorted(set(names)) or not names or index > len(names):
        raise WireError(Reason.MALFORMED, "members out of order")
    if any(entry.old is None for entry in entries[:index]):
        raise WireError(Reason.MALFORMED, "an entry is not filled in")
    return Commit(ring, token_seq, index, entries)


def _read_item(r: Reader) -> RingItem:
    seq, old = r.u64(SEQ_MAX), _read_view(r)
    key = tuple(r.u64() for _ in range(r.u8(16)))
    return RingItem(seq, old, Item(key, r.rest(FRAME_BYTES_MAX)))


_READERS: dict[int, Callable[[Reader], Message]] = {
    64: _read_join,
    65: _read_commit,
    66: lambda r: Merge(),
    68: _read_item,
    69: lambda r: Installed(),
    70: lambda r: Leave(),
}


def _write_view(w: Writer, view: ViewId) -> None:
    w.u64(view.seq)
    w.text(view.rep)


def _read_view(r: Reader) -> ViewId:
    return ViewId(r.u64(SEQ_MAX), r.text(NODE_NAME_BYTES_MAX))


def _write_names(w: Writer, names: tuple[NodeId, ...]) -> None:
    w.u16(len(names))
    for name in names:
        w.text(name)


def _read_names(r: Reader) -> tuple[NodeId, ...]:
    """Names in order, each once: sets have one form on the wire."""
    names = r.many(lambda: r.text(NODE_NAME_BYTES_MAX), MEMBERS_MAX)
    if list(names) != sorted(set(names)) or "" in names:
        raise WireError(Reason.MALFORMED, "names out of order")
    return names


def _write_entry(w: Writer, entry: Entry) -> None:
    w.text(entry.node)
    w.flag(entry.old is not None)
    if entry.old is None:
        return
    _write_view(w, entry.old)
    w.blob(entry.summary)
    _write_names(w, entry.obligation)
    w.flag(entry.primary is not None)
    if entry.primary is not None:
        _write_primary(w, entry.primary)
    w.u16(len(entry.attempts))
    for attempt in entry.attempts:
        _write_primary(w, attempt)


def _read_entry(r: Reader) -> Entry:
    node = r.text(NODE_NAME_BYTES_MAX)
    if not r.flag():
        return Entry(node)
    old, summary, obligation = _read_view(r), r.blob(SUMMARY_BYTES_MAX), _read_names(r)
    primary = _read_primary(r) if r.flag() else None
    return Entry(
        node, old, summary, obligation, primary, r.many(lambda: _read_primary(r), ATTEMPTS_MAX)
    )


def _write_primary(w: Writer, primary: Primary) -> None:
    _write_view(w, primary.id)
    _write_names(w, primary.members)


def _read_primary(r: Reader) -> Primary:
    return Primary(_read_view(r), _read_names(r))
