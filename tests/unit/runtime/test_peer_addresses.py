"""Where peers are: names that stand for other addresses later, and peers that moved."""

import asyncio
import itertools
import socket
from collections.abc import Awaitable, Callable

import pytest
from tests.jumping import jump
from tests.patience import STORY_S

from roundelay.core.contract import Boot
from roundelay.runtime import peer_addresses
from roundelay.runtime.machine import Machine
from roundelay.runtime.node_log import NodeLog
from roundelay.runtime.peer_addresses import PeerAddresses
from roundelay.runtime.probe import Probe, ProbeKind, decode_probe, encode_probe
from roundelay.transport.address import Address, AddressError, SocketAddress
from roundelay.wire.primitives import WireError

OLD, NEW = ("127.0.0.5", 5), ("127.0.0.6", 6)
ELSEWHERE = ("127.0.0.7", 7)
NAMED = Address("b.example", 5)


class Names:
    """A name server that says what it is told to."""

    def __init__(self) -> None:
        self.known: dict[str, SocketAddress] = {}
        self.asked = 0

    def resolve(self, address: Address, family: int) -> tuple[int, SocketAddress]:
        self.asked += 1
        if address.host not in self.known:
            raise AddressError("no such name")
        return family, self.known[address.host]


class Place:
    """The peer_addresses of node a's only peer b, and what a sends to find it."""

    def __init__(self, address: Address, found: SocketAddress | None) -> None:
        self.names = Names()
        numbers = itertools.count(100)
        machine = Machine(random_bits=lambda bits: next(numbers), resolve=self.names.resolve)
        self.boot = Boot("g", "a", 3)
        self.where = PeerAddresses(
            self.boot,
            {"b": address},
            machine,
            socket.AF_INET,
            NodeLog("g", "a", 0.4),
            {} if found is None else {"b": found},
        )
        self.sent: list[tuple[SocketAddress, Probe]] = []
        self.moves = 0
        self.where.serve(self._send, self._moved)

    def _send(self, data: bytes, address: SocketAddress) -> None:
        self.sent.append((address, decode_probe(data)[1]))

    def _moved(self) -> None:
        self.moves += 1

    def hear(
        self,
        probe: Probe,
        source: SocketAddress | None,
        boot: Boot = Boot("g", "b", 4),  # noqa: B008  # It never changes.
    ) -> None:
        self.where.receive(encode_probe(boot, probe), source)

    def ask(self, source: SocketAddress) -> dict[SocketAddress, int]:
        """Let b say that it is there; the nonces that are sent to find out."""
        self.sent.clear()
        self.hear(Probe(ProbeKind.HERE, "a"), source)
        assert {probe.kind for _, probe in self.sent} <= {ProbeKind.ASK}
        return {address: probe.nonce for address, probe in self.sent}


