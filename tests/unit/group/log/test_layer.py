"""Rules of the log that the golden stories do not tell of: forks, false frames, limits, status."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.group.log.cluster import Cluster

from roundelay.core.contract import Origin
from roundelay.core.effects import Kind, Refuse
from roundelay.core.ids import ViewId
from roundelay.core.log import NAMED, Checkpoint, Mark, Place
from roundelay.group.log.config import LogConfig
from roundelay.group.log.messages import Ack, Offer, Probe, Ready, Reply
from roundelay.group.packer import GroupConfig
from roundelay.membership.messages import Primary
from roundelay.membership.primary import Standing
from roundelay.membership.storage import pack


def founded(names: str = "abc", **options: Any) -> Cluster:
    cluster = Cluster(names, **options)
    cluster.run(2)
    assert {m.status.state for m in cluster.members.values() if m.status} == {"open"}
    return cluster


def tell(cluster: Cluster, to: str, sender: str, message: Any) -> list[Any]:
    """The effects of a frame under the name of another member."""
    member = cluster[to]
    origin = Origin("g", sender, cluster[sender].incarnation, member.view.id)
    return member.stack.receive(origin, message)


# Who takes part


def test_a_node_without_a_journal_is_not_waited_for():
    cluster = founded(without_journal="c")
    assert cluster["c"].status is None
    assert cluster["a"].status.voters == ("a", "b", "c")
    cluster["a"].append("x")
    cluster.run(1)
    assert (cluster["a"].committed, cluster["b"].committed) == (1, 1)
    assert not cluster["c"].refused


def test_messages_of_send_are_no_entries():
    cluster = founded()
    member = cluster["a"]
    member.stack.accept(b"said")
    member.do(member.stack.flush())
    member.append("kept")
    cluster.run(1)
    assert [cluster[n].texts for n in "abc"] == [["kept"]] * 3


def test_large_messages_are_one_entry_and_small_ones_share_a_record():
    cluster = founded(group=GroupConfig(packet_bytes=200))
    cluster["a"].append("x" * 1000)
    for text in ("p", "q", "r"):
        cluster["b"].stack.append(text.encode(), 7)
    cluster["b"].do(cluster["b"].stack.flush())
    cluster.run(1)
    assert sorted(cluster["c"].texts, key=len) == ["p", "q", "r", "x" * 1000]
    counts = [r.head.count for r in cluster["c"].disk.records if hasattr(r, "head")]
    assert sorted(counts) == [1, 3]


@pytest.mark.parametrize("engine", ["totem", "dtp", "cm", "pinwheel", "fc"])
def test_engines_carry_a_log(engine):
    cluster = founded(engine=engine)
    for name in "abc":
        for i in range(5):
            cluster[name].append(f"{name}{i}")
    cluster.run(2)
    assert len(cluster["a"].texts) == 15
    assert cluster["a"].texts == cluster["b"].texts == cluster["c"].texts
    cluster.kill("a")
    cluster.run(2)
    cluster["b"].append("last")
    cluster.run(1)
    assert cluster["c"].committed == 16


# Forks


def test_who_has_the_log_of_another_founding_stops():
    cluster = founded()
    cluster["a"].append("x")
    cluster.run(1)
    cluster.kill("a", "b", "c")
    old = cluster.disks["a"]
    for name in "abc":
        cluster.start(name, lost=True)
    cluster.run(2)
    assert cluster.states("abc") == ["open"] * 3
    assert cluster["a"].texts == []
    cluster.kill("a")
    cluster.run(1)
    old.lives = 9
    cluster.disks["a"] = old
    cluster.start("a")
    cluster.run_until(lambda: bool(cluster["a"].forks))
    assert "contradict" in cluster["a"].forks[0].why
    cluster.kill("a")
    cluster.run(2)
    assert cluster.states("bc") == ["open", "open"]
    assert not cluster["b"].forks + cluster["c"].forks


def test_who_committed_more_than_a_later_generation_stops():
    cluster = founded()
    cluster["a"].append("x")
    cluster.run(1)
    cluster.kill("c")
    cluster["a"].append("y")
    cluster.run(2)
    assert cluster["b"].committed == 2
    cluster.kill("a", "b")
    # An operator goes on with the log of c, in which y is missing.
    disk = cluster.disks["c"]
    last = [r for r in disk.records if isinstance(r, Mark)][-1]
    term = ViewId(last.term.seq + 1_000_000_000_000, "c")
    disk.records.append(replace(last, term=term, base=1, voters=("c",), generation=1, lossy=True))
    disk.standing = pack(term.seq, Standing(True, Primary(term, ("c",))))
    cluster.start("c")
    cluster.run(1)
    assert cluster["c"].status.state == "open"
    assert cluster["c"].status.generation == 1
    cluster.start("b")
    cluster.run_until(lambda: bool(cluster["b"].forks))
    assert "committed" in cluster["b"].forks[0].why


def test_what_was_not_committed_gives_way_to_a_later_generation():
    cluster = founded()
    cluster["a"].append("x")
    cluster.run(1)
    cluster["c"].syncs = cluster["a"].syncs = False
    cluster["b"].append("y")
    cluster.run_until(lambda: cluster["b"].texts == ["x", "y"])
    cluster.kill("a", "b", "c", power=True)
    disk = cluster.disks["c"]
    last = [r for r in disk.records if isinstance(r, Mark)][-1]
    term = ViewId(last.term.seq + 3, "c")
    disk.records.append(replace(last, term=term, base=1, voters=("c",), generation=1, lossy=True))
    disk.standing = pack(term.seq - 3, Standing(True, Primary(term, ("c",))))
    cluster.start("c")
    cluster.run(1)
    cluster["c"].append("z")
    cluster.start("b")
    cluster.run(3)
    assert cluster["b"].texts == cluster["c"].texts == ["x", "z"]
    assert cluster["b"].status.generation == 1


def test_two_logs_at_one_place_are_told_apart_by_their_digests():
    cluster = founded()
    cluster["a"].append("x")
    cluster.run(1)
    cluster.kill("a", "b", "c")
    records = cluster.disks["b"].records
    at = next(i for i, r in enumerate(records) if hasattr(r, "head"))
    records[at] = replace(records[at], head=replace(records[at].head, crc=1))  # type: ignore[union-attr,arg-type]
    cluster.disks["b"].records = [r for r in records if not isinstance(r, Checkpoint)]
    for name in "abc":
        cluster.start(name)
    cluster.run_until(lambda: bool(cluster["b"].forks), 10)
    assert cluster["a"].forks
    assert cluster["b"].committed <= 1


# Frames that cannot be true


def opening(cluster: Cluster) -> Cluster:
    """All have offered, and nobody hears that anybody is ready."""
    cluster.loses = lambda sender, to, m: isinstance(m, Ready)
    cluster.kill("c")
    cluster.start("c")
    cluster.run(1)
    assert cluster.states("abc") == ["opening"] * 3
    return cluster


OFFER = Offer(b"L" * 16, 0, Place(ViewId(4, "a"), 0), 5, 0, 0, None, 9, (True,) * 3)


@pytest.mark.parametrize(
    "message",
    [
        replace(OFFER, place=Place(ViewId(2**61, "a"), 0)),
        replace(OFFER, have=(True,) * 4),
        OFFER,  # Another one than b has sent.
        Ready(7, (True,) * 3, (True,) * 3),
        Ready(0, (True,) * 2, (True,) * 3),
    ],
)
def test_what_cannot_be_true_is_refused_and_changes_nothing(message: Any):
    cluster = opening(founded())
    before = cluster["a"].status, dict(cluster["a"].log.opening.offers)
    effects = tell(cluster, "a", "b", message)
    assert [type(effect) for effect in effects] == [Refuse]
    assert (cluster["a"].status, dict(cluster["a"].log.opening.offers)) == before
    cluster.loses = lambda sender, to, m: False
    cluster.run(2)
    assert cluster.states("abc") == ["open"] * 3


def test_a_forged_offer_that_came_first_costs_one_view():
    cluster = founded()
    cluster.loses = lambda sender, to, m: isinstance(m, Offer) and sender == "b" and to == "a"
    cluster.kill("c")
    cluster.start("c")
    cluster.run(0.3)
    assert cluster["a"].log.opening.missing == ("b",)
    honest = cluster["b"].log.opening.offers["b"]
    forged = replace(honest, place=Place(honest.place.term, 40), digest=1)
    cluster["a"].do(tell(cluster, "a", "b", forged))
    cluster.loses = lambda sender, to, m: False
    view = cluster["a"].view
    cluster.run(8)
    assert cluster["a"].view != view
    assert cluster.states("abc") == ["open"] * 3


def test_acknowledgments_of_members_without_a_vote_count_for_nothing():
    cluster = founded()
    cluster.kill("c")
    cluster.run(1)
    member = cluster["a"]
    cluster["b"].syncs = False
    commit = member.log._commit
    assert commit is not None
    assert not commit.acknowledge("x", 5, 0)
    member.append("m")
    cluster.run(0.3)
    assert member.committed == 0
    assert not commit.acknowledge("y", 1, 0)
    assert member.committed == 0


def test_an_acknowledgment_of_more_than_there_is_commits_no_more_than_there_is():
    cluster = founded()
    for sender in "bc":
        tell(cluster, "a", sender, Ack(10**9, 0, 0))
    assert cluster["a"].committed == 0
    cluster["a"].append("x")
    cluster.run(1)
    assert cluster["a"].committed == 1


def test_frames_of_other_views_and_lives_mean_nothing():
    cluster = founded()
    member = cluster["a"]
    for origin in (
        Origin("g", "b", 0, ViewId(3, "x")),
        Origin("g", "b", 77, member.view.id),
        Origin("g", "stranger", 0, member.view.id),
    ):
        for message in (OFFER, Ack(5, 0, 0), Probe(1), Reply(1, 9), Ready(0, (), ())):
            assert member.stack.receive(origin, message) == []


def test_early_frames_are_bounded():
    cluster = founded(config=LogConfig(early_frames_max=10))
    log = cluster["a"].log
    for number in range(50):
        log.keep_early(Origin("g", "b", 0, ViewId(80, "a")), Probe(number))
    assert len(log._early) == 10
    log.keep_early(Origin("g", "b", 0, ViewId(84, "a")), Probe(0))
    assert len(log._early) == 1  # Of a view that will not come any more.


# Liveness


def test_a_member_that_offers_nothing_is_suspected():
    cluster = founded()
    cluster["c"].append("unsynced")
    cluster["c"].syncs = False
    cluster["c"].append("also unsynced")
    cluster.run(0.1)
    cluster.split("a", "bc")
    cluster.run(0.5)
    cluster.heal()
    cluster.run(1.5)
    assert "waits for the offers of c" in cluster["a"].status.why
    cluster.run(1.5)
    reasons = [e for e in cluster["a"].suspected if e.members == ("c",)]
    assert [e.reason for e in reasons] == ["it offers no log: its disk may hang"]


def test_a_node_whose_disk_is_full_offers_what_it_has_stored():
    cluster = founded()
    cluster["c"].full = True
    cluster["a"].append("x")
    cluster.run(1)
    assert cluster["c"].texts == []
    assert cluster["c"].committed == 1  # It is in memory, and on the disks of the others.
    cluster.kill("b")
    cluster.run(0.5)
    cluster.start("b")
    cluster.run(3)
    assert cluster.states("ab") == ["open", "open"]
    assert cluster["c"].status.stored == 0
    cluster["c"].full = False
    cluster.run(2)
    assert cluster["c"].texts == ["x"]


def test_members_order_no_more_than_their_disks_can_take():
    config = LogConfig(unsynced_bytes=20_000)
    cluster = founded(config=config, group=GroupConfig(packet_bytes=300))
    for name in "abc":
        cluster[name].syncs = False
        for i in range(100):
            cluster[name].append(f"{name}{i}".ljust(200))
    cluster.run(0.5)
    for name in "abc":
        log = cluster[name].log
        assert config.unsynced_bytes // 2 <= log.state.waiting_bytes < config.unsynced_bytes
        assert log.learner.joined
        assert log.waiting == 0  # And the engine is told of none, or it would count on them.
        assert log.sending.unfed
        cluster[name].syncs = True
        cluster.later(0, cluster[name].sync)
    cluster.run(2)
    assert cluster["a"].committed == 300


def test_offers_and_readiness_are_told_until_all_know_them():
    cluster = Cluster("abc")
    count = 0

    def loses(sender: str, to: str, m: Any) -> bool:
        nonlocal count
        if not isinstance(m, Offer | Ready):
            return False
        count += 1
        return count % 3 != 0

    cluster.loses = loses
    cluster.run(4)
    assert cluster.states("abc") == ["open"] * 3
    before = count
    cluster.run(5)
    assert count - before <= 12, "offers are told for ever"


# Reads


def test_reads_between_views_wait_and_are_answered_in_the_next():
    cluster = founded()
    cluster.split("a", "bc")
    cluster.run(1)
    cluster["a"].read(1)
    cluster.run(1)
    assert not cluster["a"].synced
    cluster["b"].append("x")
    cluster.run(1)
    cluster.heal()
    cluster.run(2)
    assert [(s.request, s.length) for s in cluster["a"].synced] == [(1, 1)]


def test_too_many_reads_are_sent_away():
    cluster = founded(config=LogConfig(reads_max=2))
    cluster.split("a", "bc")
    cluster.run(1)
    for number in range(4):
        cluster["a"].read(number)
    assert [(s.request, s.length) for s in cluster["a"].synced] == [(2, None), (3, None)]


# Sessions, snapshots, status


def test_an_append_to_a_forgotten_session_is_refused():
    cluster = founded(config=LogConfig(sessions_max=4))
    old = cluster["a"].open_session("old")
    for name in ("s1", "s2", "s3", "s4"):
        cluster["a"].open_session(name)
    cluster.run(1)
    cluster["a"].appended.clear()
    cluster["a"].append("late", old, 3)
    cluster["a"].append("own")
    cluster.run(1)
    told = [(a.session == old, a.forgotten, a.index) for a in cluster["a"].appended]
    assert told == [(True, True, None), (False, False, 0)]
    assert cluster["b"].texts == ["own"]


def test_opening_a_session_tells_its_last_number():
    cluster = founded()
    session = cluster["a"].open_session("client")
    assert session & NAMED
    cluster["a"].append("x", session, 41)
    cluster.run(1)
    assert cluster["b"].open_session("client") == session
    cluster.run(1)
    (opened,) = cluster["b"].appended
    assert (opened.session, opened.number, opened.count) == (session, 41, 0)


def test_a_snapshot_holds_what_the_log_amounted_to_at_its_index():
    cluster = founded()
    cluster["a"].append("x")
    cluster.run(1)
    state = cluster["a"].log.state
    then = state.checkpoint
    for text in "yz":
        cluster["b"].append(text)
        cluster.run(1)
    assert cluster["c"].stack.snapshot_state(1) == then
    assert cluster["c"].stack.snapshot_state(3) == state.checkpoint
    with pytest.raises(ValueError, match="are not committed"):
        cluster["c"].stack.snapshot_state(4)


def test_status_says_what_the_log_waits_for():
    cluster = founded("abcde")
    cluster.kill("b", "c", "d")
    cluster.run(2)
    status = cluster["a"].status
    assert (status.state, status.voters) == ("closed", ())
    assert "needs" in status.why
    assert "b, c, d" in status.why


def test_caught_up_is_told_once_in_each_open_view():
    cluster = founded()
    cluster["a"].append("x")
    cluster.run(1)
    rows = [row for row in cluster["a"].rows if row.kind is Kind.CAUGHT]
    assert [row.index for row in rows] == [0]


def test_a_token_that_brings_nothing_is_no_work_for_the_log(monkeypatch):
    stack = founded().members["a"].stack
    assert stack.log is not None
    settled: list[str] = []
    settle = stack.log.settle

    def noted() -> list[Any]:
        settled.append("settled")
        return settle()

    monkeypatch.setattr(stack.log, "settle", noted)
    stack.expire("token_retransmit")
    assert not settled
    stack.append(b"x", 0)
    stack.flush()
    assert settled
