"""Stories of catching up, on whole stacks: a learner whose window is joined, one whose donor dies,
one that must cut, one that is too far back, and a node whose disk was behind."""

from dataclasses import replace
from typing import Any

from tests.unit.group.log.cluster import Cluster
from tests.unit.group.log.hosts import replay

from roundelay.core.effects import Kind
from roundelay.core.log import Checkpoint
from roundelay.group.log.config import LogConfig
from roundelay.group.log.messages import Chunk, CutTo, Fetch

SLOW = LogConfig(
    chunk_bytes=600,
    fetch_window_bytes=4_000,
    load_bytes=4_000,
    burst_bytes=1_000,
    idle_bytes_per_s=100_000,
    catchup_bytes_per_s=100_000,
)
"""100 kB take a second, so that something can happen meanwhile."""


class Spy:
    """Looks at all frames that arrive."""

    def __init__(self, cluster: Cluster) -> None:
        self.seen: list[tuple[str, str, Any]] = []
        cluster.loses = self._look

    def _look(self, sender: str, to: str, message: Any) -> bool:
        self.seen.append((sender, to, message))
        return False

    def of(self, kind: type, to: str) -> list[tuple[str, Any]]:
        return [(s, m) for s, t, m in self.seen if t == to and isinstance(m, kind)]


def founded(config: LogConfig = SLOW, *, texts: int = 0, names: str = "abc") -> Cluster:
    """Nodes with an open view, and entries of a kilobyte."""
    cluster = Cluster(names, config=config)
    cluster.run(3)
    for i in range(texts):
        cluster["a"].append(text(i))
    cluster.run_until(lambda: all(cluster[name].committed == texts for name in names))
    return cluster


def text(i: int) -> str:
    return f"{i:06}" + "." * 994


def texts(cluster: Cluster, name: str) -> list[int]:
    return [int(text[:6]) for text in cluster[name].texts]


def caught(cluster: Cluster, name: str) -> list[int | None]:
    return [row.index for row in cluster[name].rows if row.kind is Kind.CAUGHT]


def alike(cluster: Cluster, names: str) -> None:
    """All hold the same: entries, and what a restart would make of what is on their disks."""
    first = cluster[names[0]]
    for name in names:
        member = cluster[name]
        state = member.log.state
        assert texts(cluster, name) == texts(cluster, names[0])
        assert (state.place, state.digest) == (first.log.state.place, first.log.state.digest)
        assert replay(member.disk.records).checkpoint == state.checkpoint
        assert not member.forks
        assert not member.refused
    cluster.check()


def remove(cluster: Cluster, index: int) -> None:
    """Nodes a and b remove the entries below an index."""
    for name in "ab":
        member = cluster[name]
        records = member.disk.records
        at = next(i for i in range(1, len(records)) if replay(records[:i]).length == index)
        removed = replay(records[:at])
        records[:] = [removed.checkpoint, removed.marks[-1], *records[at:]]
        member.do(member.stack.held(index, None))


def joined(cluster: Cluster, name: str) -> bool:
    status = cluster[name].status
    return bool(status.condition == "able" and status.state == "open")


def test_a_node_that_lost_its_disk_fills_up_while_the_group_goes_on() -> None:
    cluster = founded(texts=60)
    spy = Spy(cluster)
    cluster.kill("c")
    cluster.run(2)
    cluster.start("c", lost=True)
    cluster.run_until(lambda: len(spy.of(Chunk, "c")) > 10)
    assert cluster["c"].status.condition == "filling"
    for i in range(60, 80):
        cluster["a"].append(text(i))
        cluster.run(0.005)
    assert texts(cluster, "a")[-1] > 60
    assert not caught(cluster, "c")
    cluster.run(4)
    alike(cluster, "abc")
    assert texts(cluster, "c") == list(range(80))
    assert caught(cluster, "c")
    assert joined(cluster, "c")
    assert {sender for sender, _ in spy.of(Chunk, "c")} == {"a"}
    # What came while it filled up came by the ring, and was not fetched too.
    assert sum(len(m.data) for _, m in spy.of(Chunk, "c")) < 75_000


def test_a_small_window_is_outrun_and_the_learner_still_joins() -> None:
    cluster = founded(replace(SLOW, live_window_bytes=5_000), texts=40)
    cluster.kill("c")
    cluster.run(2)
    spy = Spy(cluster)
    cluster.start("c", lost=True)
    cluster.run_until(lambda: len(spy.of(Chunk, "c")) > 5)
    for i in range(40, 100):
        cluster["b"].append(text(i))
        cluster.run(0.005)
    cluster.run(5)
    alike(cluster, "abc")
    assert texts(cluster, "c") == list(range(100))
    assert joined(cluster, "c")
    assert sum(len(m.data) for _, m in spy.of(Chunk, "c")) > 90_000


def test_the_donor_dies_in_the_middle() -> None:
    cluster = founded(texts=60, names="abcde")
    cluster.kill("c")
    cluster.run(2)
    spy = Spy(cluster)
    cluster.start("c", lost=True)
    cluster.run_until(lambda: len(texts(cluster, "c")) > 20)
    (donor,) = {sender for sender, _ in spy.of(Chunk, "c")}
    had = len(texts(cluster, "c"))
    cluster.kill(donor)
    spy.seen.clear()
    others = "abde".replace(donor, "")
    cluster.run_until(lambda: joined(cluster, "c"))
    cluster.run(1)
    alike(cluster, "c" + others)
    assert len(texts(cluster, "c")) == 60
    fetches = [m for name in others for _, m in spy.of(Fetch, name)]
    assert min(m.place.length for m in fetches) >= had


