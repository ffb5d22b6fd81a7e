"""The group as an application sees it."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from itertools import count, repeat
from os import PathLike
from types import TracebackType
from typing import Any, Self

from roundelay.core.contract import QueueFullError as StackFullError
from roundelay.core.ids import NodeId, Service, View
from roundelay.runtime import descriptors
from roundelay.runtime.addressees import addressees
from roundelay.runtime.assembly import make_node, open_port
from roundelay.runtime.control import ControlServer
from roundelay.runtime.errors import ClosedError, ConfigError, QueueFullError
from roundelay.runtime.events import Arrival, Batch, Event, Message
from roundelay.runtime.inbox import Inbox
from roundelay.runtime.machine import Machine
from roundelay.runtime.node import Node
from roundelay.runtime.port import Port, Ports
from roundelay.runtime.receipts import Receipt
from roundelay.runtime.settings import TIMEOUT_S, Settings, settings
from roundelay.runtime.status import status

LEAVE_S = 5.0
"""How long `leave` waits for this node's own messages to be delivered."""
POLL_BYTES = 16_384
"""Delivered between two looks at the socket."""
LOOK_S = 0.000_05
"""Not more often than so, however much is delivered."""
TURN_S = 0.010
"""After so long other tasks have their turn, also if there is more to read."""
LOOK_MESSAGES = 64
"""Given to the application between two looks at the clock."""


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
    state: str | PathLike[str] | None = None,
    trace: str | PathLike[str] | None = None,
    control: str | PathLike[str] | None = None,
    **more: Any,
) -> "Group":
    """A node of a group, to be used as `async with join(...) as group`.

    `peers` maps the name of every node, this one included, to its `host:port`. The others may start
    later. With a `state` directory the node is the same one after a crash; without, it is a new one
    of the old name. `Settings` says what else there is, and what it means.
    """
    given = {
        "group": group,
        "node": node,
        "peers": peers,
        "bind": bind,
        "multicast": multicast,
        "engine": engine,
        "options": options or {},
        "timeout_s": timeout_s,
        "state": state,
        "trace": trace,
        "control": control,
    }
    return Group(settings({**given, **more}))


