"""The group as an application sees it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Self

from roundelay.core.contract import QueueFullError as CoreFullError
from roundelay.core.ids import NodeId, Service, View
from roundelay.runtime import descriptors
from roundelay.runtime.addressees import addressees
from roundelay.runtime.assembly import make_node, open_port
from roundelay.runtime.control import ControlServer, Handler
from roundelay.runtime.errors import ClosedError, ConfigError, QueueFullError
from roundelay.runtime.events import Arrival, Event, Payload
from roundelay.runtime.log.api import Log
from roundelay.runtime.log.applying import StateMachine
from roundelay.runtime.machine import Machine
from roundelay.runtime.node import Node
from roundelay.runtime.port import Port
from roundelay.runtime.ports import Ports
from roundelay.runtime.reading import Batches, Events, Reading
from roundelay.runtime.receipts import Receipt
from roundelay.runtime.sealing import no_key
from roundelay.runtime.sending import Sending
from roundelay.runtime.settings import (
    BACKLOG_BYTES,
    CATCHUP_BYTES_PER_S,
    CATCHUP_SHARE,
    QUEUE_BYTES,
    RECENT_S,
    SEGMENT_BYTES,
    SNAPSHOT_BYTES,
    TIMEOUT_S,
    Settings,
    settings,
)
from roundelay.runtime.status import status

LEAVE_S = 5.0
"""How long `leave` waits for this node's own messages to be delivered, in seconds."""
WAIT_S = 30.0
"""How long `wait_for` waits for others by default, in seconds."""
TAKE_BYTES = 1024 * 1024
"""Bytes given at a time to a reader with a queue of its own. They count as unread until it comes
for more. Too small: many calls between threads; too large: the group waits while that queue is
read."""


def join(
    group: str,
    *,
    node: str,
    peers: Mapping[str, str],
    bind: str | None = None,
    multicast: str | None = None,
    engine: str = "totem",
    options: Mapping[str, object] | None = None,
    timeout_s: float = TIMEOUT_S,
    datagram_bytes: int | None = None,
    queue_bytes: int = QUEUE_BYTES,
    backlog_bytes: int = BACKLOG_BYTES,
    key: str | PathLike[str] | None = None,
    cipher: str | None = None,
    state: str | PathLike[str] | None = None,
    journal: str | PathLike[str] | None = None,
    fsync: str = "always",
    retain_bytes: int | None = None,
    retain_s: float | None = None,
    segment_bytes: int = SEGMENT_BYTES,
    snapshot_bytes: int = SNAPSHOT_BYTES,
    catchup_bytes_per_s: int = CATCHUP_BYTES_PER_S,
    catchup_share: float = CATCHUP_SHARE,
    machine: StateMachine | None = None,
    trace: str | PathLike[str] | None = None,
    trace_every_row: bool = False,
    trace_frames: bool = False,
    trace_roll_s: float | None = None,
    recent_s: float = RECENT_S,
    run: str = "",
    check: bool = False,
    record: str | PathLike[str] | None = None,
    control: str | PathLike[str] | None = None,
) -> "Group":
    """A node of a group, to be used as `async with join(...) as group`.

    `peers` maps the name of every node, this one included, to its `host:port`. The others may start
    later. With a `state` directory the node is the same one after a crash; without, it is a new one
    of the old name. With a `journal` the group has a log, `group.log`, and what the log holds is
    applied to the `machine`, if one is given. `Settings` says what each of the others means.
    """
    return Group(
        settings(
            {
                "group": group,
                "node": node,
                "peers": peers,
                "bind": bind,
                "multicast": multicast,
                "engine": engine,
                "options": options or {},
                "timeout_s": timeout_s,
                "datagram_bytes": datagram_bytes,
                "queue_bytes": queue_bytes,
                "backlog_bytes": backlog_bytes,
                "key": key,
                "cipher": cipher,
                "state": state,
                "journal": journal,
                "fsync": fsync,
                "retain_bytes": retain_bytes,
                "retain_s": retain_s,
                "segment_bytes": segment_bytes,
                "snapshot_bytes": snapshot_bytes,
                "catchup_bytes_per_s": catchup_bytes_per_s,
                "catchup_share": catchup_share,
                "trace": trace,
                "trace_every_row": trace_every_row,
                "trace_frames": trace_frames,
                "trace_roll_s": trace_roll_s,
                "recent_s": recent_s,
                "run": run,
                "check": check,
                "record": record,
                "control": control,
            }
        ),
        state_machine=machine,
    )


