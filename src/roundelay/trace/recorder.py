"""Turns effects and inputs into rows. Both drivers call it, so that both write the same trace.

There is one recorder per node and incarnation. It knows the view that the node is in, numbers its
rows, and keeps the cause: every row written between one input and the next names the row of that
input.

A frame may name any node, and what it says may reach the trace before the core refuses it. So no
name and no number from outside can make a recorder fail. A name that is no node of the run is left
out of lists, is null as the other end of a frame, and is -1, nobody, as a sender or representative.
A row whose message has an incarnation that no column can hold is not written but counted.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from roundelay.core.checksum import crc32
from roundelay.core.effects import Deliver, Kind, Record
from roundelay.core.ids import Key, NodeId, Packet, Span, View, ViewId
from roundelay.trace.schema import (
    INT64_MAX,
    LOG_KINDS,
    LOG_LAYER,
    REGULAR,
    TRANSITIONAL,
    WORLD,
    Row,
    frame_key,
)


class Clock(Protocol):
    """The clock of the rows: virtual time in the simulator, monotonic time in a node."""

    @property
    def now(self) -> int:
        """Nanoseconds."""
        ...


Append = Callable[[Row], None]

Keys = tuple[int | None, int | None, int | None, int | None]

_NO_VIEW = (None, None, None)
_NOTHING: tuple[object, ...] = (None,) * 10
"""The columns from `m_src` to `level` of rows about no message."""
_NO_KEYS: Keys = (None, None, None, None)
DIGESTED = frozenset({Kind.ORIGINATE, Kind.RECEIVE, Kind.DELIVER})
"""Kinds of rows with a digest of their packet."""
_KEYED = frozenset({Kind.ORDER, Kind.CONFIRM})
_TOKEN, _RECEIVE, _SUBMIT = Kind.TOKEN, Kind.RECEIVE, Kind.SUBMIT
_SEND, _ARRIVE, _DELIVER = Kind.SEND, Kind.ARRIVE, Kind.DELIVER
_row: Callable[[tuple[object, ...]], Row] = partial(tuple.__new__, Row)
"""Makes a row of its fields in schema order, in half the time of `Row(...)`: a run writes
millions."""


class Recorder:
    """Writes the rows of one node in one incarnation through `append`.

    `numbers` gives each node its number in the trace. `gseq` returns the next number in the total
    order of events of the run; real nodes have none. Without `net` the rows of frames and timers
    are left out: they are most of a trace, and only diagrams, figures of overhead and traces
    without gseq need them. Without `tokens` those of the token's hops are left out, which are most
    of what is left of an idle ring; only K3 needs them.
    """

    def __init__(
        self,
        append: Append,
        numbers: Mapping[NodeId, int],
        node: NodeId,
        incarnation: int,
        clock: Clock,
        gseq: Callable[[], int] | None = None,
        *,
        net: bool = True,
        tokens: bool = True,
    ) -> None:
        self.net = net
        self.tokens = tokens
        self._append = self._first = append
        self._numbers = numbers
        self._proc = numbers[node]
        self._inc = incarnation & INT64_MAX
        self._clock = clock
        self._gseq = gseq or _unordered
        self._lseq = 0
        self._cause: int | None = None
        self._view: tuple[int, int, int] | None = None
        self._place: tuple[object, ...] = (None,) * 7
        """The columns from `c_seq` to `voters` of rows that install no view."""
        self._token_of: ViewId | None = None
        self._about_token: tuple[object, ...] = ()
        """The columns from `m_src` to `voters` of token rows in that view; a ring writes many of
        them."""
        self._arrived: tuple[NodeId, int, int] | None = None
        """Sender, incarnation and number of the frame that arrived last."""
        self.unwritten = 0
        """The number of rows that were not written because their message has an impossible
        incarnation."""
        self.lamport = 0
        """The node's Lamport clock; the driver keeps it up to date."""

    def tee(self, append: Append | None) -> None:
        """From now on rows go to `append` too; None ends that."""
        first = self._first

        def both(row: Row) -> None:
            first(row)
            append(row)  # type: ignore[misc]  # It is not None then.

        self._append = first if append is None else both

    def forget_cause(self) -> None:
        """Call this before an input that has no row of its own: the rows that follow have no
        cause."""
        self._cause = None

    def arrive(
        self, sender: NodeId, incarnation: int, number: int, tag: str = "", size: int = 0
    ) -> None:
        """A frame arrived; it is the cause of the rows that follow. Its type and size matter only
        if frames have rows."""
        self._cause = None
        self._arrived = (sender, incarnation, number)
        if self.net:
            self._cause = self._frame(_ARRIVE, tag, size, *self._frame_arrived())

    def forget_frame(self) -> None:
        """Call this after the arrivals of a burst: which of its frames brought a packet is not
        known, so the rows about packets name none."""
        self._arrived = None

    def expire(self, timer: str) -> None:
        """A timer expired; it is the cause of the rows that follow."""
        self._cause = None
        if self.net:
            self._cause = self._frame(Kind.EXPIRE, timer, None, None, None)

    def send(self, to: NodeId | None, number: int, tag: str, size: int) -> None:
        if self.net:
            peer = None if to is None else self._numbers.get(to)
            self._frame(_SEND, tag, size, frame_key(self._proc, self._inc, number), peer)

    def drop(self, reason: str, pkt: int | None = None, peer: NodeId | None = None) -> None:
        """A datagram was refused."""
        if self.net:
            number = None if peer is None else self._numbers.get(peer)
            self._frame(Kind.DROP, reason, None, pkt, number)

    def refuse(self, reason: str, why: str) -> None:
        """The frame that arrived last was refused by the core."""
        if self.net:
            self._frame(Kind.DROP, reason, None, *self._frame_arrived(), json.dumps({"why": why}))

    def deliver(self, effect: Deliver) -> None:
        self._message(_DELIVER, "app", effect.packet, effect.view, effect.key, None)

    def record(self, record: Record) -> None:
        """Write the row that the core asks for."""
        if record.kind is _TOKEN:
            if self.tokens:
                self._token(record)
        elif record.kind in LOG_KINDS:
            self._log(record)
        elif record.subject is None or (record.kind in _KEYED and not _span(record.subject).count):
            # About no message, or about a piece of one: its key is used all the same.
            keys = self._keys(record.view, record.key)
            if record.kind is Kind.RECOVER:
                keys = (record.stable_seq, None, None, None)
            elif record.kind is Kind.FREEZE:
                keys = (*self._ring(record.view), None, None)
            x = None if record.detail is None else json.dumps(record.detail, sort_keys=True)
            self._other(record.kind, record.tag, keys=keys, level=record.level, x=x)
        elif record.kind is _SUBMIT:
            self._cause = None
            self._cause = self._message(record.kind, "app", record.subject, None, None, None)
        elif not record.layer:
            self._message(record.kind, "to", record.subject, record.view, record.key, record.level)
        elif self.net:
            self._message(record.kind, record.layer, record.subject, record.view, None, None)

    def install(self, view: View, *, able: bool = False) -> None:
        """The node enters a view; `able` says whether it may vote on the next primary one."""
        left = self._view
        kind = TRANSITIONAL if view.transitional else REGULAR
        self._view = (view.id.seq, self._numbers.get(view.id.rep, WORLD), kind)
        self._place = (*self._view, None, None, None, None)
        self._token_of = None
        voters = self._known(view.voters) if view.primary and view.voters else None
        self._other(
            Kind.INSTALL,
            "",
            level=int(able),
            members=self._known(view.members),
            prev_c=left,
            primary=view.primary,
            voters=voters,
        )

    def suspect(self, members: tuple[NodeId, ...], reason: str) -> None:
        x = json.dumps({"reason": reason})
        self._other(Kind.SUSPECT, "", members=self._known(members), x=x)

    def crash(self, how: str = "") -> None:
        """The node stops; `how` is "kill", "power" or "disk-lost" where it has a journal."""
        self._cause = None
        self._other(Kind.CRASH, how)

    def snapshot(self, index: int, digest: int, *, restored: bool = False) -> None:
        """The application gave its state after so many entries, or was given it."""
        kind = Kind.RESTORE if restored else Kind.SNAPSHOT
        rest = (digest & INT64_MAX, None, 1, None, None, self._cause, None)
        log = (index, None, None, None, None)
        self._append_row(kind, LOG_LAYER, "", _NOTHING, rest + log)

    def invoke(self, obj: str, op: str, arg: int | None = None, *, stale: bool = False) -> int:
        """An operation on a replicated object begins; the number of its row, for `reply`. `stale`
        says that any state will do for it, so that it promises nothing."""
        about = (*_NOTHING[:9], 0 if stale else None)
        rest = (None, None, 1, None, None, None, None)
        log = (None, obj, op, None if arg is None else arg & INT64_MAX, None)
        return self._append_row(Kind.INVOKE, "app", "", about, rest + log)

    def reply(
        self, call: int, obj: str, op: str, res: int | None = None, index: int | None = None
    ) -> None:
        """The operation that `invoke` began is over; its reply is as of so many entries. An
        operation that fails, or whose fate is not known, has no reply."""
        rest = (None, None, 1, None, None, call, None)
        log = (index, obj, op, None, None if res is None else res & INT64_MAX)
        self._append_row(Kind.REPLY, "app", "", _NOTHING, rest + log)

    def fault(self, tag: str, detail: Mapping[str, object] | None = None) -> None:
        """Something was done to the run, such as a partition. Only the recorder of the world, which
        has no node, writes this row."""
        self._other(Kind.FAULT, tag, x=json.dumps(detail, sort_keys=True) if detail else None)

    def end(self, component: tuple[NodeId, ...]) -> None:
        """The run ended quietly, and these nodes were alive and connected."""
        self._other(Kind.END, "", members=self._known(component))

    # Rows are put together from tuples of neighbouring columns; see `_append_row`.

    def _message(
        self,
        kind: Kind,
        layer: str,
        subject: Packet | Span,
        view: ViewId | None,
        key: Key | None,
        level: int | None,
    ) -> int | None:
        if type(subject) is Packet:
            node, incarnation, first, count = subject.span
            service: int | None = int(subject.service)
            dst = subject.destinations
            size: int | None = len(subject.body) or None
            digest = crc32(subject.body) if kind in DIGESTED else None
        else:
            node, incarnation, first, count = subject  # type: ignore[misc]  # A Span.
            service = dst = size = digest = None
        if not count:
            return None  # A piece of a large message, which completes none.
        if not 0 <= incarnation <= INT64_MAX:
            self.unwritten += 1
            return None
        src = self._numbers.get(node, WORLD)
        to = None if dst is None else self._known(dst)
        k0, k1, k2, k3 = self._keys(view, key)
        pkt, peer = self._frame_arrived() if kind is _RECEIVE else (None, None)
        return self._append_row(
            kind,
            layer,
            "",
            (src, incarnation, first, service, to, k0, k1, k2, k3, level),
            (digest, size, count, pkt, peer, self._cause, None, None, None, None, None, None),
        )

    def _log(self, record: Record) -> None:
        """A row of the replicated log. What opens a session has no entry, and so no row."""
        head, kind = record.head, record.kind
        about, digest, count, session = _NOTHING, None, 1, None
        place = self._place
        if record.members is not None:
            place = (*place[:3], self._known(record.members), *place[4:])
        if head is not None:
            if not head.count:
                return
            if not 0 <= head.incarnation <= INT64_MAX or head.number > INT64_MAX:
                self.unwritten += 1
                return
            sender, count = self._numbers.get(head.sender, WORLD), head.count
            term = self._ring(head.term) if kind is Kind.ENTRY else (None, None)
            about = (sender, head.incarnation, head.number, None, None, *term, None, None, None)
            digest = head.crc if kind is Kind.ENTRY else None
            session = f"{head.session:016x}"
        elif record.view is not None:
            about = (*_NOTHING[:5], *self._ring(record.view), None, None, None)
        rest = (digest, None, count, None, None, self._cause, None)
        log = (record.index, session, None, None, None)
        self._append_row(kind, LOG_LAYER, record.tag, about, rest + log, place)

    def _token(self, record: Record) -> None:
        """Rows of the token are most rows of an idle ring, so their columns are kept for the next
        one."""
        view = record.view
        if view is not self._token_of:
            about = (*_NOTHING[:5], *self._ring(view), None, None, None)
            self._token_of, self._about_token = view, about + self._place
        lseq = self._lseq
        self._lseq = lseq + 1
        now, lamport, gseq = self._clock.now, self.lamport, self._gseq()
        head = (_TOKEN, self._proc, self._inc, lseq, gseq, now, None, lamport, "to", record.tag)
        rest = (None, None, 1, None, None, self._cause, None, None, None, None, None, None)
        self._append(_row(head + self._about_token + rest))

    def _frame(
        self,
        kind: Kind,
        tag: str,
        size: int | None,
        pkt: int | None,
        peer: int | None,
        x: str | None = None,
    ) -> int:
        rest = (None, size, 1, pkt, peer, self._cause, x, None, None, None, None, None)
        return self._append_row(kind, "net", tag, _NOTHING, rest)

    def _append_row(
        self,
        kind: Kind,
        layer: str,
        tag: str,
        about: tuple[object, ...],
        rest: tuple[object, ...],
        place: tuple[object, ...] | None = None,
    ) -> int:
        """Write a row; `about` has its columns from `m_src` to `level`, `place` those from `c_seq`
        to `voters`, and `rest` those after them."""
        lseq = self._lseq
        self._lseq = lseq + 1
        now, lamport, gseq = self._clock.now, self.lamport, self._gseq()
        head = (kind, self._proc, self._inc, lseq, gseq, now, None, lamport, layer, tag)
        self._append(_row(head + about + (place or self._place) + rest))
        return lseq

    def _other(
        self,
        kind: Kind,
        tag: str,
        *,
        keys: Keys = _NO_KEYS,
        level: int | None = None,
        members: tuple[int, ...] | None = None,
        prev_c: tuple[int, int, int] | None = None,
        primary: bool | None = None,
        voters: tuple[int, ...] | None = None,
        x: str | None = None,
    ) -> None:
        c_seq, c_rep, c_kind = self._view or _NO_VIEW
        self._append(
            Row(
                kind=kind,
                proc=self._proc,
                inc=self._inc,
                lseq=self._lseq,
                gseq=self._gseq(),
                t_ns=self._clock.now,
                lam=self.lamport,
                tag=tag,
                k0=keys[0],
                k1=keys[1],
                k2=keys[2],
                k3=keys[3],
                level=level,
                c_seq=c_seq,
                c_rep=c_rep,
                c_kind=c_kind,
                members=members,
                prev_c=prev_c,
                primary=primary,
                voters=voters,
                cause=self._cause,
                x=x,
            )
        )
        self._lseq += 1

    def _frame_arrived(self) -> tuple[int | None, int | None]:
        """The columns `pkt` and `peer` of rows about the frame that arrived last."""
        if self._arrived is None:
            return None, None
        sender, incarnation, number = self._arrived
        peer = self._numbers.get(sender)
        return None if peer is None else frame_key(peer, incarnation, number), peer

    def _keys(self, view: ViewId | None, key: Key | None) -> Keys:
        if key is None or view is None:
            return _NO_KEYS
        return view.seq, self._numbers.get(view.rep, WORLD), key[0], key[1]

    def _ring(self, view: ViewId | None) -> tuple[int | None, int | None]:
        """The columns k0 and k1 of a row about a ring itself."""
        return (None, None) if view is None else (view.seq, self._numbers.get(view.rep, WORLD))

    def _known(self, nodes: Iterable[NodeId]) -> tuple[int, ...]:
        """The numbers of the nodes that the run knows."""
        numbers = self._numbers
        return tuple(numbers[node] for node in nodes if node in numbers)


def _unordered() -> None:
    """The gseq of real nodes."""


def _span(subject: Packet | Span) -> Span:
    return subject.span if isinstance(subject, Packet) else subject
