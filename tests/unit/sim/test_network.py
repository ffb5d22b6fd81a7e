"""When frames arrive on each network."""

import pytest

from roundelay.sim.network import Bus, Channel, Lan, Switched, Wan

US = 1_000
OTHERS = ("b", "c")


def test_a_bus_carries_one_frame_at_a_time_and_all_hear_its_end():
    bus = Bus(rate_bps=10_000_000, propagation_ns=5 * US, overhead_bytes=66)
    # 1184 + 66 bytes at 10 Mbit/s take exactly 1 ms.
    assert bus.arrivals(0, "a", OTHERS, 1184) == [1005 * US] * 2
    assert bus.arrivals(0, "b", ("a",), 1184) == [2005 * US]
    assert bus.arrivals(9000 * US, "b", ("a",), 1184) == [10_005 * US]


def test_a_switch_queues_per_sender_and_per_receiver():
    switch = Switched(rate_bps=8_000_000_000, latency_ns=10, overhead_bytes=0)
    # 100 bytes take 100 ns on each link.
    assert switch.arrivals(0, "a", OTHERS, 100) == [210, 210]
    assert switch.arrivals(0, "a", ("b",), 100) == [310]  # Waits for a's link.
    assert switch.arrivals(0, "d", ("b",), 100) == [410]  # Waits for b's.
    assert switch.arrivals(0, "e", ("f",), 100) == [210]  # Meets nobody.


def test_a_lan_has_a_latency_and_no_queue():
    lan = Lan(latency_ns=100)
    assert lan.arrivals(7, "a", OTHERS, 60_000) == [107, 107]
    assert lan.arrivals(7, "a", OTHERS, 1) == [107, 107]


def test_a_wan_has_a_latency_for_each_pair():
    wan = Wan(latency_ns=20, links_ns={("a", "c"): 90})
    assert wan.arrivals(0, "a", OTHERS, 10) == [20, 90]
    assert wan.arrivals(0, "c", ("a",), 10) == [20]


def test_a_channel_is_heard_by_all_at_once_and_overruns_a_slow_receiver_alone():
    channel = Channel(rate_bps=8_000_000_000, propagation_ns=0, buffer_frames=2, drain_ns=10_000)
    everyone = ("a", "b", "c")
    heard = [channel.arrivals(0, "a", everyone, 100) for _ in range(4)]
    # Two fit the buffer; the sender never loses its own.
    assert heard == [[100, 100, 100], [200, 200, 200], [300, None, None], [400, None, None]]
    assert channel.arrivals(50_000, "a", everyone, 100) == [50_100] * 3
    assert channel.reflects


@pytest.mark.parametrize("kind", [Bus, Switched, Lan, Wan, Channel])
def test_a_frame_for_one_takes_as_long_as_one_of_a_list(kind):
    one, many = kind(), kind()
    for now in (0, 0, 10 * US):
        assert [one.arrival(now, "a", "b", 500)] == many.arrivals(now, "a", ("b",), 500)
    assert kind.by_size == (one.arrival(US * US, "c", "d", 9) != one.arrival(US * US, "c", "d", 9))