def test_another_donor_goes_on_where_the_first_one_fell_silent() -> None:
    """The donor is not dead: its chunks get lost, so the view stays."""
    cluster = founded(texts=60)
    cluster.kill("c")
    cluster.run(2)
    spy = Spy(cluster)
    cluster.start("c", lost=True)
    cluster.run_until(lambda: len(texts(cluster, "c")) > 20)
    view = cluster["c"].view
    (first,) = {sender for sender, _ in spy.of(Chunk, "c")}
    look = spy._look
    cluster.loses = lambda s, to, m: look(s, to, m) or (s == first and isinstance(m, Chunk))
    had = len(texts(cluster, "c"))
    cluster.run_until(lambda: cluster["c"].log.learner.joined)
    assert cluster["c"].view == view
    other = "ab".replace(first, "")
    assert min(m.place.length for _, m in spy.of(Fetch, other)) >= had
    cluster.run(3)
    alike(cluster, "abc")


def test_a_tail_that_nobody_else_has_is_cut_before_the_rest_is_fetched() -> None:
    cluster = founded(texts=10)
    for name in "ab":
        cluster[name].syncs = False
    for i in range(10, 14):
        cluster["c"].append(text(i))
    cluster.run_until(lambda: texts(cluster, "c") == list(range(14)))
    cluster.kill("a", "b", power=True)
    cluster.split("c", "ab")
    cluster.start("a")
    cluster.start("b")
    cluster.run(3)
    for i in range(20, 30):
        cluster["a"].append(text(i))
    cluster.run(2)
    assert cluster["b"].committed == 20
    spy = Spy(cluster)
    cluster.heal()
    cluster.run(5)
    alike(cluster, "abc")
    assert texts(cluster, "c") == [*range(10), *range(20, 30), *range(10, 14)]
    assert len(spy.of(CutTo, "c")) == 1
    cuts = [row.index for row in cluster["c"].rows if row.kind is Kind.CUT]
    assert cuts == [10]
    assert cluster["c"].committed == 24


def test_a_node_that_was_away_fetches_what_it_missed_and_no_more() -> None:
    cluster = founded(texts=60)
    cluster.kill("c")
    for i in range(60, 80):
        cluster["a"].append(text(i))
    cluster.run(2)
    spy = Spy(cluster)
    cluster.start("c")
    cluster.run(3)
    alike(cluster, "abc")
    assert joined(cluster, "c")
    assert 20_000 < sum(len(m.data) for _, m in spy.of(Chunk, "c")) < 26_000


def test_a_node_whose_disk_stalls_does_not_hold_up_the_others_and_comes_back() -> None:
    cluster = founded(replace(SLOW, unsynced_bytes=10_000, live_window_bytes=10_000))
    cluster["c"].syncs = False
    for i in range(60):
        cluster["a"].append(text(i))
        cluster.run(0.005)
    cluster.run(0.5)
    assert cluster["a"].committed == cluster["b"].committed == 60
    assert cluster["c"].status.condition == "behind"
    state = cluster["c"].log.state
    assert state.waiting_bytes < 15_000
    view = cluster["c"].view
    cluster["c"].syncs = True
    cluster.later(0, cluster["c"].sync)
    cluster.run(3)
    alike(cluster, "abc")
    assert joined(cluster, "c")
    assert cluster["c"].view == view


def test_when_all_disks_stall_the_senders_send_again_in_another_view() -> None:
    """Each node dropped packets that no other node has either."""
    cluster = founded(replace(SLOW, unsynced_bytes=5_000, live_window_bytes=5_000))
    for name in "abc":
        cluster[name].syncs = False
    for i in range(60):
        cluster["a"].append(text(i))
        cluster.run(0.005)
    for name in "abc":
        cluster[name].syncs = True
        cluster.later(0, cluster[name].sync)
    cluster.run(8)
    assert texts(cluster, "a") == list(range(60))
    alike(cluster, "abc")
    assert cluster["a"].committed == 60


def test_a_new_node_begins_where_the_others_begin() -> None:
    cluster = founded(texts=60)
    remove(cluster, 30)
    cluster.kill("c")
    cluster.run(2)
    cluster.start("c", lost=True)
    cluster.run(5)
    assert joined(cluster, "c")
    assert cluster["c"].status.first == 30
    assert isinstance(cluster["c"].disk.records[0], Checkpoint)
    assert texts(cluster, "c") == list(range(30, 60))
    alike(cluster, "abc")


def test_a_log_that_begins_within_the_present_term_is_no_fork() -> None:
    """While the learner fetches, the others remove more than the view adopted."""
    cluster = founded(replace(SLOW, live_window_bytes=5_000), texts=20)
    cluster.kill("c")
    cluster.run(2)
    spy = Spy(cluster)
    look = spy._look
    cluster.loses = lambda s, to, m: look(s, to, m) or isinstance(m, Chunk)
    cluster.start("c", lost=True)
    cluster.run_until(lambda: len(spy.of(Chunk, "c")) > 2)
    for i in range(20, 60):
        cluster["a"].append(text(i))
    cluster.run_until(lambda: all(cluster[name].committed == 60 for name in "ab"))
    view = cluster["c"].view
    remove(cluster, 50)
    cluster.loses = look
    cluster.run(5)
    assert cluster["c"].view == view
    assert joined(cluster, "c")
    assert texts(cluster, "c") == list(range(50, 60))
    alike(cluster, "abc")
