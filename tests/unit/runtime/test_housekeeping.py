"""What a node does once a second."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from roundelay.runtime.housekeeping import (
    EVERY_S,
    NEVER_HEARD_S,
    REPEATS_PACKETS,
    REPEATS_SHARE,
    Housekeeping,
)
from roundelay.runtime.instruments import Instruments
from roundelay.runtime.known_peers import KnownPeers
from roundelay.runtime.meter import Meter
from roundelay.runtime.node_log import STANDING_S, NodeLog


class House:
    """Housekeeping on a clock that a test moves on; it is its own event loop."""

    def __init__(self) -> None:
        self.now = 100.0
        self.cancelled = 0
        self.searched: list[tuple[str, ...]] = []
        self.meter = Meter()
        self.log = NodeLog("g", "a", 0.4, self.time)
        self.known_peers = KnownPeers(("b", "c"), self.log, self.time)
        self.deliveries = SimpleNamespace(members=("a", "b"))
        addresses = SimpleNamespace(
            peers={"b": "10.0.0.2:1", "c": "10.0.0.3:1"},
            addresses={"b": ("10.0.0.2", 1), "c": ("10.0.0.3", 1)},
            search=self.searched.append,
        )
        self.housekeeping = Housekeeping(
            cast("Any", self),
            cast("Any", self.deliveries),
            self.known_peers,
            cast("Any", addresses),
            Instruments(self.meter, self.log),
        )
        self.housekeeping.start()

    def time(self) -> float:
        return self.now

    def call_later(self, delay_s: float, call: Any) -> Any:
        assert delay_s == EVERY_S
        self.due = call
        return SimpleNamespace(cancel=self._cancel)

    def _cancel(self) -> None:
        self.cancelled += 1

    def round(self) -> None:
        self.now += EVERY_S
        self.due()


@pytest.fixture
def house() -> House:
    return House()


def test_peers_outside_the_view_are_searched_for_in_every_round_until_the_end(house: House) -> None:
    house.round()
    house.round()
    assert house.searched == [("a", "b")] * 2
    house.housekeeping.stop()
    assert house.cancelled == 1


def test_peers_that_were_never_heard_are_named_after_a_while(house: House) -> None:
    house.known_peers.heard["b"] = house.now
    while house.now < 100.0 + NEVER_HEARD_S - EVERY_S:
        house.round()
    assert house.log.warnings() == []
    house.round()
    assert house.log.warnings() == [
        "c at 10.0.0.3:1 was never heard: does it run, and is the port right?"
    ]


def test_many_repeats_within_one_round_are_told_of(house: House) -> None:
    share = int(REPEATS_PACKETS * REPEATS_SHARE)

    def counted(received: int, delivered: int, own: int = 0) -> list[str]:
        house.meter.packets_received += received
        house.meter.packets_delivered += delivered + own
        house.meter.packets_own += own
        house.round()
        return house.log.warnings()

    assert counted(REPEATS_PACKETS, REPEATS_PACKETS - share, own=50) == []
    assert counted(REPEATS_PACKETS - 1, 0) == []
    (warning,) = counted(REPEATS_PACKETS, REPEATS_PACKETS - share - 1)
    assert warning.startswith(f"{share + 1} of {REPEATS_PACKETS} packets came more than once")


def test_a_peer_whose_datagrams_cannot_be_read_was_heard_in_a_way(house: House) -> None:
    """A warning has said what is wrong with it already; c may really not run."""
    for _ in range(int(NEVER_HEARD_S) + 1):
        house.log.other_key(("10.0.0.2", 1))
        house.round()
    of_b, of_c = house.log.warnings()
    assert of_b.startswith("datagrams under another key came from 10.0.0.2:1")
    assert of_c.startswith("c at 10.0.0.3:1 was never heard")
    house.now += STANDING_S
    house.round()
    assert [warning.split()[0] for warning in house.log.warnings()] == ["c", "b"]
