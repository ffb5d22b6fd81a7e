"""Timers and windows for real nodes."""

from typing import Any

import pytest

from roundelay.core.contract import Item, Origin
from roundelay.core.ids import NODE_NAME_BYTES_MAX, Packet, Service, Span, ViewId
from roundelay.group.engines import describe, engine_config, engine_factory, engines_in_views
from roundelay.links.messages import Data
from roundelay.membership.codec import MembershipCodec
from roundelay.membership.messages import RingItem
from roundelay.protocols.fc.fc import BUFFER_BYTES as FC_BUFFER_BYTES
from roundelay.protocols.st.ending import list_items
from roundelay.protocols.st.lists import List
from roundelay.protocols.st.messages import Placed, Transmission
from roundelay.protocols.totem import ACCELERATED, BUFFER_BYTES, Config
from roundelay.runtime.errors import ConfigError
from roundelay.runtime.settings import settings
from roundelay.runtime.tuning import (
    PACKET_BYTES_MIN,
    engine_options,
    membership_config,
    packet_bytes,
    window,
)
from roundelay.wire.frame import encode, encode_origin
from roundelay.wire.packet import encode_packet


def told(engine: str, **more):
    peers = {node: f"127.0.0.1:{port}" for port, node in enumerate("abc", 1)}
    return settings({"group": "g", "node": "a", "peers": peers, "engine": engine, **more})


@pytest.mark.parametrize("engine", engines_in_views())
def test_silence_is_noticed_after_the_timeout_whatever_the_engine(engine):
    options = engine_options(told(engine, timeout_s=0.5), 1400, 1000)
    assert float(options[describe(engine).alarm]) == pytest.approx(0.5)
    engine_factory(engine, options)


def test_what_the_user_says_wins():
    chosen = {"token_loss_s": 2.0}
    assert engine_options(told("totem", options=chosen), 1400, 1000)["token_loss_s"] == "2.0"


def test_a_crash_is_noticed_and_repaired_within_a_second():
    config = membership_config(0.4)
    assert 0.4 + config.consensus_s < 0.9
    assert config.consensus_s >= 1.2 * config.ring_loss_s - 1e-9


def test_the_window_fits_the_receive_buffer():
    assert window(60_000, 130) == (20, 60)
    assert window(60_000, 6) == (1, 5)
    assert window(1400, 10_000) == (100, 300)


def test_what_a_ring_keeps_for_its_slowest_member_is_bounded_in_bytes():
    def kept(datagram_bytes: int) -> int:
        return int(engine_options(told("totem"), datagram_bytes, 1000)["buffer_packets"])

    assert BUFFER_BYTES // 2 < kept(60_000) * 60_000 <= BUFFER_BYTES
    assert kept(1400) == Config().buffer_packets
    assert kept(60_000) >= 2 * window(60_000, 1000)[1]


@pytest.mark.parametrize(("datagram_bytes", "room"), [(1400, 1000), (1400, 8), (60_000, 100)])
def test_on_real_nodes_all_packets_of_a_visit_follow_the_token(datagram_bytes, room):
    """Alike at all nodes, whatever their buffers hold: nodes that differ refuse each other."""
    options = engine_options(told("totem"), datagram_bytes, room)
    assert int(options["accelerated"]) == ACCELERATED >= int(options["visit_packets"])
    paper = engine_options(told("totem", options={"accelerated": 0}), datagram_bytes, room)
    assert engine_config("totem", paper).accelerated == 0


@pytest.mark.parametrize("timeout_s", [0.1, 0.4, 3.0])
def test_an_idle_token_rests_for_long_and_is_not_missed(timeout_s):
    options = engine_options(told("totem", timeout_s=timeout_s), 1400, 1000)
    hold, again = float(options["token_hold_s"]), float(options["token_retransmit_s"])
    assert 0.5 * again < hold < 0.8 * again


@pytest.mark.parametrize("timeout_s", [0.02, 0.1, 0.4, 3.0])
def test_a_token_is_made_anew_several_times_before_the_alarm(timeout_s):
    options = engine_options(told("fc", timeout_s=timeout_s), 1400, 1000)
    config = engine_config("fc", options)
    assert config.silence_s == pytest.approx(timeout_s)
    assert config.wait_s == pytest.approx(timeout_s / 5)
    # Whoever is next may rest, and a decision may be lost once, before the token is missed.
    assert config.idle_s + 2 * config.repeat_s <= config.wait_s * 1.001
    assert config.stagger_s < config.repeat_s