class Group:
    """A node's membership in one group: an async context manager, and an iterator over events.

    It is used from one event loop. Whatever waits raises ClosedError when the group is left.
    """

    def __init__(self, settings: Settings, machine: Machine | None = None) -> None:
        """`machine` is the one that the node runs on; tests give it another."""
        self.settings = settings
        self._machine = machine or Machine()
        self._node: Node | None = None
        self._port: Port | None = None
        self._control: ControlServer | None = None
        self._reading = False
        self._reader: asyncio.Task[Any] | None = None
        """The task that reads events, or did last."""
        self._turn_ends = 0.0
        """When whoever reads events has to let others run ..."""
        self._look_due = 0.0
        """... and when it next looks at the socket."""
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
        # Whoever leaves because of an error does not wait for what is under way.
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
            node = await make_node(self.settings, port, self._machine)
            undo.callback(node.close, ClosedError("the node did not start"))
            if self.settings.control is not None:
                control = ControlServer(
                    self.settings.control, node, self.settings.peers, self.status
                )
                await control.start()
                self._control = control
            undo.pop_all()
        node.on_view = self._watch
        node.on_close = self._fail_watchers
        self._node, self._port = node, port
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
                    await node.settled()
        finally:
            node.leave()
            await self._release()

    async def closed(self) -> ClosedError:
        """Wait until the group is left, or ends by a failure; returns why."""
        node = self._running
        if node.error is None:
            await node.ended.wait()
        assert node.error is not None
        return node.error

    async def _release(self) -> None:
        if self._port is not None:
            port, self._port = self._port, None
            Ports.of(asyncio.get_running_loop()).close(port)
        if self._control is not None:
            control, self._control = self._control, None
            await control.close()

    # Sending

    async def send(
        self, payload: bytes, *, safe: bool = False, to: Iterable[NodeId] | None = None
    ) -> Receipt:
        """Send a message to the group, this node included, once the queue has room for it.

        Returns when it is accepted, not when it is delivered: await the receipt for that. `safe`
        messages are delivered only once every member has them. `to` names peers who are to
        deliver it, where the engine can do that.
        """
        node = self._running
        service = Service.SAFE if safe else Service.AGREED
        destinations = addressees(to, self.settings.peers)
        if node.crowded() and asyncio.current_task() is not self._reader:
            await asyncio.sleep(node.stall_s)  # Whoever reads goes first; but only for a moment.
        while True:
            try:
                number = node.accept(payload, service, destinations)
            except QueueFullError:
                await node.room()
            else:
                return node.receipts.give(number)

    def send_nowait(
        self, payload: bytes, *, safe: bool = False, to: Iterable[NodeId] | None = None
    ) -> int:
        """As `send`, without waiting and without a receipt: QueueFullError if there is no room.
        Returns the message's number."""
        node = self._node
        if node is not None and node.flush_due and not safe and to is None:
            # The usual case, which may come by the million: others wait, and it goes with them.
            try:
                return node.put(payload)
            except (StackFullError, ValueError, TypeError):
                pass  # Below it is refused once more, in other words.
        service = Service.SAFE if safe else Service.AGREED
        destinations = addressees(to, self.settings.peers)
        return self._running.accept(payload, service, destinations)

    # Receiving

    async def batches(self) -> AsyncIterator[Arrival]:
        """What arrives, in the group's order: messages as they travelled together, and views.

        Ends when the group is left. One iteration at a time, of this or of the group itself."""
        inbox = self._begin_reading()
        waiting, take = inbox.waiting, inbox.take
        left = POLL_BYTES
        try:
            while waiting or await inbox.ready():
                arrival = take()
                yield arrival
                if type(arrival) is Batch:
                    left -= arrival.size
                    if left <= 0:
                        left = POLL_BYTES
                        await self._breathe()
        finally:
            self._reading = False

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Messages one by one, and views."""
        async for arrival in self.batches():
            if isinstance(arrival, View):
                yield arrival
                continue
            payloads = arrival.payloads
            for first in range(0, len(payloads), LOOK_MESSAGES):
                if first:
                    await self._breathe()
                some = payloads[first : first + LOOK_MESSAGES]
                for message in map(Message, some, repeat(arrival), count(first)):
                    yield message

    async def take(self, most: int = 64) -> list[Arrival]:
        """What waits, at least one arrival; none once the group is left."""
        inbox = self._begin_reading()
        try:
            if not await inbox.ready():
                return []
            return [inbox.take() for _ in range(min(most, len(inbox.waiting)))]
        finally:
            self._reading = False

    def _begin_reading(self) -> Inbox:
        node = self._running
        if self._reading:
            raise ConfigError("events of this group are read already; iterate in one place only")
        self._reading = True
        self._reader = asyncio.current_task()
        self._turn_ends = 0.0
        return node.inbox

    async def _breathe(self) -> None:
        """Let the group go on while the application is busy with what it got."""
        node, port = self._node, self._port
        if node is None or port is None or node.error is not None:
            return
        now = time.monotonic()
        if now < self._look_due:
            return
        self._look_due = now + LOOK_S
        port.poll()
        node.flush()
        if now > self._turn_ends:
            self._turn_ends = now + TURN_S
            await asyncio.sleep(0)

    def ignore(self) -> None:
        """Throw away what arrives from now on: for nodes that only send."""
        self._running.inbox.ignore()

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
        timeout_s: float = 30.0,
    ) -> View:
        """Wait for a regular view with all of these members, by default every peer; TimeoutError
        after `timeout_s`. It takes nothing from the events."""
        wanted = set(self.settings.peers if members is None else members)

        def fits(view: View) -> bool:
            whole = wanted.issubset(view.members) and not view.transitional
            return whole and (view.primary or not primary)

        return await self.wait_for_view(fits, timeout_s=timeout_s)

    async def wait_for_view(self, fits: Callable[[View], bool], *, timeout_s: float = 30.0) -> View:
        """Wait for a view of which `fits` is true, the present one included."""
        node = self._running
        if node.error is not None:
            raise node.error
        if fits(self.view):
            return self.view
        future: asyncio.Future[View] = asyncio.get_running_loop().create_future()
        self._watchers.append((fits, future))
        async with asyncio.timeout(timeout_s):
            return await future

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
