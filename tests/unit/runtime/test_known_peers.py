"""Whom a node hears, and when two nodes have one name."""

from roundelay.core.contract import Origin
from roundelay.runtime.known_peers import KnownPeers
from roundelay.runtime.node_log import NodeLog
from roundelay.transport.address import SocketAddress


class Log(NodeLog):
    """Takes note of what it is told of."""

    def __init__(self) -> None:
        super().__init__("g", "a", 0.4)
        self.told: list[str] = []

    def twins(self, node: str, source: SocketAddress | None = None) -> None:
        self.told.append(f"twins {node}")

    def stranger(self, node: str, source: SocketAddress | None = None) -> None:
        self.told.append(f"stranger {node}")


class Street:
    """KnownPeers, their clock, and what was said about them."""

    def __init__(self) -> None:
        self.now = 100.0
        self.log = Log()
        self.known_peers = KnownPeers(("b", "c"), self.log, lambda: self.now)

    def meet(self, node: str, life: int) -> bool:
        return self.known_peers.admits(Origin("g", node, life, None))


def test_a_peer_is_heard_in_every_life():
    """Also after one forged frame with a huge number, and after its clock was set back."""
    street = Street()
    assert all(street.meet("b", life) for life in (7, 7, (1 << 63) - 1, 7, 3))
    assert street.known_peers.lives == {"b": 3}


def test_strangers_are_not_heard():
    street = Street()
    assert not street.meet("z", 1)
    assert not street.meet("z", 1)
    assert (street.known_peers.strangers, street.known_peers.lives) == (2, {})
    assert street.log.told == ["stranger z", "stranger z"]


def test_a_restart_and_its_late_frames_are_no_twins():
    street = Street()
    for life in (1, 2, 1, 2, 1, 2):  # What the last life sent, mixed with what this one sends.
        street.meet("b", life)
        street.now += 0.1
    for life in range(3, 40):
        street.meet("b", life)
        street.now += 60.0
    street.meet("b", 38)  # A replay of what it said an hour ago.
    assert street.log.told == []


def test_two_lives_that_go_on_side_by_side_are_twins():
    street = Street()
    for i in range(30):
        street.meet("b", i % 2)
        street.meet("c", 5)
        street.now += 0.1
    assert set(street.log.told) == {"twins b"}


def test_a_name_is_taken_only_by_who_keeps_using_it():
    street = Street()
    namesake = street.known_peers.namesake_persists
    assert not any(namesake(9) for _ in range(100))  # All at once.
    street.now += 0.6
    assert not any(namesake(9) for _ in range(100))
    street.now += 0.6  # A second is over, but they came in three heaps.
    assert not any(namesake(9) for _ in range(100))
    street.now += 60.0
    seen = []
    for _ in range(12):
        seen.append(namesake(9))
        street.now += 0.125
    assert seen == [False] * 8 + [True] * 4


def test_many_forgers_are_no_namesake():
    street = Street()
    for life in range(100):
        assert not street.known_peers.namesake_persists(life)
        street.now += 0.05
