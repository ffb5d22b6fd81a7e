"""Any mixture of loss, repetition, reordering, slow disks, dying donors and view changes.

The log of a learner is always a beginning of the best one, and in the end all have the same.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.unit.group.log.hosts import (
    Host,
    Wires,
    arrival,
    begin_term,
    mark,
    opening,
    same,
    store,
    take_snapshot,
    write,
)

from roundelay.core.log import Checkpoint, Mark
from roundelay.group.log.config import LogConfig

NAMES = ("a", "b", "c", "d")


class CatchUp(RuleBasedStateMachine):
    """`a` and `b` hold the best log; `c` has a beginning and a tail that nobody else has, `d` has
    nothing. In each view the smallest node that is alive and holds the best log adopts it."""

    application = False

    @initialize(
        window=st.sampled_from([400, 3_000, 1 << 20]),
        live=st.sampled_from([600, 3_000, 1 << 20]),
        unsynced=st.sampled_from([4_000, 1 << 20]),
        removed=st.booleans(),
        size=st.sampled_from([5, 900]),
    )
    def begin(self, window: int, live: int, unsynced: int, removed: bool, size: int) -> None:
        config = LogConfig(
            chunk_bytes=200,
            fetch_window_bytes=window,
            live_window_bytes=live,
            unsynced_bytes=unsynced,
            load_bytes=1_000,
            burst_bytes=1_000,
            snapshot_part_bytes=300,
            application=self.application,
        )
        self.wires = Wires()
        self.hosts = self.wires.add(*NAMES, config=config)
        a, b, c, _ = self.hosts
        for host in (a, b):
            for term in (1, 2, 4):
                begin_term(host, term)
                for n in range(12):
                    write(host, arrival(n, session=9 + term, size=size))
                    write(host, opening(f"{term} {n // 5}"))
            if removed:
                host.state.show_committed(36)
                take_snapshot(host, bytes(1000))
                host.disk.remove_before(20, host.state)
                if self.application:
                    host.disk.remove_before(36, host.state)
        begin_term(c, 1)
        for n in range(5):
            write(c, arrival(n, session=10, size=size))
            write(c, opening(f"1 {n // 5}"))
        begin_term(c, 3)
        write(c, opening("lost"), arrival(0, session=77))
        self.view = 10
        self.number = 0
        self.packets: list[tuple[int, int]] = []
        """Those of this view, in order; a member has delivered the first of them."""
        self.delivered: dict[str, int] = {}
        self.enter()

    @property
    def alive(self) -> list[Host]:
        return [host for host in self.hosts if host.name not in self.wires.dead]

    def enter(self) -> None:
        """All that live enter a view."""
        self.view += 1
        self.packets = []
        self.wires.frames.clear()
        for host in self.alive:
            store(host)
            self.delivered[host.name] = 0
        best = max(host.state.place for host in self.alive)
        self.best = [host for host in self.alive if host.state.place == best]
        names = tuple([host.name for host in self.best])
        for host in self.alive:
            donors = tuple([name for name in names if name != host.name])
            host.enter(mark(self.view, best), best, donors)

    @rule(data=st.data(), copies=st.sampled_from([0, 1, 1, 1, 2]))
    def frame(self, data: st.DataObject, copies: int) -> None:
        if self.wires.frames:
            most = min(7, len(self.wires.frames) - 1)
            self.wires.arrive(data.draw(st.integers(0, most)), copies=copies)

    @rule(count=st.integers(1, 40))
    def frames(self, count: int) -> None:
        for _ in range(min(count, len(self.wires.frames))):
            self.wires.arrive()

    @rule(name=st.sampled_from(NAMES), times=st.integers(1, 10))
    def disk(self, name: str, times: int) -> None:
        host = self.wires.hosts[name]
        for _ in range(times):
            if name not in self.wires.dead:
                host.disk.work(host)

    @rule(name=st.sampled_from(NAMES))
    def time_goes_by(self, name: str) -> None:
        host = self.wires.hosts[name]
        if name not in self.wires.dead:
            for timer in list(host.timers):
                host.expire(timer)

    @rule(again=st.booleans(), size=st.sampled_from([5, 500]))
    def packet(self, again: bool, size: int) -> None:
        """The group orders a log packet, or one that came before."""
        if not (again and self.packets):
            self.number += 1
        self.packets.append((self.number, size))

    @rule(name=st.sampled_from(NAMES), count=st.integers(1, 10))
    def deliver(self, name: str, count: int) -> None:
        if name in self.wires.dead:
            return
        for _ in range(count):
            self._deliver(self.wires.hosts[name])

    def _deliver(self, host: Host) -> bool:
        at = self.delivered[host.name]
        if at == len(self.packets):
            return False
        self.delivered[host.name] += 1
        number, size = self.packets[at]
        host.live(arrival(number - 1, session=5, size=size))
        return True

    @precondition(lambda self: len(self.wires.dead) < 2)
    @rule(name=st.sampled_from(NAMES))
    def crash(self, name: str) -> None:
        """A node dies, which may be the donor; never the last one with the best log."""
        if [host.name for host in self.best if host.name not in self.wires.dead] != [name]:
            self.wires.dead.add(name)

    @rule()
    def view_change(self) -> None:
        """The view ends with the same deliveries at all; who died comes back with its disk."""
        for host in self.alive:
            while self._deliver(host):
                pass
        for name in list(self.wires.dead):
            self.wires.hosts[name].leave()
            self.wires.hosts[name].restart()
        for host in self.alive:
            host.leave()
        self.wires.dead.clear()
        self.enter()

    @invariant()
    def every_log_is_a_beginning_of_the_best(self) -> None:
        if not hasattr(self, "best"):
            return
        best = max((host for host in self.best), key=lambda host: host.state.place)
        for host in self.hosts:
            assert not host.forks
            assert not host.refused
            learner = host.learner
            assert learner._window.bytes <= host.config.live_window_bytes
            if learner.filled or host in self.best:
                digest = best.state.digest_at(host.state.place)
                assert digest is None or digest == host.state.digest
            if learner.joined:
                assert learner.reflected == learner.delivered == self.delivered[host.name]

    def teardown(self) -> None:
        if not hasattr(self, "best"):
            return
        for host in self.alive:
            while self._deliver(host):
                pass
        if self.wires.dead:
            self.view_change()  # As membership would, when it misses a member.
        self.wires.settle(5_000)
        if any(host.learner.stuck for host in self.alive):
            self.view_change()
            self.wires.settle(5_000)
        for host in self.alive:
            store(host)
            assert host.learner.joined
            assert same(host, self.alive[0])
            records = host.disk.records
            if isinstance(records[0], Checkpoint):
                assert isinstance(records[1], Mark)


class CatchUpWithSnapshots(CatchUp):
    """The same with an application's state: who is too far back needs a snapshot."""

    application = True


TestCatchUp = CatchUp.TestCase
TestCatchUp.settings = settings(max_examples=20, stateful_step_count=50, deadline=None)
TestCatchUpWithSnapshots = CatchUpWithSnapshots.TestCase
TestCatchUpWithSnapshots.settings = settings(max_examples=20, stateful_step_count=50, deadline=None)
