"""`Replica`: the machines of one log at one node, and what makes their commands exactly-once.

A log may carry several machines under different names; an application that has one uses the empty
name. A payload of the log that belongs to a machine is

    u8 0xD7, u8 form 1      magic number
    u8 size, name           the machine, in UTF-8
    command                 see `methods`

a tick, which only moves log time, is 0xD7 0x02, and 0xD7 0x03 with a JSON object behind it tells
which version of each machine the node of that session runs. Payloads that begin otherwise are not
ours and are skipped, by all replicas alike. A payload of our magic number and another form is what
a newer version wrote.

A snapshot is a sequence of pieces, each with its size (u32) before it, so that whoever keeps or
sends it may divide it anywhere:

    "RDS", version 1
    JSON: index, last term, log time, number of skipped payloads, number of named sessions, for each
          machine its name, class and version, the sessions of the last mark, and the versions that
          they told
    each session: u64 session, u64 number, u64 index, reply
    the pieces of each machine, and an empty one behind them
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import NAMED, NO_TERM
from roundelay.core.value import value
from roundelay.structures.arguments import (
    Alike,
    Arguments,
    read_alike,
    read_reply,
    refusal,
    simple_text,
)
from roundelay.structures.errors import MachineError, Refused, UpgradeError
from roundelay.structures.machine import Machine, Now
from roundelay.structures.values import I64_MAX, I64_MIN, SHORT_TEXT, dumps, loads

MACHINE_NAME_BYTES_MAX = 255
"""Of the UTF-8 of the name of a machine."""
SESSIONS_MAX = 65_536
"""Named sessions whose last reply is kept; as many as a log remembers. With fewer, a command that
is repeated late has lost its reply; with more, memory and snapshots grow."""
REPLY_KEPT_BYTES_MAX = 4096
"""A longer reply to a command of a named session is not kept: its repetition is told that it was
done, but not what the reply was."""
PIECE_BYTES_MAX = 1 << 31
"""Of a snapshot."""

_COMMAND, TICK, _VERSIONS = b"\xd7\x01", b"\xd7\x02", b"\xd7\x03"
"""A second byte from 0x80 on is not ours: text in UTF-8, in Hebrew, may begin so."""
_SIZE = struct.Struct(">I")
_REPLY = struct.Struct(">QQQ")
_SNAPSHOT = b"RDS\x01"


@value
class LogEntry:
    """An entry of the log, as a replica needs it."""

    index: int
    payload: bytes
    term: ViewId
    sender: NodeId
    session: int
    number: int
    stamp_us: int
    """What the wall clock of the sender showed when it was appended."""


@value
class Run:
    """Consecutive entries of one session that travelled together."""

    index: int
    """Of the first one."""
    payloads: Sequence[bytes]
    term: ViewId
    sender: NodeId
    session: int
    number: int
    """Of the first one."""
    stamp_us: int


Issued: TypeAlias = tuple[str, Arguments, tuple[Any, ...] | None, Any]
"""A command that this node has appended and somebody waits for: the name of its machine, its method
and, if they are simple, its arguments, which need not be read again. The last is the caller's."""
Answer: TypeAlias = tuple[Issued, int, Any, Exception | None]
"""The index of a command, and what the method returned, or what the caller is to get as an
exception instead."""


@value
class Kept:
    """The last command of a named session."""

    number: int
    index: int
    reply: bytes | None
    """None: it was too long to be kept."""


class _Crew:
    """A machine, and what its commands need again and again."""

    __slots__ = ("due_us", "head", "here", "machine", "methods", "timed")

    def __init__(self, head: bytes, machine: Machine, methods: dict[str, Arguments]) -> None:
        self.head = head
        self.machine = machine
        self.here = vars(machine)
        self.methods = methods
        self.due_us = machine.due_us
        self.timed = type(machine).due_us is not Machine.due_us
        """Whether something may end by itself."""

    def refused(self, error: Exception, method: Arguments, index: int) -> Refused:
        """What the caller gets; `MachineError` if the method failed."""
        if isinstance(error, Refused):
            told = Refused(refusal(error)[1:].decode())
            told.index = index
            return told
        where = f"{type(self.machine).__name__}.{method.method} at index {index}"
        raise MachineError(f"{where} failed: {type(error).__name__}: {error}") from error

    def encoded(self, reply: object, method: Arguments, index: int) -> bytes:
        try:
            return method.encode_reply(reply)
        except Exception as e:
            return refusal(self.refused(e, method, index))


