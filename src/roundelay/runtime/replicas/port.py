"""The port of one machine at a running node: what its faces reach their log and state through."""

import asyncio
import concurrent.futures
import weakref
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from roundelay.core.ids import NodeId
from roundelay.runtime.errors import ClosedError, ConfigError, NotPrimaryError
from roundelay.runtime.replicas.site import Limit, Site
from roundelay.structures.arguments import Arguments
from roundelay.structures.errors import GapError
from roundelay.structures.machine import Machine
from roundelay.structures.port import NO_OPTIONS, Options
from roundelay.structures.replica import command_head

M = TypeVar("M", bound=Machine)
R = TypeVar("R")

WATCH_MAX = 10_000
"""Changes that may wait for one watcher. Too small: bursts end watching; too large: a watcher that
never reads holds memory."""


class NodePort(Generic[M]):
    """One machine at a node."""

    def __init__(self, site: Site, name: str, make: Callable[[], M]) -> None:
        self.site = site
        self.machine: M = site.add(name, make, self)
        """The state of this node."""
        self.lock = site.lock
        self._name = name
        self._head = command_head(name)
        self._watchers: weakref.WeakSet[_Changes] = weakref.WeakSet()
        """Those who watch; one that is forgotten is gone."""

    @property
    def face(self) -> M:
        """What an application uses."""
        return type(self.machine).bind(self)

    def status(self) -> dict[str, object]:
        """What the node shows of this machine."""
        machine, replica = self.machine, self.site.replica
        return {
            "kind": type(machine).__name__,
            **machine.status(),
            "watchers": len(self._watchers),
            "versions": dict(replica.known_versions(self._name)),
        }

    # As the port of faces

    @property
    def node(self) -> NodeId:
        return self.site.node

    @property
    def session(self) -> int:
        return self.site.session

    @property
    def index(self) -> int:
        return self.site.replica.index

    @property
    def primary(self) -> bool:
        return self.site.primary

    def fresh(self) -> int:
        return self.site.fresh()

    def write(self, method: Arguments, given: tuple[Any, ...], options: Options) -> Awaitable[Any]:
        if options is NO_OPTIONS and method.version == 1:
            command = method.simple_command(given)
            if command is not None:
                issued = self.site.issue(self._name, method, given, self._head + command)
                if issued is not None:
                    return issued
        return self._write(method, given, options)

    async def _write(self, method: Arguments, given: tuple[Any, ...], options: Options) -> Any:
        """As `write`, if it may have to wait before anything is sent, or is out of the ordinary."""
        payload = self._head + method.command(given)
        limit = Limit(options.timeout_s)
        if method.version > 1:
            await self.site.may_send(self._name, method, limit)
        if options.session is not None:
            return await self.site.write_once(method, payload, options, limit)
        return await self.site.write(self._name, method, payload, limit, placed=options.placed)

    async def sync(self, options: Options) -> None:
        limit = Limit(options.timeout_s)
        try:
            length = await self.site.log.sync(options.timeout_s)
        except TimeoutError as e:
            raise NotPrimaryError(f"the state may be old: {e}") from None
        try:
            async with asyncio.timeout_at(limit.at):
                await self.site.applied(length - 1)
        except TimeoutError:
            raise NotPrimaryError(
                f"the state is old: what is committed up to index {length - 1} was not applied "
                f"here within {options.timeout_s:g} s"
            ) from None

    def look(self, run: Callable[[Any], R]) -> R:
        with self.lock:
            return run(self.machine)

    async def until(self, ready: Callable[[Any], R | None]) -> R:
        return await self.site.until(lambda: self.look(ready))

    async def limited(self, work: Coroutine[Any, Any, R], timeout_s: float | None) -> R:
        async with asyncio.timeout(timeout_s):
            return await work

    def background(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self.site.background(work)

    def changes(self) -> "_Changes":
        made = _Changes(self.site, self._forget)
        with self.lock:
            self._watchers.add(made)
            vars(self.machine)["told"] = self._tell
        return made

    def _tell(self, change: object) -> None:
        if not self._watchers:
            vars(self.machine).pop("told", None)
        for watcher in self._watchers:
            watcher.tell(change)

    def _forget(self, watcher: "_Changes") -> None:
        with self.lock:
            self._watchers.discard(watcher)

    def miss(self) -> None:
        """The state was replaced: watchers have missed what led to it."""
        for watcher in self._watchers:
            watcher.miss()
        if self._watchers:
            vars(self.machine)["told"] = self._tell

    def end(self) -> None:
        """The node has ended."""
        for watcher in self._watchers:
            watcher.more.set()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        loop, error = self.site.loop, self.site.error
        if loop is None or error is not None:
            work.close()
            raise error or ConfigError("the group is not joined yet")
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is loop:
            work.close()
            raise ConfigError("`wait` would stop the event loop; use `await` here")
        if self.site.runner is not None:
            done: R = self.site.runner(work)
            return done
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise self.site.error or ClosedError("the group was left") from None
        except BaseException:
            future.cancel()  # A signal interrupted it.
            raise


class _Changes:
    """The changes that wait for one who watches."""

    def __init__(self, site: Site, forget: "Callable[[_Changes], None]") -> None:
        self.more = asyncio.Event()
        self._site = site
        self._forget = forget
        self._waiting: deque[object] = deque()
        self._missed = False

    async def take(self) -> object:
        while not self._waiting:
            if self._missed:
                raise GapError(
                    "changes were missed: more came than may wait, or the state was taken from a "
                    "snapshot; read what is there, then watch again"
                )
            if self._site.error is not None:
                raise self._site.error
            self.more.clear()
            await self.more.wait()
        return self._waiting.popleft()

    def close(self) -> None:
        self._forget(self)

    def tell(self, change: object) -> None:
        if len(self._waiting) >= WATCH_MAX:
            self._missed = True
        elif not self._missed:
            self._waiting.append(change)
        self.more.set()

    def miss(self) -> None:
        self._missed = True
        self.more.set()
