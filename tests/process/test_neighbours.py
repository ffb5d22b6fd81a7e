"""Nodes that should not be there: of another group, unknown, or of the same name."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import pytest

import roundelay
from roundelay.core.contract import Boot
from roundelay.membership.messages import MembershipCodec, Merge, Message
from roundelay.runtime import neighbours
from roundelay.transport.address import Address, free_addresses, parse_address, resolve
from roundelay.transport.udp import UdpSocket
from roundelay.wire.endpoint import Endpoint

pytestmark = pytest.mark.process


def addresses(count: int) -> list[str]:
    return list(free_addresses(map(str, range(count))).values())


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await story()

    asyncio.run(limited())


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110  # Nobody tells of it.
        await asyncio.sleep(0.01)


def test_two_nodes_of_one_name(caplog):
    async def story() -> None:
        here, there = addresses(2)
        async with roundelay.join("g", node="a", peers={"a": here}) as first:
            peers = {"a": there, "b": here}
            async with roundelay.join("g", node="a", peers=peers):
                with pytest.raises(roundelay.NameTakenError, match="is called 'a' too; stop it"):
                    async for _ in first:
                        pass
                with pytest.raises(roundelay.NameTakenError):
                    await first.send(b"x")

    play(story)


def test_who_is_with_others_stays_and_says_so(caplog):
    async def story() -> None:
        here, other, there = addresses(3)
        peers = {"a": here, "b": other}
        async with (
            roundelay.join("g", node="a", peers=peers) as a,
            roundelay.join("g", node="b", peers=peers),
        ):
            await a.wait_for()
            async with roundelay.join("g", node="a", peers={"a": there, "z": here}):
                await until(lambda: "two nodes call themselves 'a'" in caplog.text)
            assert a.view.members == ("a", "b")

    with caplog.at_level(logging.WARNING):
        play(story)


def test_two_peers_of_one_name_are_told_of(caplog, monkeypatch):
    monkeypatch.setattr(neighbours, "TWINS_S", 0.5)

    async def story() -> None:
        a, old, new = addresses(3)
        async with (
            roundelay.join("g", node="a", peers={"a": a, "b": new}),
            roundelay.join("g", node="b", peers={"a": a, "b": old}),
            roundelay.join("g", node="b", peers={"a": a, "b": new}),
        ):
            await until(lambda: "two nodes call themselves 'b'" in caplog.text)

    with caplog.at_level(logging.WARNING):
        play(story)


def forged(node: str, incarnation: int, *, times: int = 1) -> list[bytes]:
    endpoint: Endpoint[Message] = Endpoint(Boot("g", node, incarnation), MembershipCodec())
    return [endpoint.encode(Merge(), None)[1] for _ in range(times)]


def test_forged_frames_end_no_node_and_shut_none_out():
    """A burst of frames under a node's own name, its own frames sent back to it, and frames of its
    peer with the largest number there is."""

    async def story() -> None:
        here, there = addresses(2)
        peers = {"a": here, "b": there}
        with contextlib.closing(UdpSocket(Address("127.0.0.1", 0))) as forger:
            async with roundelay.join("g", node="a", peers=peers) as a:
                target = (resolve(parse_address(here))[1],)
                own = a.status()["incarnation"]
                for data in (
                    *forged("a", 1, times=50),
                    *forged("a", own, times=50),
                    *forged("b", (1 << 63) - 1, times=50),
                ):
                    forger.send(data, target)
                await until(lambda: a.status()["drops"].get("own") == 50)
                async with roundelay.join("g", node="b", peers=peers) as b:
                    await a.wait_for(timeout_s=10)
                    await b.wait_for(timeout_s=10)
                    await (await b.send(b"heard"))

    play(story)


def test_a_node_that_nobody_listed(caplog):
    async def story() -> None:
        here, there = addresses(2)
        async with (
            roundelay.join("g", node="a", peers={"a": here}) as a,
            roundelay.join("g", node="z", peers={"a": here, "z": there}),
        ):
            await until(lambda: a.status()["drops"]["stranger"])

    with caplog.at_level(logging.WARNING):
        play(story)
    assert "frames of 'z' are ignored, since peers does not list that node; add it" in caplog.text


def test_a_node_of_another_group(caplog):
    async def story() -> None:
        here, there = addresses(2)
        async with (
            roundelay.join("g", node="a", peers={"a": here}) as a,
            roundelay.join("h", node="b", peers={"a": here, "b": there}),
        ):
            await until(lambda: a.status()["drops"].get("group"))

    with caplog.at_level(logging.WARNING):
        play(story)
    assert "datagrams of another group came to this port; check the group's name" in caplog.text


def test_a_disk_that_fails_ends_the_node_with_its_reason(tmp_path, monkeypatch):
    async def story() -> None:
        (here,) = addresses(1)
        join = roundelay.join("g", node="a", peers={"a": here}, state=tmp_path, timeout_s=0.05)
        async with join as group:

            def refuse(*_: object) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr("os.fsync", refuse)
            with pytest.raises(roundelay.FailedError, match="No space left"):
                async for _ in group:
                    pass

    play(story)


def test_a_trace_that_cannot_be_written_ends_and_the_node_goes_on(tmp_path, monkeypatch, caplog):
    async def story() -> None:
        (here,) = addresses(1)
        settings = {"trace": tmp_path, "trace_every_row": True, "timeout_s": 0.05}
        async with roundelay.join("g", node="a", peers={"a": here}, **settings) as group:

            def refuse(*_: object) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr("roundelay.trace.jsonl.Encoder.write", refuse)
            await (await group.send(b"still delivered"))

    with caplog.at_level(logging.ERROR):
        play(story)
    assert "the trace ends here: cannot write the trace" in caplog.text
