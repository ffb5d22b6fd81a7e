"""What nodes tell of their settings, and how a difference is put in words."""

import pytest

from roundelay.core.ids import Terms
from roundelay.runtime.settings import settings
from roundelay.runtime.terms import TEXT_BYTES_MAX, peers_differ, settings_differ, terms_of
from roundelay.runtime.tuning import tuned_options

PEERS = {"a": "127.0.0.1:1", "b": "127.0.0.1:2"}


def told(datagram_bytes: int = 60_000, room: int = 100, **more: object) -> Terms:
    made = settings({"group": "g", "node": "a", "peers": PEERS, **more})
    return terms_of(made, datagram_bytes, tuned_options(made, datagram_bytes, room))


def test_weights_for_a_stranger_are_told_in_one_sentence():
    given = {"policy": "given", "weights": "a:20,zz:3"}
    with pytest.raises(
        ValueError, match=r"'zz', which is no node of the group; name some of a, b$"
    ):
        told(engine="atop", options=given)
    assert "engine=atop" in told(engine="atop", options={**given, "weights": "a:20"}).settings


def test_what_each_node_may_choose_is_not_told():
    usual = told()
    assert usual == Terms("engine=totem; datagram_bytes=60000; timeout_s=0.4", "a,b")
    assert told(room=7) == usual
    assert told(queue_bytes=2_000_000, options={"window_packets": 9}) == usual
    assert told(options={"idle_rotations": 5}) == usual
    assert told(options={"token_loss_s": 0.4}) == usual  # As without it.
    assert told(node="b") == usual


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"engine": "dtp"}, "engine dtp, this node totem"),
        ({"timeout_s": 2.0}, "timeout_s 2, this node 0.4"),
        ({"datagram_bytes": 1400}, "datagram_bytes 1400, this node 60000"),
        ({"options": {"token_loss_s": 2}}, "option token_loss_s 2, this node not given"),
        ({"options": {"accelerated": 0}}, "option accelerated 0, this node not given"),
        ({"multicast": "239.1.1.1:5"}, "multicast 239.1.1.1:5, this node not given"),
    ],
)
def test_settings_that_must_agree_are_named_with_both_values(more, words):
    size = more.pop("datagram_bytes", 60_000)
    sentence = settings_differ("b", told(), told(size, **more))
    name = words.split(",")[0].rpartition(" ")[0]
    assert sentence == f"b runs with {words}: the two do not meet; give both the same {name}"


def test_lists_of_peers_that_differ():
    ours, theirs = Terms("", "a,b,d"), Terms("", "a,b,c")
    assert peers_differ("b", ours, theirs) == (
        "b lists c, this node does not; this node lists d, b does not: give every node the same "
        "peers"
    )


def test_long_texts_fit_and_still_differ():
    many = {f"node-{i:02}-" + "x" * 20: f"127.0.0.1:{i + 1}" for i in range(30)}
    first = told(node=min(many), peers=many)
    second = told(node=min(many), peers={**many, "z": "127.0.0.1:99"})
    assert len(first.peers.encode()) <= TEXT_BYTES_MAX
    assert first.peers != second.peers
    assert peers_differ("b", first, second).startswith("b has another list of peers than this node")