def play(story: Callable[[], Awaitable[None]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_addresses, "LOOKUP_S", 0.02)
    monkeypatch.setattr(peer_addresses, "TRIAL_S", 0.02)

    async def limited() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(limited())


async def until(fits: Callable[[], object]) -> None:
    while not fits():  # noqa: ASYNC110  # Nobody tells of it.
        await asyncio.sleep(0.001)


async def trial_over(place: Place) -> None:
    await until(lambda: not place.where._trials)


def test_a_name_is_looked_up_until_it_resolves_and_again_when_it_moves(monkeypatch, caplog):
    async def story() -> None:
        place = Place(NAMED, None)
        assert caplog.text.count("'b.example', the host of peer 'b', does not resolve") == 1

        async def looked(fits: Callable[[], bool]) -> None:
            while not fits():
                place.where.search(())
                await asyncio.sleep(0.001)

        await looked(lambda: place.names.asked > 3)
        assert place.sent == []  # Nobody knows where to.
        place.names.known["b.example"] = OLD
        await looked(lambda: place.where.addresses == {"b": OLD})
        place.names.known["b.example"] = NEW
        await looked(lambda: place.where.addresses == {"b": NEW})
        assert place.moves == 2
        assert caplog.text.count("does not resolve") == 1

    play(story, monkeypatch)


def test_members_and_numeric_addresses_are_not_looked_up(monkeypatch):
    async def story() -> None:
        for address, members in ((NAMED, ("a", "b")), (Address(*OLD), ("a",))):
            place = Place(address, OLD)
            for _ in range(20):
                place.where.search(members)
                await asyncio.sleep(0.003)
            assert place.names.asked == 0

    play(story, monkeypatch)


def test_who_is_not_there_is_told_where_we_are(monkeypatch):
    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        place.where.search(("a", "b"))
        assert place.sent == []
        place.where.search(("a",))
        assert place.sent == [(OLD, Probe(ProbeKind.HERE, "b"))]

    play(story, monkeypatch)


def test_a_peer_that_moved_proves_it(monkeypatch):
    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        nonces = place.ask(NEW)
        assert nonces.keys() == {OLD, NEW}
        place.hear(Probe(ProbeKind.ANSWER, "a", nonces[NEW]), NEW)
        assert place.where.addresses == {"b": OLD}  # The old address may still answer.
        await trial_over(place)
        assert (place.where.addresses, place.moves) == ({"b": NEW}, 1)
        assert place.ask(NEW) == {}  # It is where we know it to be.

    play(story, monkeypatch)


def test_who_answers_where_it_was_is_not_moved(monkeypatch):
    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        for order in ((OLD, NEW), (NEW, OLD)):
            nonces = place.ask(NEW)
            for address in order:
                place.hear(Probe(ProbeKind.ANSWER, "a", nonces[address]), address)
            await asyncio.sleep(0.05)
            assert (place.where.addresses, place.moves) == ({"b": OLD}, 0)

    play(story, monkeypatch)


def test_forged_frames_move_nobody(monkeypatch):
    """Without the nonce, which only reaches the address that is claimed."""

    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        nonces = place.ask(NEW)
        for forged in (0, nonces[NEW] + 1000, (1 << 63) - 1):
            place.hear(Probe(ProbeKind.ANSWER, "a", forged), NEW)
        await trial_over(place)
        place.hear(Probe(ProbeKind.ANSWER, "a", nonces[NEW]), NEW)  # Too late.
        await asyncio.sleep(0.05)
        assert (place.where.addresses, place.moves) == ({"b": OLD}, 0)

    play(story, monkeypatch)


def test_one_trial_at_a_time_and_none_for_what_is_not_meant_for_us(monkeypatch):
    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        assert place.ask(NEW)
        assert place.ask(ELSEWHERE) == {}
        await trial_over(place)
        for boot, to in (
            (Boot("other", "b", 4), "a"),
            (Boot("g", "z", 4), "a"),
            (Boot("g", "b", 4), "c"),
        ):
            place.sent.clear()
            place.hear(Probe(ProbeKind.HERE, to), NEW, boot)
            place.hear(Probe(ProbeKind.ASK, to, 7), NEW, boot)
            assert place.sent == []
        place.hear(Probe(ProbeKind.HERE, "a"), None)  # It came by multicast.
        assert place.sent == []

    play(story, monkeypatch)


def test_an_end_that_is_due_does_not_end_the_next_trial(monkeypatch):
    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        monkeypatch.setattr(peer_addresses, "TRIAL_S", 1.0)
        nonces = place.ask(NEW)
        place.hear(Probe(ProbeKind.ANSWER, "a", nonces[OLD]), OLD)
        await asyncio.sleep(0.6)
        nonces = place.ask(NEW)  # Its predecessor would end in the middle of it.
        place.hear(Probe(ProbeKind.ANSWER, "a", nonces[NEW]), NEW)
        await asyncio.sleep(0.5)
        assert place.moves == 0
        await trial_over(place)
        assert place.moves == 1

    jump(story())


def test_whoever_asks_is_answered_where_it_is_and_where_it_asks_from(monkeypatch):
    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        place.hear(Probe(ProbeKind.ASK, "a", 77), NEW)
        answer = Probe(ProbeKind.ANSWER, "b", 77)
        assert sorted(place.sent, key=str) == sorted([(OLD, answer), (NEW, answer)], key=str)

    play(story, monkeypatch)


def test_what_was_proved_stays_while_the_name_stands_for_what_it_stood_for(monkeypatch):
    async def story() -> None:
        place = Place(NAMED, OLD)
        place.names.known["b.example"] = OLD
        nonces = place.ask(NEW)
        place.hear(Probe(ProbeKind.ANSWER, "a", nonces[NEW]), NEW)
        await trial_over(place)
        place.where.search(())
        await until(lambda: place.where._lookups["b"] < float("inf"))
        assert place.where.addresses == {"b": NEW}

    play(story, monkeypatch)


def test_damaged_probes_are_ignored(monkeypatch):
    async def story() -> None:
        place = Place(Address(*OLD), OLD)
        whole = encode_probe(Boot("g", "b", 4), Probe(ProbeKind.HERE, "a"))
        for data in (whole[:-1], b"", whole + b"x"):
            place.where.receive(data, NEW)
        assert place.sent == []
        with pytest.raises(WireError):
            decode_probe(whole[:-1])

    play(story, monkeypatch)
