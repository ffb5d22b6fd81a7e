"""Nodes that should not be there: of another group, unknown, or of the same name."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

import roundelay
from roundelay.runtime import neighbours
from roundelay.transport.address import free_addresses

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


def test_an_earlier_life_that_goes_on_speaking_is_told_of_and_not_heard(
    caplog, monkeypatch, tmp_path
):
    monkeypatch.setattr(neighbours, "LATE_S", 0.0)

    async def story() -> None:
        a, old, new = addresses(3)
        async with roundelay.join("g", node="a", peers={"a": a, "b": new}) as group:
            first = roundelay.join("g", node="b", peers={"a": a, "b": old}, state=tmp_path)
            async with first:  # Incarnation 0; the next one takes its number from the clock.
                await until(lambda: group.status()["counters"]["frames_received"])
                async with roundelay.join("g", node="b", peers={"a": a, "b": new}):
                    await group.wait_for()
                    await until(lambda: "two nodes call themselves 'b'" in caplog.text)

    with caplog.at_level(logging.WARNING):
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
