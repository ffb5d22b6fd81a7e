"""The whole stack: messages in packets, an engine that orders them, views that come and go. And, at
a node with a journal, the replicated log on top of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.core.contract import Boot, Codec, CoreStatus, EngineFactory, Origin
from roundelay.core.effects import Effect
from roundelay.core.ids import NodeId, Terms
from roundelay.core.log import Checkpoint, LogStatus
from roundelay.group.delivery import Delivery
from roundelay.group.log import messages as log_messages
from roundelay.group.log.codec import LogCodec
from roundelay.group.log.config import TIMER as LOG_TIMER
from roundelay.group.log.config import LogConfig
from roundelay.group.log.log import ReplicatedLog
from roundelay.group.log.messages import LOG_MESSAGES, LogMessage
from roundelay.group.packer import GroupConfig
from roundelay.membership.codec import MembershipCodec
from roundelay.membership.config import MembershipConfig
from roundelay.membership.machine import Membership
from roundelay.membership.messages import FIRST_TAG, MESSAGES, NO_TERMS


def _no_journal(
    payload: bytes, stamp_us: int, session: int | None = None, number: int | None = None
) -> int:
    raise AssertionError("this node has no journal")


class StackCodec:
    """Codecs on one wire: membership's tags begin where engines' end, and those of the log where
    membership's end. A node without a journal does not understand the log's."""

    def __init__(self, engine: Codec[Any], *, log: bool = False) -> None:
        self._membership = MembershipCodec()
        self._log = LogCodec() if log else None
        tags = {} if self._log is None else self._log.tags
        self.tags: Mapping[int, str] = {**engine.tags, **self._membership.tags, **tags}
        self._encode_engine = engine.encode
        self._decode_engine = engine.decode

    def encode(self, message: Any) -> tuple[int, bytes]:
        if type(message) in MESSAGES:
            return self._membership.encode(message)
        if self._log is not None and type(message) in LOG_MESSAGES:
            return self._log.encode(message)
        return self._encode_engine(message)

    def decode(self, tag: int, data: bytes, start: int) -> Any:
        if tag >= log_messages.FIRST_TAG and self._log is not None:
            return self._log.decode(tag, data, start)
        if tag >= FIRST_TAG:
            return self._membership.decode(tag, data, start)
        return self._decode_engine(tag, data, start)


class StackStatus:
    """The status of a Stack, read from the parts that know it."""

    def __init__(
        self, delivery: Delivery, membership: Membership, log: ReplicatedLog | None
    ) -> None:
        self._log = log
        self._packer = delivery.packer
        self._assembler = delivery.assembler
        self._membership = membership

    @property
    def accepted(self) -> int:
        return self._packer.next

    @property
    def waiting_packets(self) -> int:
        return self._packer.waiting

    @property
    def incomplete_bytes(self) -> int:
        return self._assembler.bytes

    @property
    def lives(self) -> Mapping[NodeId, int]:
        return self._membership.lives

    @property
    def phase(self) -> str:
        return str(self._membership.phase)

    @property
    def gather(self) -> str:
        return str(self._membership.gather_reason)

    @property
    def terms(self) -> Terms:
        return self._membership.terms

    @property
    def log(self) -> LogStatus | None:
        return None if self._log is None else self._log.status()


class Stack:
    """A Core for a node of a group that anybody may join, leave and find again; a LogCore if the
    node has a journal."""

    def __init__(
        self,
        boot: Boot,
        founders: tuple[NodeId, ...],
        engine: EngineFactory,
        config: MembershipConfig | None = None,
        group: GroupConfig | None = None,
        terms: Terms = NO_TERMS,
        log: LogConfig | None = None,
    ) -> None:
        """`terms` are how this node was set up, for its peers to compare."""
        self.delivery = Delivery(boot, group)
        self.engine = engine(boot.node, self.delivery.packer)
        self.delivery.serve(self.engine)
        self.membership = Membership(boot, founders, self.engine, config, terms)
        self.log: ReplicatedLog | None = None
        if boot.journal is not None:
            self.log = ReplicatedLog(boot, self.membership, self.delivery.packer, log, group)
            self.delivery.log = self.delivery.packer.log_source = self.log
        self._codec = StackCodec(self.engine.codec, log=self.log is not None)
        self._status = StackStatus(self.delivery, self.membership, self.log)
        self.accept = self.delivery.packer.accept  # Bound here: every message passes it.
        self.append = _no_journal if self.log is None else self.log.sending.append  # Likewise.

    @property
    def codec(self) -> Codec[Any]:
        return self._codec

    @property
    def status(self) -> CoreStatus:
        return self._status

    def start(self) -> list[Effect[Any]]:
        return self._to_driver(self.membership.start())

    def flush(self) -> list[Effect[Any]]:
        if self.log is not None:
            self.log.record()
            rows = self.log.pop()  # Before those of the packets that bring the messages.
            return [*rows, *self._to_driver(self.membership.submit())]
        effects = self.delivery.accepted()
        submitted = self.membership.submit()
        if submitted or self.membership.waiting:
            effects += self._to_driver(submitted)
        return effects

    def receive(self, origin: Origin, message: Any) -> list[Effect[Any]]:
        if self.log is not None and type(message) in LOG_MESSAGES:
            return self._receive_log(self.log, origin, message)
        effects = self.membership.receive(origin, message)
        if self.membership.waiting or self.log is not None:
            return self._to_driver(effects, seldom=True)
        return self.delivery.to_driver(effects)

    def receive_many(self, origin: Origin, messages: Sequence[Any]) -> list[Effect[Any]]:
        apart = self.log is not None and not LOG_MESSAGES.isdisjoint(map(type, messages))
        effects = None if apart else self.membership.receive_many(origin, messages)
        if effects is None:
            return [effect for message in messages for effect in self.receive(origin, message)]
        return self._to_driver(effects, seldom=True)

    def expire(self, timer: str) -> list[Effect[Any]]:
        if self.log is not None and timer.startswith(LOG_TIMER):
            self.log.expire(timer)
            return self._to_driver([])
        return self._to_driver(self.membership.expire(timer), seldom=True)

    def leave(self) -> list[Effect[Any]]:
        return self._to_driver(self.membership.leave())

    # Of the replicated log

    def open_session(self, name: str, stamp_us: int) -> int:
        return self._the_log.open_session(name, stamp_us)

    def sync(self, request: int) -> list[Effect[Any]]:
        self._the_log.sync(request)
        return self._to_driver([])

    def stored(self, number: int) -> list[Effect[Any]]:
        self._the_log.stored(number)
        return self._to_driver([])

    def unstored(self, number: int) -> list[Effect[Any]]:
        self._the_log.unstored(number)
        return self._to_driver([])

    def loaded(self, request: int, records: Sequence[bytes] | None) -> list[Effect[Any]]:
        self._the_log.loaded(request, records)
        return self._to_driver([])

    def snapshot_loaded(self, request: int, data: bytes | None, size: int) -> list[Effect[Any]]:
        self._the_log.snapshot_loaded(request, data, size)
        return self._to_driver([])

    def held(self, first: int, snapshot: int | None) -> list[Effect[Any]]:
        self._the_log.held(first, snapshot)
        return self._to_driver([])

    def snapshot_state(self, index: int) -> Checkpoint:
        return self._the_log.snapshot_state(index)

    @property
    def _the_log(self) -> ReplicatedLog:
        assert self.log is not None, "this node has no journal"
        return self.log

    def _receive_log(
        self, log: ReplicatedLog, origin: Origin, message: LogMessage
    ) -> list[Effect[Any]]:
        """A frame of another node's log. Those of the ring that is being formed wait; those of
        other views mean nothing."""
        membership = self.membership
        if membership.includes(origin):
            log.receive(origin, message)
        elif membership.forming.includes(origin):
            log.keep_early(origin, message)
        else:
            return []
        return self._to_driver([], seldom=True)

    # Effects

    def _to_driver(self, effects: list[Effect[Any]], *, seldom: bool = False) -> list[Effect[Any]]:
        """Effects for the driver. A new view's engine starts once the queue knows what the old
        view left to be sent again. `seldom` says that the log may have nothing to do: tokens come
        again and again, and acknowledgments of what is committed already."""
        log = self.log
        if log is None:
            return self._run(effects)
        made = self._with_rows(effects)
        if seldom and not (log.told or log.out):
            return made
        while True:
            made += log.settle()
            if (suspicion := log.suspicion) is not None:
                log.suspicion = None
                made += self._with_rows(self.membership.suspect(suspicion))
            elif log.fed:
                log.fed = False
                made += self.delivery.accepted()
                made += self._with_rows(self.membership.submit())
            else:
                return made

    def _with_rows(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        """As `_run`, behind the rows of messages that may be sent by these effects: the log adds
        to the queue while the engine takes from it."""
        return [*self.delivery.accepted(), *self._run(effects)]

    def _run(self, effects: list[Effect[Any]]) -> list[Effect[Any]]:
        made = self.delivery.to_driver(effects)
        while self.membership.waiting:
            made += self.delivery.to_driver(self.membership.begin())
        return made