_NOBODY = _Crew(b"\0", Machine(), {})
"""Whose commands none are."""


def _crew(name: str, machine: Machine) -> _Crew:
    return _Crew(command_head(name), machine, machine.write_arguments())


def _read_reply(method: Arguments, reply: bytes | None, index: int) -> tuple[Any, Exception | None]:
    assert reply is not None, "a command has a reply"
    try:
        return read_reply(method, reply, index), None
    except Exception as e:  # `Refused`; or the codec cannot read what it wrote.
        return None, e


class Replica:
    """The states of the machines of one log, as of one index.

    The driver gives it what is committed, in order: entries by `apply` and marks by `begin_term`.
    """

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        for name in machines:
            if len(name.encode()) > MACHINE_NAME_BYTES_MAX:
                raise ValueError(f"the name {name[:20]!r}... is too long")
        self.machines = dict(sorted(machines.items()))
        self.index = 0
        """Entries below this index were applied."""
        self.term = NO_TERM
        """Of the last mark that was applied."""
        self.time_us = 0
        """Log time."""
        self.skipped_count = 0
        """Payloads that were no commands."""
        self._by_head = {command_head(name)[2:]: m for name, m in self.machines.items()}
        self._crews = [_crew(name, machine) for name, machine in self.machines.items()]
        self._timed = [crew.machine for crew in self._crews if crew.timed]
        self._sessions: dict[int, Kept] = {}
        self._members: dict[NodeId, int] = {}
        """The sessions of the last mark."""
        self._told: dict[int, dict[str, int]] = {}
        """The versions that those sessions told."""

    def apply(self, entry: LogEntry) -> bytes | None:
        """The reply to the command in the entry; None if there is none. `MachineError` if this
        node cannot go on."""
        if entry.index != self.index:
            raise MachineError(f"index {entry.index} came where {self.index} was next")
        self.index += 1
        self.time_us = time_us = max(self.time_us, entry.stamp_us)
        now = Now(entry.index, entry.term, entry.sender, entry.session, time_us)
        for machine in self._timed:
            machine.pass_time(now)
        reply = self._payload(entry.payload, now)
        if reply is not None and entry.session & NAMED:
            self._remember(entry, reply)
        return reply

    def apply_all(
        self,
        run: Run,
        issued: dict[int, Issued] | None = None,
        after: Callable[[], None] | None = None,
    ) -> "list[Answer]":
        """The same as `apply` for each of these entries, of a node's own session, and much faster.

        `issued` are commands of this session that somebody here waits for, by their numbers: they
        are taken out of it, and answered. `after` is called after each entry.
        """
        if run.index != self.index:
            raise MachineError(f"index {run.index} came where {self.index} was next")
        assert not run.session & NAMED, "replies to commands of named sessions are kept"
        self.time_us = time_us = max(self.time_us, run.stamp_us)
        term, sender, session = run.term, run.sender, run.session
        index, number = run.index, run.number
        answers: list[Answer] = []
        crew, due_us = _NOBODY, self.due_us()
        if issued is None and after is None and (due_us is None or due_us > time_us):
            crew = self._crew_of(run.payloads[0]) if run.payloads else _NOBODY
            alike = read_alike(run.payloads, crew.head, crew.methods)
            if alike is not None:
                self._apply_alike(run, crew, alike)
                return answers
        head, size, here = crew.head, len(crew.head), crew.here
        method: Arguments | None
        given: Sequence[Any]
        # A busy node spends its time in this loop. What is rare is done by `_payload`.
        try:
            for payload in run.payloads:
                self.index = index + 1
                if due_us is not None and due_us <= time_us:
                    self._pass_time(Now(index, term, sender, session, time_us))
                    due_us = self.due_us()
                if not payload.startswith(head):
                    here.pop("now", None)
                    crew = self._crew_of(payload)
                    head, size, here = crew.head, len(crew.head), crew.here
                caller = None if issued is None else issued.pop(number, None)
                method = None
                version = 1
                if caller is not None and caller[2] is not None:
                    method, given = caller[1], caller[2]
                    version = method.version
                elif len(payload) <= SHORT_TEXT:
                    packed = simple_text(payload[size:])
                    if packed is not None:
                        method = crew.methods.get(packed[0])
                        if method is not None and method.holds_simple(packed):
                            _, version, *given = packed
                        else:
                            method = None
                now = here["now"] = Now(index, term, sender, session, time_us, version)
                error: Exception | None = None
                if method is None:
                    encoded = self._payload(payload, now)
                    if caller is not None:
                        reply, error = _read_reply(caller[1], encoded, index)
                else:
                    try:
                        reply = method.function(crew.machine, *given)
                    except Exception as e:
                        reply, error = None, crew.refused(e, method, index)
                    else:
                        kind = type(reply)
                        if (
                            kind not in method.simple_reply
                            or (kind is int and not I64_MIN <= reply <= I64_MAX)
                            or (kind is str and not reply.isascii())
                        ):
                            encoded = crew.encoded(reply, method, index)
                            if caller is not None:
                                reply, error = _read_reply(method, encoded, index)
                if caller is not None:
                    answers.append((caller, index, reply, error))
                if crew.timed and (due_us is not None or crew.due_us() is not None):
                    due_us = self.due_us()  # Else nothing is due at any machine.
                if after is not None:
                    here.pop("now", None)
                    after()
                index += 1
                number += 1
        finally:
            here.pop("now", None)
        return answers

    def _apply_alike(self, run: Run, crew: _Crew, alike: Alike) -> None:
        """Commands of one machine that were read at once, and nobody here waits for. When they
        begin nothing is due at any machine."""
        term, sender, session, time_us = run.term, run.sender, run.session, self.time_us
        method, version = alike.method, alike.version
        machine, here, function, timed = crew.machine, crew.here, method.function, crew.timed
        index = run.index
        try:
            for given in alike.rows:
                at, index = index, index + 1
                if timed and (due_us := crew.due_us()) is not None and due_us <= time_us:
                    machine.pass_time(Now(at, term, sender, session, time_us))
                here["now"] = Now(at, term, sender, session, time_us, version)
                try:
                    reply = function(machine, *given)
                except Exception as e:
                    crew.refused(e, method, at)
                else:
                    kind = type(reply)
                    if (
                        kind not in method.simple_reply
                        or (kind is int and not I64_MIN <= reply <= I64_MAX)
                        or (kind is str and not reply.isascii())
                    ):
                        crew.encoded(reply, method, at)
        finally:
            self.index = index
            here.pop("now", None)

    def _payload(self, payload: bytes, now: Now) -> bytes | None:
        """The reply to a command; None if it is none."""
        if payload[:2] == _COMMAND:
            return self._command(payload, now)
        if payload[:1] != _COMMAND[:1] or payload[1:2] >= b"\x80":
            self.skipped_count += 1
        elif payload[:2] == _VERSIONS:
            self._hear(payload[2:], now.session)
        elif payload != TICK:
            raise UpgradeError(
                f"what {now.sender} wrote at index {now.index} is not known here: "
                "upgrade this node first"
            )
        return None

    def _crew_of(self, payload: bytes) -> "_Crew":
        for crew in self._crews:
            if payload.startswith(crew.head):
                return crew
        return _NOBODY

    def _pass_time(self, now: Now) -> None:
        for machine in self._timed:
            machine.pass_time(now)

    def _command(self, payload: bytes, now: Now) -> bytes:
        end = 3 + payload[2] if len(payload) > 2 else 0
        if not end or end > len(payload):
            return refusal(Refused("this is no command"))
        machine = self._by_head.get(payload[2:end])
        if machine is None:
            name = payload[3:end].decode(errors="replace")
            raise UpgradeError(
                f"there is no machine {name!r} here, which the log has at index {now.index}: "
                "upgrade this node first, or give it the machines that the others have"
            )
        return machine.apply(payload[end:], now)

    def _remember(self, entry: LogEntry, reply: bytes) -> None:
        sessions = self._sessions
        sessions.pop(entry.session, None)
        if len(sessions) >= SESSIONS_MAX:
            del sessions[next(iter(sessions))]  # The one that was not used for the longest time.
        short = reply if len(reply) <= REPLY_KEPT_BYTES_MAX else None
        sessions[entry.session] = Kept(entry.number, entry.index, short)

    def _hear(self, packed: bytes, session: int) -> None:
        """Remember which versions a member runs. What is no announcement changes nothing."""
        try:
            told = loads(packed)
        except ValueError:
            return
        if not isinstance(told, dict) or any(type(number) is not int for number in told.values()):
            return
        if session in self._members.values():
            self._told[session] = told

    def versions(self) -> dict[str, int]:
        """The newest version of each machine that this node can apply."""
        return {name: machine.newest_version() for name, machine in self.machines.items()}

    def announced(self, session: int) -> bool:
        """Whether a member told its versions since it is one."""
        return session in self._told

    def all_announced(self) -> bool:
        """Whether all members of the last mark did."""
        return bool(self._members) and self._told.keys() >= set(self._members.values())

    def known_versions(self, name: str) -> list[tuple[NodeId, int]]:
        """The members that told their versions, with that of one machine."""
        told = ((node, self._told.get(session)) for node, session in self._members.items())
        return sorted((node, found.get(name, 0)) for node, found in told if found is not None)

    def kept(self, session: int) -> Kept | None:
        """The last command of a named session."""
        return self._sessions.get(session)

    def begin_term(self, term: ViewId, sessions: Mapping[NodeId, int]) -> None:
        """Apply a mark: what belonged to sessions that are not in it is given up. A mark that was
        applied before, or an older one, changes nothing."""
        if term <= self.term:
            return
        self.term = term
        self._members = dict(sessions)
        alive = frozenset(sessions.values())
        self._told = {session: told for session, told in self._told.items() if session in alive}
        now = Now(self.index, term, "", 0, self.time_us)
        for machine in self.machines.values():
            machine.begin_term(now, sessions)

    def due_us(self) -> int | None:
        """The earliest log time for which a machine waits. While there is one, a node appends
        `TICK` once a second."""
        earliest: int | None = None
        for machine in self._timed:
            due_us = machine.due_us()
            if due_us is not None and (earliest is None or due_us < earliest):
                earliest = due_us
        return earliest

    def snapshot(self) -> Iterator[bytes]:
        """The states as of `index`. What changes afterwards is not in it, however late its pieces
        are asked for; the same states give the same bytes."""
        states = {name: _pieces(m.snapshot()) for name, m in self.machines.items()}
        head = {
            "index": self.index,
            "term": list(self.term),
            "time_us": self.time_us,
            "skipped": self.skipped_count,
            "sessions": len(self._sessions),
            "machines": [[n, type(m).__name__, m.version] for n, m in self.machines.items()],
            "members": sorted(self._members.items()),
            "told": sorted([session, told] for session, told in self._told.items()),
        }
        return _snapshot(dumps(head), list(self._sessions.items()), states)

    def restore(self, chunks: Iterable[bytes]) -> None:
        """Become what a snapshot was taken of. Its machines must be new. ValueError if it is
        damaged, `UpgradeError` if a newer version took it; then this replica is of no use."""
        pieces = _divided(chunks)
        if next(pieces, b"") != _SNAPSHOT:
            raise ValueError("this is no snapshot of machines, or that of a newer version")
        head = loads(next(pieces, b""))
        try:
            self._restore(head, pieces)
        except (KeyError, TypeError, StopIteration, struct.error) as e:
            raise ValueError(f"the snapshot is damaged: {type(e).__name__}: {e}") from e

    def _restore(self, head: object, pieces: Iterator[bytes]) -> None:
        if not isinstance(head, dict):
            raise ValueError("the snapshot is damaged")
        self.index, self.time_us = head["index"], head["time_us"]
        self.term = ViewId(*head["term"])
        self.skipped_count = head["skipped"]
        self._members = dict(head["members"])
        self._told = dict(head["told"])
        self._sessions = {}
        for _ in range(head["sessions"]):
            session, kept = _read_session(next(pieces))
            self._sessions[session] = kept
        found = {name: version for name, _, version in head["machines"]}
        if found.keys() != self.machines.keys():
            raise UpgradeError(
                f"the snapshot has the machines {sorted(found)}, this node {list(self.machines)}: "
                "upgrade this node first, or give it the machines that the others have"
            )
        for name, machine in self.machines.items():
            if found[name] > machine.version:
                raise UpgradeError(
                    f"version {found[name]} of {type(machine).__name__} took the snapshot, this is "
                    f"version {machine.version}: upgrade this node first"
                )
            machine.snapshot_version = found[name]
            of_machine = _until_empty(pieces)
            machine.restore(of_machine)
            for _ in of_machine:
                pass  # What it did not ask for.
            del machine.snapshot_version
        if next(pieces, None) is not None:
            raise ValueError("the snapshot is longer than its machines")

    def status(self) -> dict[str, Mapping[str, object]]:
        """For each machine what it tells of itself."""
        return {name: machine.status() for name, machine in self.machines.items()}


