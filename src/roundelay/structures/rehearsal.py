"""A log in memory, for tests of machines: of ours and of applications.

    log = Rehearsal(Accounts, nodes=("a", "b"))
    bank = log.face("a")
    bank.deposit.wait("ann", 10)
    log.restart("b")

Every node has its own copy of the state, and each command is applied at all of them at once, with
its replies compared. Time is the rehearsal's own: it passes by `pass_s`, and when nothing else can
go on. Whatever happens depends on the calls alone.
"""

import contextlib
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import NAMED
from roundelay.structures.arguments import Arguments, read_reply
from roundelay.structures.errors import GapError
from roundelay.structures.machine import Machine
from roundelay.structures.port import NO_OPTIONS, Options, Placed
from roundelay.structures.replica import TICK, LogEntry, Replica, command_head

M = TypeVar("M", bound=Machine)
R = TypeVar("R")

WATCH_MAX = 1024
"""Changes that may wait for one watcher."""
_STEPS_MAX = 100_000


class CancelledJob(BaseException):  # As asyncio's: what catches Exception lets it pass.
    """Thrown into a job by `cancel`."""


class Job(Generic[R]):
    """A coroutine that the rehearsal runs beside others."""

    def __init__(self, work: Coroutine[Any, Any, R]) -> None:
        self._work = work
        self._result: R | None = None
        self.error: BaseException | None = None
        self.done = False

    @property
    def result(self) -> R:
        """What the coroutine returned; raises what it raised."""
        if self.error is not None:
            raise self.error
        assert self.done, "the job has not ended yet"
        return self._result  # type: ignore[return-value]

    def step(self) -> None:
        """Go on up to the next place where the job waits."""
        self._go(lambda: self._work.send(None))

    def cancel(self) -> None:
        """Throw into the job, as a task of asyncio that is cancelled."""
        if not self.done:
            self._go(lambda: self._work.throw(CancelledJob()))

    def _go(self, on: Callable[[], object]) -> None:
        try:
            on()
        except StopIteration as e:
            self._result, self.done = e.value, True
        except BaseException as e:
            if isinstance(e, KeyboardInterrupt):
                raise
            self.error, self.done = e, True


@types.coroutine
def _pause() -> Generator[None, None, None]:
    yield