class Group:
    """A node's membership in one group: an async context manager, and an iterator over events.

    It is used from one event loop. Whatever waits raises ClosedError when the group is left.
    """

    def __init__(
        self,
        settings: Settings,
        machine: Machine | None = None,
        *,
        state_machine: StateMachine | None = None,
    ) -> None:
        """`machine` is the one that the node runs on; tests give it another. The log is applied to
        `state_machine`."""
        if state_machine is not None and settings.journal is None:
            raise ConfigError("a machine follows the log, and there is none; set journal too")
        self.settings = settings
        """What it was joined with."""
        self._machine = machine or Machine()
        self._state_machine = state_machine
        self._log: Log | None = None
        self.requests: dict[str, Handler] = {}
        """Answers further requests that come to the control socket, by their names."""
        self._node: Node | None = None
        self._port: Port | None = None
        self._sending: Sending | None = None
        self._control: ControlServer | None = None
        self._reading: Reading | None = None
        self._watchers: list[tuple[Callable[[View], bool], asyncio.Future[View]]] = []

    # Joining and leaving

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # After an error nobody waits for messages that are under way.
        await self.leave(timeout_s=0.0 if kind is not None else LEAVE_S)

    async def start(self) -> None:
        """Begin to run; `async with` does this. Raises a StartError if this machine forbids it."""
        if self._node is not None:
            raise ConfigError("this group was joined already; make another with join(...)")
        descriptors.check()
        ports = Ports.of(asyncio.get_running_loop())
        async with contextlib.AsyncExitStack() as undo:
            port = open_port(self.settings)
            undo.callback(ports.close, port)
            node = await make_node(self.settings, port, self._machine, self._state_machine)
            if node.log is not None:
                undo.push_async_callback(node.log.closed)
            undo.callback(node.close, ClosedError("the node did not start"))
            if self.settings.control is not None:
                control = ControlServer(
                    self.settings.control, node, self.settings.peers, self.status, self.requests
                )
                await control.start()
                self._control = control
            undo.pop_all()
        node.deliveries.on_view = self._watch
        node.on_close = self._fail_watchers
        self._node, self._port = node, port
        self._sending = node.sending
        self._reading = Reading(node, port, self.settings)
        if node.log is not None:
            node.log.looks = self._reading
            self._log = Log(node.log)
        node.start()

    async def leave(self, timeout_s: float = LEAVE_S) -> None:
        """Wait until this node's messages are delivered, at most for `timeout_s`; then tell the
        others and stop. Leaving twice is no error."""
        node = self._node
        if node is None:
            return
        try:
            with contextlib.suppress(TimeoutError, ClosedError):
                async with asyncio.timeout(timeout_s):
                    await node.sending.wait_until_delivered()
                    if node.log is not None:
                        await node.log.until_committed()
        finally:
            node.leave()
            await self._release()

    async def wait_closed(self) -> ClosedError:
        """Wait until the group is left, or ends by a failure; returns why."""
        node = self._running
        if node.error is None:
            await node.ended.wait()
        assert node.error is not None
        return node.error

    async def _release(self) -> None:
        if self._node is not None and self._node.log is not None:
            await self._node.log.closed()
        if self._port is not None:
            port, self._port = self._port, None
            Ports.of(asyncio.get_running_loop()).close(port)
        if self._control is not None:
            control, self._control = self._control, None
            await control.close()

    # Sending

    async def send(
        self, payload: Payload, *, safe: bool = False, to: Iterable[NodeId] | None = None
    ) -> Receipt:
        """Send a message to the group, this node included, once the queue has room for it.

        Returns when it is accepted, not when it is delivered: await the receipt for that. `safe`
        messages are delivered only once every member has them. `to` names peers who are to
        deliver it, where the engine can do that. QueueFullError if too much waits to be read, and
        this task is the one that reads, or nobody does.
        """
        return await self._send(asyncio.current_task(), payload, safe, to)

    async def _send(
        self, who: object, payload: Payload, safe: bool, to: Iterable[NodeId] | None
    ) -> Receipt:
        node, reading = self._running, self._reads
        service = Service.SAFE if safe else Service.AGREED
        destinations = addressees(to, self.settings.peers)
        if node.backlogged() and who != reading.who:
            await asyncio.sleep(node.stall_s)  # The reader goes first, but only for a moment.
        while True:
            if node.deliveries.inbox.bytes > reading.limit_bytes:
                await reading.make_room(who)
            try:
                number = node.sending.accept(payload, service, destinations)
            except QueueFullError:
                await node.sending.wait_for_room()
            else:
                receipt = node.sending.receipts.give(number)
                node.sending.hurry()
                return receipt

    def send_nowait(
        self, payload: Payload, *, safe: bool = False, to: Iterable[NodeId] | None = None
    ) -> int:
        """As `send`, without waiting and without a receipt: QueueFullError if there is no room.
        Returns the message's number."""
        sending = self._sending
        if sending is not None and sending.flush_due and not safe and to is None:
            # A short cut for the usual case, which may come by the million: a flush is due.
            try:
                return sending.put(payload)  # type: ignore[arg-type]  # Other types are refused.
            except (CoreFullError, ValueError, TypeError):
                pass  # Below it is copied and accepted, or refused with a better message.
        return self._send_nowait(_current_task(), payload, safe, to)

    def _send_nowait(
        self, who: object, payload: Payload, safe: bool, to: Iterable[NodeId] | None
    ) -> int:
        node, reading = self._running, self._reads
        if reading.must_wait(who):
            raise reading.full("read events, or use `await send`, which waits for a reader")
        service = Service.SAFE if safe else Service.AGREED
        number = node.sending.accept(payload, service, addressees(to, self.settings.peers))
        node.sending.hurry()
        return number

    # Receiving

    def __aiter__(self) -> AsyncIterator[Event]:
        """Messages one by one, and views; ends when the group is left.

        Reading can stop and begin again at any time, also by being cancelled: it goes on at the
        next event. One reads at a time, events or batches: ConfigError for a second one."""
        return Events(self._reads)

    def batches(self) -> AsyncIterator[Arrival]:
        """What arrives, in the group's order: messages as they travelled together, and views.

        As with single events, reading can stop and go on; a batch that was given is read."""
        return Batches(self._reads)

    async def take(self, most: int = 64) -> list[Arrival]:
        """The arrivals that wait, at least one; none once the group is left. They count as unread
        until the next call."""
        return await self._take(asyncio.current_task(), most)

    async def _take(self, who: object, most: int) -> list[Arrival]:
        return await self._reads.lend(who, most, TAKE_BYTES)

    def ignore(self) -> None:
        """Throw away what arrives from now on: for nodes that only send."""
        self._running.deliveries.inbox.ignore()

    # The log

    @property
    def log(self) -> Log:
        """What was appended, in one order, for ever; ConfigError without a `journal`."""
        if self._log is None:
            self._running  # noqa: B018  # Which may say more.
            raise ConfigError("this node keeps no log; join the group with journal=...")
        return self._log

    # Views

    @property
    def view(self) -> View:
        """The view this node is in; the events of it may still wait to be read."""
        view = self._running.view
        assert view is not None, "a node that runs is in a view"
        return view

    async def wait_for(
        self,
        members: Iterable[NodeId] | None = None,
        *,
        primary: bool = False,
        timeout_s: float = WAIT_S,
    ) -> View:
        """Wait for a regular view with all of these members, by default every peer; TimeoutError
        after `timeout_s`, by default 30 s, which says who is missing. It takes nothing from the
        events."""
        wanted = self._wanted(members)

        def fits(view: View) -> bool:
            whole = wanted.issubset(view.members) and not view.transitional
            return whole and (view.primary or not primary)

        try:
            return await self.wait_for_view(fits, timeout_s=timeout_s)
        except TimeoutError:
            missing = sorted(wanted.difference(self.view.members))
            lacks = f"{', '.join(missing)} did not come"
            if not missing:
                lacks = "all are there, but their view is not the primary one"
            raise TimeoutError(f"not within {timeout_s:g} s: {lacks}") from None

    def _wanted(self, members: Iterable[NodeId] | None) -> frozenset[NodeId]:
        peers = self.settings.peers
        if members is None:
            return frozenset(peers)
        if isinstance(members, str):
            raise ConfigError(
                f"wait_for takes the names of several nodes; write wait_for([{members!r}])"
            )
        wanted = frozenset(members)
        strangers = sorted(map(repr, wanted.difference(peers)))
        if strangers:
            raise ConfigError(
                f"{strangers[0]} is none of the peers and will never come; the peers are: "
                f"{', '.join(sorted(peers))}"
            )
        return wanted

    async def wait_for_view(
        self, fits: Callable[[View], bool], *, timeout_s: float = WAIT_S
    ) -> View:
        """Wait for a view of which `fits` is true, the present one included; TimeoutError after
        `timeout_s`."""
        node = self._running
        if node.error is not None:
            raise node.error
        if fits(self.view):
            return self.view
        future: asyncio.Future[View] = asyncio.get_running_loop().create_future()
        self._watchers.append((fits, future))
        try:
            async with asyncio.timeout(timeout_s):
                return await future
        except TimeoutError:
            raise TimeoutError(f"no such view within {timeout_s:g} s") from None

    def _watch(self, view: View) -> None:
        for fits, future in self._watchers:
            if not future.done() and fits(view):
                future.set_result(view)
        self._watchers = [(f, future) for f, future in self._watchers if not future.done()]

    def _fail_watchers(self, error: ClosedError) -> None:
        for _, future in self._watchers:
            if not future.done():
                future.set_exception(error)
        self._watchers.clear()

    def reload_key(self) -> dict[str, Any]:
        """Read the key file again, and use what it holds from now on; returns the state of the
        seal, and under `changed` whether the file held other keys. A StartError or ConfigError if
        the file cannot be used: then the keys stay as they were."""
        sealing = self._running.sealing
        if sealing is None:
            raise no_key()
        return sealing.reload()

    def status(self) -> dict[str, Any]:
        """What `roundelay status` shows."""
        node, port = self._running, self._port
        if port is None:
            raise ClosedError(f"group {self.settings.group!r} was left")
        return status(node, port, self.settings)

    @property
    def _running(self) -> Node:
        if self._node is None:
            raise ConfigError("the group is not joined yet; use `async with join(...) as group`")
        return self._node

    @property
    def _reads(self) -> Reading:
        if self._reading is None:
            raise ConfigError("the group is not joined yet; use `async with join(...) as group`")
        return self._reading


def _current_task() -> asyncio.Task[Any] | None:
    """The task that runs; None outside an event loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