def command_head(name: str) -> bytes:
    """What stands before the commands of a machine in the payloads of a log."""
    raw = name.encode()
    return b"".join((_COMMAND, bytes((len(raw),)), raw))


def announcement(versions: Mapping[str, int]) -> bytes:
    """The payload by which a node tells which versions of its machines it runs."""
    return _VERSIONS + dumps(dict(versions))


def _pieces(state: bytes | Iterable[bytes]) -> Iterator[bytes]:
    return iter((state,)) if isinstance(state, bytes) else iter(state)


def _snapshot(
    head: bytes, sessions: list[tuple[int, Kept]], states: dict[str, Iterator[bytes]]
) -> Iterator[bytes]:
    """Every piece behind its size. An empty one ends a machine."""
    yield _sized(_SNAPSHOT)
    yield _sized(head)
    for session, kept in sessions:
        numbers = _REPLY.pack(session, kept.number, kept.index)
        yield _sized(numbers + (b"" if kept.reply is None else kept.reply))
    for state in states.values():
        for piece in state:
            if piece:
                yield _sized(piece)
        yield _sized(b"")


def _sized(piece: bytes) -> bytes:
    return _SIZE.pack(len(piece)) + piece


def _divided(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The pieces of a snapshot, however it was divided on its way."""
    waiting = bytearray()
    for chunk in chunks:
        waiting += chunk
        at = 0
        while len(waiting) - at >= _SIZE.size:
            (size,) = _SIZE.unpack_from(waiting, at)
            if size > PIECE_BYTES_MAX:
                raise ValueError("the snapshot is damaged: a piece is too large")
            end = at + _SIZE.size + size
            if end > len(waiting):
                break
            yield bytes(waiting[at + _SIZE.size : end])
            at = end
        del waiting[:at]
    if waiting:
        raise ValueError("the snapshot ends within a piece")


def _until_empty(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        if not piece:
            return
        yield piece
    raise ValueError("the snapshot ends within a machine")


def _read_session(piece: bytes) -> tuple[int, Kept]:
    session, number, index = _REPLY.unpack_from(piece)
    return session, Kept(number, index, piece[_REPLY.size :] or None)