class Rehearsal(Generic[M]):
    """A log in memory with a copy of the state per node."""

    def __init__(
        self,
        make: Callable[[], M],
        nodes: tuple[NodeId, ...] = ("a",),
        *,
        name: str = "",
        start_us: int = 1_700_000_000_000_000,
    ) -> None:
        self._make = make
        self._head = command_head(name)
        self._name = name
        self.clock_us = start_us
        """What every node's wall clock shows."""
        self.entries: list[LogEntry] = []
        self.marks: dict[int, list[tuple[ViewId, dict[NodeId, int]]]] = {}
        """The marks before the entry of an index."""
        self.replicas: dict[NodeId, Replica] = {}
        self.sessions: dict[NodeId, int] = {}
        self.ports: dict[NodeId, _Port[M]] = {}
        self._lives = 0
        self._terms = 0
        self._numbers: dict[int, int] = {}
        self._jobs: list[Job[Any]] = []
        self._later: list[Callable[[], Coroutine[Any, Any, object]]] = []
        self._deadlines: list[int] = []
        self.members: tuple[NodeId, ...] = ()
        for node in nodes:
            self._join(node)
        self.begin_term(*nodes)

    # The group.

    def face(self, node: NodeId = "a") -> M:
        """A face of the machine at a node."""
        machine = self.ports[node].machine
        return type(machine).bind(self.ports[node])

    def state(self, node: NodeId = "a") -> M:
        """The state that a node has."""
        return self.ports[node].machine

    def begin_term(self, *members: NodeId) -> None:
        """Open a view with these members. Other nodes are not primary, and see nothing of what is
        committed until they are members again."""
        self._terms += 1
        term = ViewId(self._terms, min(members))
        self.members = members
        sessions = {node: self.sessions[node] for node in members}
        self.marks.setdefault(len(self.entries), []).append((term, sessions))
        for node in members:
            self.ports[node].catch_up()
        self.settle()

    def restart(self, node: NodeId) -> M:
        """Kill a node and start it again: with a new session, and with the state of a snapshot.
        Returns a face; old ones are of no use."""
        self.kill(node)
        port = self._join(node)
        donor = min(self.members, default=None)
        if donor is not None:
            port.restore(b"".join(self.replicas[donor].snapshot()))
        self.begin_term(*dict.fromkeys((*self.members, node)))
        return self.face(node)

    def kill(self, node: NodeId) -> None:
        """End a node. The others notice it when the next term begins."""
        self.ports[node].dead = True
        self.members = tuple(n for n in self.members if n != node)

    def _join(self, node: NodeId) -> "_Port[M]":
        self._lives += 1
        self.sessions[node] = 1000 + self._lives
        replica = self.replicas[node] = Replica({self._name: self._make()})
        port = self.ports[node] = _Port(self, node, replica, self._name)
        return port

    # The log.

    def append(self, node: NodeId, payload: bytes, options: Options = NO_OPTIONS) -> bytes | None:
        """Commit an entry and return the reply, which is the same at all members."""
        return self.append_at(node, payload, options)[1]

    def append_at(self, node: NodeId, payload: bytes, options: Options) -> tuple[int, bytes | None]:
        """The same, and the index."""
        session = self.sessions[node]
        number = self._numbers.get(session, 0)
        if options.session is not None:
            assert options.number is not None
            session, number = NAMED | hash_of(options.session), options.number
            kept = self.replicas[node].kept(session)
            if kept is not None and number <= kept.number:
                return kept.index, kept.reply
        self._numbers[session] = number + 1
        term = ViewId(self._terms, min(self.members))
        index = len(self.entries)
        entry = LogEntry(index, payload, term, node, session, number, self.clock_us)
        self.entries.append(entry)
        replies = {self.ports[member].catch_up() for member in self.members}
        assert len(replies) == 1, f"nodes reply differently to {payload!r}: {replies}"
        return index, replies.pop()

    # Time and jobs.

    def pass_s(self, seconds: float) -> None:
        """Let time pass, and ticks come if somebody waits for log time."""
        end_us = self.clock_us + round(seconds * 1_000_000)
        while self.clock_us < end_us:
            self.clock_us = min(end_us, self.clock_us + 1_000_000)
            if self.members and self.replicas[self.members[0]].due_us() is not None:
                self.append(min(self.members), TICK)
            self.settle()

    def start(self, work: Coroutine[Any, Any, R]) -> Job[R]:
        """Run a coroutine beside the caller."""
        job = Job(work)
        self._jobs.append(job)
        self.settle()
        return job

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine to its end; time passes while it only waits for time."""
        job = self.start(work)
        while not job.done:
            later = [at for at in self._deadlines if at > self.clock_us]
            if not later:
                raise RuntimeError("this would wait for ever")
            self.pass_s((min(later) - self.clock_us) / 1_000_000)
        self.settle()  # What the job left to the background.
        return job.result

    def settle(self) -> None:
        """Run all jobs until they all wait."""
        for _ in range(_STEPS_MAX):
            before = self._progress()
            later, self._later = self._later, []
            self._jobs += [Job(make()) for make in later]
            for job in list(self._jobs):
                if not job.done:
                    job.step()
            self._jobs = [job for job in self._jobs if not job.done]
            if self._progress() == before and not self._later:
                return
        raise RuntimeError("jobs that never wait")

    def _progress(self) -> tuple[int, int, int]:
        waiting = sum(not job.done for job in self._jobs)
        return len(self.entries), waiting, sum(port.taken_count for port in self.ports.values())


class _Port(Generic[M]):
    """The port of one life of a node."""

    def __init__(self, log: Rehearsal[M], node: NodeId, replica: Replica, name: str) -> None:
        self.log = log
        self.node = node
        self.session = log.sessions[node]
        self.dead = False
        self._replica = replica
        self._name = name
        self._marked = 0
        self._mark_index = 0
        self._fresh = 0
        self._watchers: list[_Changes] = []

    @property
    def machine(self) -> M:
        return self._replica.machines[self._name]  # type: ignore[return-value]

    @property
    def lock(self) -> AbstractContextManager[object]:
        return contextlib.nullcontext()

    @property
    def index(self) -> int:
        return self._replica.index

    @property
    def primary(self) -> bool:
        return not self.dead and self.node in self.log.members

    @property
    def taken_count(self) -> int:
        """Changes that those who watch have seen."""
        return sum(watcher.taken_count for watcher in self._watchers)

    def fresh(self) -> int:
        self._fresh += 1
        return self._fresh

    def catch_up(self) -> bytes | None:
        """Apply what this node has not applied yet. Returns the last reply."""
        reply = None
        while True:
            index = self._replica.index
            marks = self.log.marks.get(index, [])
            if index != self._mark_index:
                self._marked, self._mark_index = 0, index
            for term, sessions in marks[self._marked :]:
                self._replica.begin_term(term, sessions)
            self._marked = len(marks)
            if index == len(self.log.entries):
                return reply
            reply = self._replica.apply(self.log.entries[index])

    def restore(self, snapshot: bytes) -> None:
        """Take a state that was current when the last term began."""
        self._replica.restore([snapshot[n : n + 7] for n in range(0, len(snapshot), 7)])
        self._mark_index = self._replica.index
        self._marked = len(self.log.marks.get(self._mark_index, []))

    async def write(self, method: Arguments, given: tuple[Any, ...], options: Options) -> Any:
        command = method.command(given)
        while not self.primary:
            await self._wait()
        index, reply = self.log.append_at(self.node, self.log._head + command, options)
        assert reply is not None
        found = read_reply(method, reply, index)
        return Placed(found, index) if options.placed else found

    async def sync(self, options: Options) -> None:
        while not self.primary:
            await self._wait()

    def look(self, run: Callable[[Any], R]) -> R:
        return run(self.machine)

    async def until(self, ready: Callable[[Any], R | None]) -> R:
        while (found := ready(self.machine)) is None:
            await self._wait()
        return found

    async def limited(self, work: Coroutine[Any, Any, R], timeout_s: float | None) -> R:
        if timeout_s is None:
            return await work
        deadline_us = self.log.clock_us + round(timeout_s * 1_000_000)
        self.log._deadlines.append(deadline_us)
        job = Job(work)
        try:
            while True:
                job.step()
                if job.done:
                    return job.result
                if self.log.clock_us >= deadline_us:
                    raise TimeoutError(f"nothing within {timeout_s} s")
                await self._wait()
        except BaseException:
            job.cancel()
            raise
        finally:
            self.log._deadlines.remove(deadline_us)

    def background(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        self.log._later.append(work)

    def changes(self) -> "_Changes":
        watcher = _Changes(self._wait, self._watchers)
        vars(self.machine)["told"] = self._tell
        return watcher

    def _tell(self, change: object) -> None:
        for watcher in self._watchers:
            watcher.tell(change)

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        return self.log.run(work)

    async def _wait(self) -> None:
        await _pause()
        if self.dead:
            raise CancelledJob


class _Changes:
    """The changes that wait for one who watches."""

    def __init__(self, wait: Callable[[], Coroutine[Any, Any, None]], all_: "list[_Changes]"):
        self.taken_count = 0
        self._waiting: deque[object] = deque()
        self._missed = False
        self._wait = wait
        self._all = all_
        all_.append(self)

    def tell(self, change: object) -> None:
        if len(self._waiting) < WATCH_MAX:
            self._waiting.append(change)
        else:
            self._missed = True

    async def take(self) -> object:
        while not self._waiting:
            if self._missed:
                raise GapError("more changes came than may wait")
            await self._wait()
        self.taken_count += 1
        return self._waiting.popleft()

    def close(self) -> None:
        if self in self._all:
            self._all.remove(self)


def hash_of(name: str) -> int:
    """The rehearsal's number of a named session."""
    return int.from_bytes(name.encode()[:7].ljust(7, b"\0"), "big")
