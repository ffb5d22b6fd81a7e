"""The relay's commands, and what it does with a datagram."""

import asyncio

import pytest
from tests.patience import LIMIT_S

from roundelay.runtime.chaos import CommandError, Faults, Relay
from roundelay.transport.address import Address
from roundelay.transport.udp import UdpSocket


def test_commands_say_what_is_so_now():
    async def story() -> None:
        relay = Relay({"a": "127.0.0.1:9", "b": "127.0.0.1:9", "c": "127.0.0.1:9"})
        relay.open()
        assert relay.command("loss 5%").startswith("loss 5% duplicate 0%")
        relay.command("delay 2ms 500us")
        assert relay.faults == Faults(loss=0.05, delay_s=0.002, jitter_s=0.0005)
        assert "cuts a>b;" in relay.command("cut a>b")
        assert "cuts a>c b>c c>a c>b;" in relay.command("partition a,b c")
        assert "cuts none" in relay.command("heal")
        assert relay.faults == Faults()
        relay.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    "line", ["", "burn", "loss", "loss 200%", "delay 2", "cut a", "cut a>z", "partition a,a b"]
)
def test_what_is_no_command_is_refused_and_changes_nothing(line):
    async def story() -> None:
        relay = Relay({"a": "127.0.0.1:9", "b": "127.0.0.1:9"})
        relay.open()
        with pytest.raises(CommandError):
            relay.command(line)
        assert (relay.faults, relay.cuts) == (Faults(), set())
        relay.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("command", "copies"),
    [("status", 1), ("loss 100%", 0), ("duplicate 100%", 2), ("cut a>b", 0), ("cut b>a", 1)],
)
def test_a_datagram_meets_its_fate(command, copies):
    async def story() -> list[bytes]:
        b, sender = UdpSocket(Address("127.0.0.1", 0)), UdpSocket(Address("127.0.0.1", 0))
        relay = Relay({"a": "127.0.0.1:9", "b": f"127.0.0.1:{b.address[1]}"})
        relay.open()
        relay.command(command)
        host, _, port = relay.peers("a")["b"].partition(":")
        sender.send(b"frame", ((host, int(port)),))
        for _ in range(1000):  # Until it was carried or lost; copies take their time.
            await asyncio.sleep(0)
            if relay.lost or (relay.carried and relay.carried >= copies):
                break
        got: list[bytes] = []
        async with asyncio.timeout(LIMIT_S):
            while len(got) < copies:
                try:
                    got += b.receive()
                except BlockingIOError:
                    await asyncio.sleep(0)
        relay.close()
        for sock in (b, sender):
            sock.close()
        assert relay.carried == copies
        return got

    assert asyncio.run(story()) == [b"frame"] * copies
