"""The messages of membership to bytes and back."""

from collections.abc import Callable, Mapping
from typing import assert_never

from roundelay.core.contract import SUMMARY_BYTES_MAX, Item
from roundelay.core.ids import NodeId, Terms, ViewId
from roundelay.membership.messages import (
    ATTEMPTS_MAX,
    NO_TERMS,
    SEQ_MAX,
    Commit,
    CommitEntry,
    Installed,
    Join,
    Leave,
    Merge,
    Message,
    Primary,
    RingItem,
    RingToken,
)
from roundelay.membership.ring import Token
from roundelay.wire.frame import FRAME_BYTES_MAX
from roundelay.wire.packet import MEMBERS_MAX
from roundelay.wire.primitives import I64_MAX, Reader, Reason, WireError, Writer

COMMIT_BYTES_MAX = 16 * 1024
"""Bytes of a Commit token with the standing of all members. A member whose standing does not fit
leaves it out, and the view is not primary."""
NAMES_MAX = 128
"""Names in such a token: its members, and nodes that are absent but have a vote."""
_TOKEN_BYTES_MAX = 60_000
"""Bytes of a Commit token without standings: what a datagram holds. A larger one is forged."""
_TOKEN_NAMES_MAX = 256
"""Names in a Commit token without standings. One with more is forged."""


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
                _write_terms(w, message.terms)
                return 64, w.done()
            case Commit():
                _write_commit(w, message)
                return 65, w.done()
            case Merge():
                _write_terms(w, message.terms)
                return 66, w.done()
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
    return Join(procs, fails, r.u64(SEQ_MAX), _read_terms(r))


def _read_item(r: Reader) -> RingItem:
    seq, old = r.u64(SEQ_MAX), _read_view(r)
    key = tuple(r.u64() for _ in range(r.u8(16)))
    return RingItem(seq, old, Item(key, r.rest(FRAME_BYTES_MAX)))


def _write_terms(w: Writer, terms: Terms) -> None:
    """The last field of a message: nodes of which nothing was told say nothing."""
    if terms != NO_TERMS:
        w.text(terms.settings)
        w.text(terms.peers)


def _read_terms(r: Reader) -> Terms:
    if not r.more:
        return NO_TERMS
    terms = Terms(r.text(), r.text())
    if not (terms.settings.isprintable() and terms.peers.isprintable()):
        raise WireError(Reason.MALFORMED, "settings that cannot be printed")
    return terms


def _write_view(w: Writer, view: ViewId) -> None:
    w.u64(view.seq)
    w.text(view.rep)


def _read_view(r: Reader) -> ViewId:
    return ViewId(r.u64(SEQ_MAX), r.name(may_be_empty=True))


def _write_names(w: Writer, names: tuple[NodeId, ...]) -> None:
    w.u16(len(names))
    for name in names:
        w.text(name)


def _read_names(r: Reader) -> tuple[NodeId, ...]:
    """Names in order, each once: sets have one form on the wire."""
    names = r.many(r.name, MEMBERS_MAX)
    if list(names) != sorted(set(names)):
        raise WireError(Reason.MALFORMED, "names out of order")
    return names


def write_primary(w: Writer, primary: Primary) -> None:
    _write_view(w, primary.id)
    _write_names(w, primary.voters)


def read_primary(r: Reader) -> Primary:
    """WireError if it is none."""
    return Primary(_read_view(r), _read_names(r))


# The Commit token. Members repeat each other's names and primary views, so it has one table of
# names (its members, then absent nodes) and one of primary views; entries refer to both.


def fill_in(token: Commit, entry: CommitEntry) -> Commit | None:
    """The token with the entry whose turn it is filled in; without what that member remembers of
    primary views, if that does not fit. None if nothing fits: no honest member made this token."""
    whole = _filled(token, entry)
    if len(_names(whole)) <= NAMES_MAX and _size(whole) <= COMMIT_BYTES_MAX:
        return whole
    less = _filled(
        token,
        CommitEntry(
            entry.node,
            entry.old,
            entry.summary,
            entry.obligation,
            incarnation=entry.incarnation,
            crowded=True,
            journal=entry.journal,
        ),
    )
    fits = len(_names(less)) <= _TOKEN_NAMES_MAX and _size(less) <= _TOKEN_BYTES_MAX
    return less if fits else None


def _filled(token: Commit, entry: CommitEntry) -> Commit:
    at = token.index
    entries = (*token.entries[:at], entry, *token.entries[at + 1 :])
    return Commit(token.ring, token.token_seq + 1, at + 1, entries)


def _size(token: Commit) -> int:
    w = Writer()
    _write_commit(w, token)
    return len(w.done())


def _names(token: Commit) -> list[NodeId]:
    """Everybody a token speaks of, its members first."""
    members = [entry.node for entry in token.entries]
    others = {
        name
        for entry in token.entries
        for names in (entry.obligation, entry.founders, *(p.voters for p in _primaries(entry)))
        for name in names
    }
    return [*members, *sorted(others.difference(members))]


