"""The stories that the specification of the log decides (R1 to R13), on whole stacks."""

from typing import Any

from tests.unit.group.log.cluster import Cluster, Member

from roundelay.core.effects import Kind
from roundelay.group.log.messages import Ack, Offer, Ready, Reply
from roundelay.protocols.totem import Data


def is_data(m: Any) -> bool:
    """Whether a frame of the engine brings a packet."""
    return isinstance(m, Data)


def logs(cluster: Cluster, name: str) -> str:
    """The log of a node as `m0@1 m1@2`, the terms of views counted by those with entries."""
    used = sorted({term for n in cluster.members for _, term in cluster[n].terms})
    number = {term: i for i, term in enumerate(used)}
    return " ".join(f"{text}@{number[term]}" for text, term in cluster[name].terms)


def opened(member: Member) -> list[int]:
    return [row.index for row in member.rows if row.kind is Kind.OPEN and row.index is not None]


def settle(cluster: Cluster, *open_nodes: str, seconds: float = 3.0) -> None:
    cluster.run(seconds)
    for name in open_nodes:
        assert cluster[name].status.state == "open", (name, cluster[name].status)
    cluster.check()


def founded(names: str = "abc", **options: Any) -> Cluster:
    cluster = Cluster(names, **options)
    settle(cluster, *names)
    return cluster


def stop_disks(cluster: Cluster, names: str) -> None:
    for name in names:
        cluster[name].syncs = False


def resume_disks(cluster: Cluster, names: str) -> None:
    for name in names:
        cluster[name].syncs = True
        cluster.later(0, cluster[name].sync)


def test_r1_two_of_three_have_it_and_the_sender_is_cut_off():
    cluster = founded()
    stop_disks(cluster, "c")
    cluster.loses = lambda sender, to, m: isinstance(m, Ack)  # Nobody knows that it is committed.
    cluster["a"].append("m0")
    cluster.run_until(lambda: cluster["b"].texts == ["m0"])
    cluster.split("a", "bc")
    resume_disks(cluster, "c")
    cluster.loses = lambda sender, to, m: False
    settle(cluster, "b", "c")
    assert cluster["a"].status.state == "closed"
    assert cluster["b"].texts == cluster["c"].texts == ["m0"]
    assert cluster["b"].status.voters == ("a", "b", "c")
    assert cluster["b"].committed == cluster["c"].committed == 1
    assert opened(cluster["b"])[-1] == 1


def test_r2_only_the_sender_has_it():
    cluster = founded()
    cluster.split("a", "bc")
    # Packets and tokens of the old view go nowhere, but the sender orders and stores alone.
    cluster["a"].append("m0")
    settle(cluster, "b", "c")
    cluster["b"].append("m1")
    cluster.run(1)
    cluster.heal()
    settle(cluster, "a", "b", "c")
    assert {logs(cluster, name) for name in "abc"} == {"m1@0 m0@1"}
    assert [a.index for a in cluster["a"].appended] == [1]


def kept_by(cluster: Cluster, text: str, *, stored: str, others: str, sender: str = "a") -> None:
    """A message is delivered to all and stored by some, and nobody knows what others stored."""
    stop_disks(cluster, others)
    cluster.loses = lambda sender, to, m: isinstance(m, Ack)
    cluster[sender].append(text)
    cluster.run_until(lambda: all(text in cluster[n].texts for n in stored))
    cluster.run(0.05)
    assert all(text not in cluster[n].texts for n in others)


def test_r3_stored_by_two_of_three_when_the_power_fails():
    cluster = founded()
    kept_by(cluster, "m0", stored="ab", others="c")
    cluster.kill("a", "b", "c", power=True)
    cluster.loses = lambda sender, to, m: False
    cluster.start("b")
    cluster.start("c")
    settle(cluster, "b", "c")
    assert cluster["b"].texts == cluster["c"].texts == ["m0"]
    assert cluster["c"].committed == 1


def test_r4_stored_by_the_sender_alone_when_the_power_fails():
    cluster = founded()
    kept_by(cluster, "m0", stored="a", others="bc")
    cluster.kill("a", "b", "c", power=True)
    cluster.loses = lambda sender, to, m: False
    cluster.start("b")
    cluster.start("c")
    settle(cluster, "b", "c")
    cluster.start("a")
    settle(cluster, "a", "b", "c")
    assert [cluster[n].texts for n in "abc"] == [[], [], []]
    assert Kind.CUT in [row.kind for row in cluster["a"].rows]
    assert not cluster["a"].appended


