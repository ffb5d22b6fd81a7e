"""Nodes that should not be there: of another group, unknown, or of the same name."""

import asyncio
import contextlib
import logging

import pytest
from tests.patience import LIMIT_S, holds, play

import roundelay
from roundelay.core.contract import Boot
from roundelay.membership.codec import MembershipCodec
from roundelay.membership.messages import Merge, Message
from roundelay.runtime import known_peers
from roundelay.runtime.node_log import NO_KEY
from roundelay.transport.address import Address, free_addresses, parse_address, resolve
from roundelay.transport.udp import UdpSocket
from roundelay.wire.endpoint import Endpoint
from roundelay.wire.frame import VERSION

pytestmark = pytest.mark.process


def addresses(count: int) -> list[str]:
    return list(free_addresses(map(str, range(count))).values())


BUSY = "the machine is overloaded"
"""Nodes warn of that too, and here it may be so."""


def warnings(group: roundelay.Group) -> list[str]:
    return [sentence for sentence in group.status()["warnings"] if BUSY not in sentence]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says, but for what is always there: that no node has a key."""
    said = [record.getMessage() for record in caplog.records]
    return [sentence for sentence in said if BUSY not in sentence and NO_KEY not in sentence]


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
                await holds(lambda: "two nodes call themselves 'a'" in caplog.text)
            assert a.view.members == ("a", "b")

    with caplog.at_level(logging.WARNING):
        play(story)


def test_two_peers_of_one_name_are_told_of(caplog, monkeypatch):
    monkeypatch.setattr(known_peers, "TWINS_S", 0.5)

    async def story() -> None:
        a, old, new = addresses(3)
        async with (
            roundelay.join("g", node="a", peers={"a": a, "b": new}),
            roundelay.join("g", node="b", peers={"a": a, "b": old}),
            roundelay.join("g", node="b", peers={"a": a, "b": new}),
        ):
            await holds(lambda: "two nodes call themselves 'b'" in caplog.text)

    with caplog.at_level(logging.WARNING):
        play(story)


def test_of_two_nodes_of_one_name_the_newer_stops_and_the_group_goes_on(caplog):
    async def story() -> None:
        a, b, c, other = addresses(4)
        peers = {"a": a, "b": b, "c": c}
        async with (
            roundelay.join("g", node="a", peers=peers) as first,
            roundelay.join("g", node="b", peers=peers) as second,
            roundelay.join("g", node="c", peers=peers) as third,
        ):
            groups = (first, second, third)
            for group in groups:
                group.ignore()
            await asyncio.gather(*(group.wait_for() for group in groups))
            await (await second.send(b"before"))
            views = [group.view for group in groups]
            async with roundelay.join("g", node="b", peers={**peers, "b": other}) as twin:
                begun = asyncio.get_running_loop().time()
                error = await twin.wait_closed()
                lasted_s = asyncio.get_running_loop().time() - begun
            assert isinstance(error, roundelay.NameTakenError)
            assert lasted_s >= 1.0  # Not at the first word of the other.
            assert [group.view for group in groups] == views
            await (await second.send(b"after", safe=True))
            for group in groups:
                (said,) = [s for s in group.status()["warnings"] if "call themselves 'b'" in s]
                assert (other in said) == (group is not second)
            assert [group.view for group in groups] == views

    with caplog.at_level(logging.WARNING):
        play(story)
    for node in "abc":
        lines = [line for line in caplog.text.splitlines() if f"g/{node}: two nodes" in line]
        assert len(lines) == 1, caplog.text


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"engine": "dtp"}, "b runs with engine dtp, this node totem: the two do not meet; give"),
        ({"timeout_s": 1.5}, "b runs with timeout_s 1.5, this node 0.4: the two do not meet; give"),
        ({"datagram_bytes": 1400}, "b runs with datagram_bytes 1400, this node 60000: the two do"),
    ],
)
def test_nodes_with_other_settings_say_so_and_do_not_meet(caplog, more, words):
    async def story() -> None:
        a, b, c = addresses(3)
        peers = {"a": a, "b": b, "c": c}
        async with (
            roundelay.join("g", node="a", peers=peers) as first,
            roundelay.join("g", node="c", peers=peers) as third,
        ):
            await first.wait_for(("a", "c"))
            await third.wait_for(("a", "c"))
            before = first.view.id
            async with roundelay.join("g", node="b", peers=peers, **more) as second:
                groups = (first, second, third)
                await holds(lambda: all(map(warnings, groups)))
                await holds(lambda: second.status()["counters"]["views"] >= 3)
                await asyncio.sleep(1.5)  # In which they met and parted more than once.
                assert second.view.members == ("b",)
                if not any(group.status()["counters"]["suspicions"] for group in groups):
                    # Else a busy machine has cost somebody its view.
                    assert first.view.id == third.view.id == before
                    assert second.status()["counters"]["views"] == 3  # Started, found itself alone.
                assert first.status()["drops"]["settings"]
                assert second.status()["drops"]["settings"]
                (said,) = warnings(first)
                assert said.startswith(words)

    with caplog.at_level(logging.WARNING):
        play(story)
    assert f"g/a: {words}" in caplog.text
    assert f"g/c: {words}" in caplog.text
    assert "g/b: a runs with" in caplog.text


def test_lists_of_peers_that_differ_are_told_of_at_every_node(caplog):
    async def story() -> None:
        a, b, c = addresses(3)
        peers = {"a": a, "b": b, "c": c}
        async with (
            roundelay.join("g", node="a", peers={"a": a, "b": b}),
            roundelay.join("g", node="b", peers=peers),
            roundelay.join("g", node="c", peers=peers),
        ):
            for said in (
                "g/a: b lists c, this node does not: give every node the same peers",
                "g/b: this node lists c, a does not: give every node the same peers",
                f"g/a: frames of 'c' at {c} are ignored",
                f"g/c: a at {a} was never heard: does it run, and is the port right?",
            ):
                await holds(lambda said=said: said in caplog.text)  # type: ignore[misc]

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
                await holds(lambda: a.status()["drops"].get("own") == 50)
                async with roundelay.join("g", node="b", peers=peers) as b:
                    await a.wait_for(timeout_s=LIMIT_S)
                    await b.wait_for(timeout_s=LIMIT_S)
                    await (await b.send(b"heard"))

    play(story)


def test_a_node_that_nobody_listed(caplog):
    async def story() -> None:
        here, there = addresses(2)
        async with (
            roundelay.join("g", node="a", peers={"a": here}) as a,
            roundelay.join("g", node="z", peers={"a": here, "z": there}),
        ):
            await holds(lambda: a.status()["drops"]["stranger"])

    with caplog.at_level(logging.WARNING):
        play(story)
    assert "are ignored, since peers does not list that node; add it" in caplog.text


def test_a_node_of_another_group(caplog):
    async def story() -> None:
        here, there = addresses(2)
        async with (
            roundelay.join("g", node="a", peers={"a": here}) as a,
            roundelay.join("h", node="b", peers={"a": here, "b": there}),
        ):
            await holds(lambda: a.status()["drops"].get("group"))

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


def test_frames_of_another_version_and_of_many_strangers_have_one_line_each(caplog):
    async def story() -> None:
        (here,) = addresses(1)
        async with roundelay.join("g", node="a", peers={"a": here}) as a:
            target = (resolve(parse_address(here))[1],)
            with contextlib.closing(UdpSocket(Address("127.0.0.1", 0))) as other:
                for i in range(200):
                    (data,) = forged(f"x{i}", 1)
                    other.send(data, target)
                    other.send(data[:6] + bytes([VERSION + 1]) + data[7:], target)
                    await asyncio.sleep(0)
                drops = {"stranger": 200, "version": 200}
                await holds(lambda: drops.items() <= a.status()["drops"].items())
                assert len(warnings(a)) == 2
                assert f"datagrams of version {VERSION + 1} came from 127.0.0.1:" in caplog.text
                assert f"this node speaks version {VERSION}: run the same release" in caplog.text

    with caplog.at_level(logging.WARNING):
        play(story)
    assert len(logged(caplog)) == 2


def test_the_log_says_who_stopped_answering_and_who_restarted(caplog):
    async def story() -> None:
        peers = dict(zip("abc", addresses(3), strict=True))

        async def killed(group: roundelay.Group) -> None:
            assert group._node is not None
            group._node.close(roundelay.ClosedError("killed"))
            await group._release()

        async with (
            roundelay.join("g", node="a", peers=peers) as a,
            roundelay.join("g", node="b", peers=peers) as b,
        ):
            for again in (False, True):
                c = roundelay.join("g", node="c", peers=peers)
                await c.start()
                await asyncio.gather(c.wait_for(), a.wait_for(), b.wait_for())
                if again:
                    await holds(lambda: caplog.text.count("members again: c restarted") == 2)
                await asyncio.sleep(0.1)
                await killed(c)
            await a.wait_for_view(lambda view: view.members == ("a", "b"))
            await b.wait_for_view(lambda view: view.members == ("a", "b"))

    with caplog.at_level(logging.INFO):
        play(story)
    for node in "ab":
        lines = [line for line in caplog.text.splitlines() if f"g/{node}: view" in line]
        assert len(lines) == 4, caplog.text  # Started, all, all again, without c.
        assert "; c gone: " in lines[-1]
        assert "c stopped answering" in lines[-1]
        assert "raise timeout_s, now 400 ms" in lines[-1]


def test_a_node_that_is_alone_says_so_once(caplog):
    async def story() -> None:
        here, there = addresses(2)
        async with roundelay.join("g", node="a", peers={"a": here, "b": there}) as a:
            await holds(lambda: a.status()["counters"]["views"] >= 3)
            assert a.status()["never_heard"] == ["b"]

    with caplog.at_level(logging.INFO):
        play(story)
    (_, line) = logged(caplog)
    assert line.endswith(" of a, not primary (the node has just started)")