def test_what_fc_keeps_for_a_masked_member_is_bounded_in_bytes_and_holds_all_windows():
    for datagram_bytes in (1400, 60_000):
        config = engine_config("fc", engine_options(told("fc"), datagram_bytes, 1000))
        assert config.buffer_packets * datagram_bytes <= FC_BUFFER_BYTES
        assert config.buffer_packets >= 4 * config.window_packets


@pytest.mark.parametrize("timeout_s", [0.1, 0.4, 3.0])
@pytest.mark.parametrize(
    ("engine", "timers"), [("atop", ["hold_s", "period_s"]), ("allack", ["hold_s"])]
)
def test_timers_that_are_no_alarms_stay_as_they_are(engine, timers, timeout_s):
    """How long others wait for a silent member, and how often the book-keeper looks."""
    options = engine_options(told(engine, timeout_s=timeout_s), 1400, 1000)
    default = describe(engine).config()
    assert {name: float(options[name]) for name in timers} == {
        name: getattr(default, name) for name in timers
    }
    chosen = dict.fromkeys(timers, 0.05)
    options = engine_options(told(engine, timeout_s=timeout_s, options=chosen), 1400, 1000)
    assert {options[name] for name in timers} == {"0.05"}


@pytest.mark.parametrize("engine", ["fifo", "st"])
@pytest.mark.parametrize("datagram_bytes", [1400, 60_000])
@pytest.mark.parametrize("nodes", [2, 10, 16])
def test_a_packet_for_all_by_name_fits_a_datagram_with_the_header_of_its_engine(
    engine, datagram_bytes, nodes
):
    """As it is sent, and as recovery sends it at the end of a view."""
    names = tuple(f"{'n' * 20}{i:02}" for i in range(nodes))
    peers = {node: f"127.0.0.1:{port}" for port, node in enumerate(names, 1)}
    given = settings({"group": "g" * 20, "node": names[0], "peers": peers, "engine": engine})
    body = bytes(packet_bytes(given, datagram_bytes))
    view = ViewId(7, names[0])
    packet = Packet(Span(names[0], 1, 1, 1), Service.AGREED, body, names)
    origin = encode_origin(Origin("g" * 20, names[0], 1, view))
    data: Any
    if engine == "st":
        full = (9,) * nodes
        data = Placed(1, 1, Transmission(0, 0, 1, full, full, full, full, 9, packet))
    else:
        data = Data(0, 1, 0, (9,) * nodes, packet)
    tag, made = describe(engine).engine.codec.encode(data)
    assert 0 <= datagram_bytes - len(encode(origin, tag, 1, 1, made)) < 220
    item = RingItem(1, view, Item((0, 1, 1), encode_packet(packet)))
    tag, made = MembershipCodec().encode(item)
    assert len(encode(origin, tag, 1, 1, made)) <= datagram_bytes


@pytest.mark.parametrize("datagram_bytes", [576, 1400])
def test_a_part_of_a_list_fits_a_datagram(datagram_bytes):
    part_bytes = int(engine_options(told("st"), datagram_bytes, 1000)["part_bytes"])
    name = "n" * NODE_NAME_BYTES_MAX
    origin = encode_origin(Origin(name, name, 1, ViewId(7, name)))
    made = List(0, 0, 1, (0,) * 50, (0,) * 50, (1,) * 50, ())
    for item in list_items(made, part_bytes):
        tag, body = MembershipCodec().encode(RingItem(1, ViewId(7, name), item))
        assert len(encode(origin, tag, 1, 1, body)) <= datagram_bytes


def test_a_group_that_is_too_large_for_its_datagrams_is_refused_in_a_sentence():
    peers = {f"n{port}": f"127.0.0.1:{port}" for port in range(1, 20)}
    given = settings({"group": "g", "node": "n1", "peers": peers, "engine": "st"})
    with pytest.raises(ConfigError, match="have no room for messages: with 19 peers"):
        packet_bytes(given, 576)
    assert packet_bytes(given, 1400) > PACKET_BYTES_MIN