def test_r5_any_two_of_three_go_on_in_turn():
    cluster = founded()
    cluster.kill("c")
    settle(cluster, "a", "b")
    cluster["a"].append("m0")
    cluster.run(1)
    cluster.kill("b")
    settle(cluster)
    assert cluster["a"].status.state == "closed"
    cluster.start("c")
    settle(cluster, "a", "c")
    assert cluster["a"].texts == cluster["c"].texts == ["m0"]
    assert cluster["a"].status.voters == ("a", "b", "c")
    assert cluster["c"].committed == 1


def test_r6_old_voters_alone_are_not_enough():
    cluster = founded("abcde")
    cluster.kill("d", "e")
    settle(cluster, "a", "b", "c")
    cluster.kill("c")
    settle(cluster, "a", "b")
    cluster["a"].append("m0")
    cluster.run(1)
    assert cluster["a"].committed == 1
    cluster.kill("b")
    cluster.split("a", "cde")
    for name in "cde":
        cluster.start(name)
    settle(cluster)
    assert cluster.states("cde") == ["closed"] * 3
    cluster.heal()
    settle(cluster, "a", "c", "d", "e")
    assert {logs(cluster, name) for name in "acde"} == {"m0@0"}
    assert cluster["a"].status.voters == ("a", "c", "d", "e")


def test_r7_a_lost_disk_does_not_vote_until_it_is_filled():
    cluster = founded()
    stop_disks(cluster, "c")
    cluster["a"].append("m0")
    cluster.run(1)
    assert cluster["a"].committed == 1
    cluster.kill("a", "b", "c", power=True)
    cluster.start("b", lost=True)
    cluster.start("c")
    settle(cluster)
    assert cluster.states("bc") == ["closed", "closed"]
    assert cluster["b"].status.condition == "not able"
    cluster.start("a")
    settle(cluster, "a", "b", "c")
    assert [cluster[n].texts for n in "abc"] == [["m0"]] * 3
    assert cluster["b"].status.condition == "able"
    cluster.run(2)
    cluster.kill("c")
    settle(cluster, "a", "b")
    assert cluster["a"].status.voters == ("a", "b", "c")
    assert cluster["b"].texts == ["m0"]


def never_opens(names: str, extra: tuple[type, ...] = ()) -> Any:
    """Keeps a view of these members from opening: what they store is never told."""
    return lambda sender, to, m: sender in names and isinstance(m, (Ready, *extra))


def test_r8_a_view_that_may_have_opened_blocks_those_without_its_members():
    cluster = founded("abcde")
    for name in "abc":
        cluster[name].syncs = False  # Nobody offers.
    cluster.split("abc", "de")
    cluster.run_until(lambda: all(cluster[n].view.members == ("a", "b", "c") for n in "abc"))
    cluster.split("ade", "bc")
    resume_disks(cluster, "abc")
    settle(cluster)
    assert cluster.states("ade") == ["closed"] * 3
    assert "one of b, c" in cluster["a"].status.why
    assert "may have opened" in cluster["a"].status.why
    cluster.split("bcd", "a", "e")
    settle(cluster, "b", "c", "d")
    assert cluster["b"].status.voters == ("b", "c", "d")


def test_r9_half_of_the_voters_of_an_attempt_are_enough():
    cluster = founded("abcdefg")
    cluster.loses = never_opens("abcd")
    cluster.split("abcd", "efg")
    members = ("a", "b", "c", "d")
    cluster.run_until(lambda: all(cluster[n].view.members == members for n in "abcd"))
    cluster.run(0.1)
    assert cluster.states("abcd") == ["opening"] * 4
    cluster.split("aefg", "bcd")
    cluster.run(3)
    assert cluster.states("aefg") == ["closed"] * 4
    cluster.loses = lambda sender, to, m: False
    cluster.split("abefg", "c", "d")
    settle(cluster, "a", "b", "e", "f", "g")
    assert cluster["a"].status.voters == ("a", "b", "e", "f", "g")