def _primaries(entry: CommitEntry) -> tuple[Primary, ...]:
    return entry.attempts if entry.last is None else (entry.last, *entry.attempts)


_ABLE, _CROWDED, _LAST, _JOURNAL = 1, 2, 4, 8


def _write_commit(w: Writer, token: Commit) -> None:
    names = _names(token)
    place = {name: i for i, name in enumerate(names)}
    primaries = sorted({p for entry in token.entries for p in _primaries(entry)}, key=_order)
    number = {primary: i for i, primary in enumerate(primaries)}
    _write_view(w, token.ring)
    w.u64(token.token_seq)
    w.u16(token.index)
    w.u16(len(token.entries))
    _write_names(w, tuple(names))
    w.u16(len(primaries))
    for primary in primaries:
        _write_view(w, primary.id)
        _write_set(w, primary.voters, place)
    for entry in token.entries:
        w.flag(entry.old is not None)
        if entry.old is None:
            continue
        w.u64(entry.incarnation)
        _write_view(w, entry.old)
        w.blob(entry.summary)
        _write_set(w, entry.obligation, place)
        _write_set(w, entry.founders, place)
        last = entry.last is not None
        w.u8(
            _ABLE * entry.able + _CROWDED * entry.crowded + _LAST * last + _JOURNAL * entry.journal
        )
        known = _primaries(entry)
        w.u16(len(known))
        for primary in known:
            w.u16(number[primary])


def _order(primary: Primary) -> tuple[ViewId, tuple[NodeId, ...]]:
    return primary.id, primary.voters


def _read_commit(r: Reader) -> Commit:
    ring, token_seq, index = _read_view(r), r.u64(SEQ_MAX), r.u16(_TOKEN_NAMES_MAX)
    size = r.u16(_TOKEN_NAMES_MAX)
    names = r.many(r.name, _TOKEN_NAMES_MAX)
    members, others = list(names[:size]), list(names[size:])
    if members != sorted(set(members)) or others != sorted(set(others)):
        raise WireError(Reason.MALFORMED, "members out of order")
    if not size or len(members) < size or index > size or len(set(names)) < len(names):
        raise WireError(Reason.MALFORMED, "members that do not fit their number")
    views_max = (ATTEMPTS_MAX + 1) * size
    primaries = r.many(lambda: Primary(_read_view(r), _read_set(r, names)), views_max)
    entries = tuple(_read_entry(r, member, names, primaries) for member in members)
    if any(entry.old is None for entry in entries[:index]):
        raise WireError(Reason.MALFORMED, "an entry is not filled in")
    return Commit(ring, token_seq, index, entries)


def _read_entry(
    r: Reader, node: NodeId, names: tuple[NodeId, ...], primaries: tuple[Primary, ...]
) -> CommitEntry:
    if not r.flag():
        return CommitEntry(node)
    incarnation, old = r.u64(I64_MAX), _read_view(r)
    summary = r.blob(SUMMARY_BYTES_MAX)
    obligation, founders = _read_set(r, names), _read_set(r, names)
    marks = r.u8(_ABLE | _CROWDED | _LAST | _JOURNAL)
    numbers = r.many(lambda: r.u16(len(primaries)), ATTEMPTS_MAX + 1)
    if any(number == len(primaries) for number in numbers):
        raise WireError(Reason.MALFORMED, "a primary view that is not in the token")
    known = tuple(primaries[number] for number in numbers)
    if (marks & _LAST and not known) or len(known) > ATTEMPTS_MAX + bool(marks & _LAST):
        raise WireError(Reason.MALFORMED, "primary views that do not fit their number")
    return CommitEntry(
        node,
        old,
        summary,
        obligation,
        known[0] if marks & _LAST else None,
        known[1:] if marks & _LAST else known,
        bool(marks & _ABLE),
        founders,
        incarnation,
        bool(marks & _CROWDED),
        bool(marks & _JOURNAL),
    )


def _write_set(w: Writer, nodes: tuple[NodeId, ...], place: Mapping[NodeId, int]) -> None:
    """One bit for each name of the table, the first name's the lowest."""
    bits = sum(1 << place[node] for node in nodes)
    w.rest(bits.to_bytes((len(place) + 7) // 8, "little"))


def _read_set(r: Reader, names: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    """The nodes of a set, in order."""
    bits = int.from_bytes(r.take((len(names) + 7) // 8), "little")
    if bits >> len(names):
        raise WireError(Reason.MALFORMED, "a set with nobody's bit")
    return tuple(sorted(name for i, name in enumerate(names) if bits >> i & 1))


_READERS: dict[int, Callable[[Reader], Message]] = {
    64: _read_join,
    65: _read_commit,
    66: lambda r: Merge(_read_terms(r)),
    68: _read_item,
    69: lambda r: Installed(),
    70: lambda r: Leave(),
}