def test_r10_a_client_repeats_through_another_node():
    cluster = founded()
    for name in "abc":
        session = cluster[name].open_session("client")
    cluster.run(1)
    assert [a.count for n in "abc" for a in cluster[n].appended] == [0, 0, 0]
    stop_disks(cluster, "bc")
    cluster["a"].append("m0", session, 0)
    cluster.run_until(lambda: cluster["a"].texts == ["m0"] and bool(cluster["b"].waiting))
    cluster.run(0.01)
    cluster.kill("a", power=True)
    resume_disks(cluster, "bc")
    settle(cluster, "b", "c")
    cluster["c"].append("m0", session, 0)
    cluster.run(1)
    assert cluster["c"].appended[-1].index == 0
    cluster["b"].append("m1", session, 1)
    cluster.run(1)
    assert cluster["b"].appended[-1].index == 1
    assert cluster["b"].texts == cluster["c"].texts == ["m0", "m1"]


def test_r11_a_read_waits_for_what_was_committed_before_it():
    cluster = founded()
    # c receives no packets for now, and reads with answers of itself and b.
    cluster.loses = lambda sender, to, m: (
        (to == "c" and is_data(m)) or (sender == "a" and isinstance(m, Reply))
    )
    cluster["a"].append("m0")
    cluster.run_until(lambda: cluster["a"].committed == 1, 0.05)
    assert cluster["c"].status.length == 0
    cluster["c"].read(7)
    cluster.run(0.002)
    assert not cluster["c"].synced
    cluster.loses = lambda sender, to, m: False
    cluster.run(1)
    assert [(s.request, s.length) for s in cluster["c"].synced] == [(7, 1)]


def test_r12_the_larger_group_wins_over_a_longer_tail():
    cluster = founded("abcde")
    cluster.split("abc", "de")
    cluster["d"].append("m0")
    settle(cluster, "a", "b", "c")
    cluster["a"].append("m1")
    cluster.run(1)
    cluster.heal()
    settle(cluster, "a", "b", "c", "d", "e")
    assert {logs(cluster, name) for name in "abcde"} == {"m1@0 m0@1"}


def test_r13_a_view_found_open_as_it_ends_keeps_the_attempts_after_it():
    cluster = founded("abcde")
    # All install a new view and are ready; only a learns that.
    cluster.loses = lambda sender, to, m: isinstance(m, Ready) and to != "a"
    old = cluster["a"].view
    cluster.kill("e")
    cluster.start("e")
    cluster.run_until(lambda: cluster["a"].view != old and cluster["a"].status.state == "open", 10)
    view = cluster["a"].view
    assert view.members == ("a", "b", "c", "d", "e")

    def loses(sender: str, to: str, m: Any) -> bool:
        if isinstance(m, Ready | Ack | Offer):
            return True
        # The packet with m0 reaches nobody while the view lasts: only the exchange brings it.
        return is_data(m)

    cluster.loses = loses
    cluster["a"].append("m0")
    cluster.run(0.002)
    assert cluster["b"].status.state == "opening"
    cluster.split("abc", "de")
    cluster.run_until(lambda: all(cluster[n].view.members == ("a", "b", "c") for n in "abc"))
    standing = cluster["b"].stack.membership._state.standing
    assert standing.last is not None
    assert standing.last.id == view.id  # Found open as it ended, ...
    assert [a.voters for a in standing.attempts] == [("a", "b", "c")]  # ... and no more than that.
    # a and c open the new view; b does not learn of it.
    cluster.loses = lambda sender, to, m: to == "b" and isinstance(m, Ready)
    cluster.run_until(lambda: cluster.states("ac") == ["open", "open"])
    assert cluster["b"].status.state == "opening"
    cluster.loses = lambda sender, to, m: to == "b" and (isinstance(m, Ready) or is_data(m))
    cluster["a"].append("m1")
    cluster.run_until(lambda: cluster["a"].committed == 2)
    cluster.split("ac", "bde")
    cluster.loses = lambda sender, to, m: False
    settle(cluster)
    assert cluster.states("bde") == ["closed"] * 3
    assert cluster["a"].texts == cluster["c"].texts == ["m0", "m1"]
