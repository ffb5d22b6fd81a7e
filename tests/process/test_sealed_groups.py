"""Groups with a key in one process: several at one port, over multicast, under one name twice."""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.patience import LIMIT_S, holds, play

import roundelay
import roundelay.blocking
from roundelay.runtime.errors import ConfigError
from roundelay.runtime.key_files import write_keys
from roundelay.sealing.keys import GroupKey
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

KEYS = [GroupKey(bytes([n]) * 32) for n in range(4)]


def key_file(path: Path, number: int = 0) -> Path:
    write_keys(path, (KEYS[number],), replace=False)
    return path


@asynccontextmanager
async def joined(
    group: str, peers: Mapping[str, str], keys: Mapping[str, Path | None], **more: Any
) -> AsyncIterator[dict[str, roundelay.Group]]:
    """A node of a group for each of its peers."""
    async with AsyncExitStack() as stack:
        made = {}
        for node in peers:
            one = roundelay.join(
                group, node=node, peers=peers, key=keys[node], timeout_s=2.0, **more
            )
            made[node] = await stack.enter_async_context(one)
            made[node].ignore()
        yield made


async def together(groups: Mapping[str, roundelay.Group]) -> None:
    for group in groups.values():
        await group.wait_for(timeout_s=LIMIT_S)
        await (await group.send(b"x", safe=True))


def test_groups_at_one_port_are_told_apart_by_their_keys(tmp_path, caplog):
    """Two groups have one key file between them, and a third has none."""
    key = key_file(tmp_path / "group.key")

    async def story() -> None:
        peers = free_addresses("ab")
        shared, none = dict.fromkeys("ab", key), dict.fromkeys("ab")
        async with (
            joined("red", peers, shared) as red,
            joined("blue", peers, shared, cipher="chacha") as blue,
            joined("plain", peers, none) as plain,
        ):
            for groups in (red, blue, plain):
                await together(groups)
            assert red["a"].status()["seal"]["accepts"] != blue["a"].status()["seal"]["accepts"]
            views = [groups["a"].view.id for groups in (red, blue, plain)]
            write_keys(key, (KEYS[1], KEYS[0]), replace=True)
            old = red["a"].status()["seal"]["sends_with"]
            for group in (red["a"], blue["b"], red["b"], blue["a"]):  # Both keys are in use now.
                assert group.reload_key()["changed"]
                for groups in (red, blue, plain):
                    await together(groups)
            await holds(lambda: red["b"].status()["seal"]["sends_with"] != old)
            await together(red)
            with pytest.raises(ConfigError, match="this node has no key"):
                plain["a"].reload_key()
            assert [groups["a"].view.id for groups in (red, blue, plain)] == views
            assert red["a"].status()["drops"]["other_groups"] == 0

    with caplog.at_level(logging.WARNING):
        play(story)
    assert "under a key that no group" not in caplog.text


def test_a_wrong_key_at_a_port_of_several_groups_is_told_of(tmp_path, caplog):
    key, other = key_file(tmp_path / "group.key"), key_file(tmp_path / "other.key", 2)

    async def story() -> None:
        peers = free_addresses("ab")
        async with (
            roundelay.join("red", node="a", peers=peers, key=key) as red,
            roundelay.join("plain", node="a", peers=peers) as plain,
            roundelay.join("red", node="b", peers=peers, key=other),
        ):
            sentence = f"datagrams came from {peers['b']} under a key that no group on this port"
            for group in (red, plain):
                await holds(partial(warned, group, sentence))
            await red.wait_for(["a"])
        before = caplog.text.count("datagrams without a seal")
        async with (  # The other way round: where it is sealed, a plain frame names its group.
            roundelay.join("red", node="a", peers=peers, key=key) as red,
            roundelay.join("plain", node="a", peers=peers) as plain,
            roundelay.join("red", node="b", peers=peers),
        ):
            await holds(lambda: warned(red, f"datagrams without a seal came from {peers['b']}"))
            assert not warned(plain, "datagrams")
        assert caplog.text.count("datagrams without a seal") == before + 1

    with caplog.at_level(logging.WARNING):
        play(story)


def test_a_sealed_node_that_is_not_among_the_peers_is_told_of(tmp_path, caplog):
    key = key_file(tmp_path / "group.key")

    async def story() -> None:
        peers = free_addresses("abc")
        few = {node: peers[node] for node in "ab"}
        async with (
            roundelay.join("g", node="a", peers=few, key=key, timeout_s=2.0) as a,
            roundelay.join("g", node="b", peers=few, key=key, timeout_s=2.0) as b,
            roundelay.join("g", node="c", peers=peers, key=key),
        ):
            await together({"a": a, "b": b})
            for group in (a, b):
                await holds(partial(warned, group, "whose sender is not among the peers"))
                assert group.status()["drops"]["stranger"] > 0
            assert a.view.members == ("a", "b")
        assert f"datagrams under the key of the group came from {peers['c']}" in caplog.text

    with caplog.at_level(logging.WARNING):
        play(story)


def warned(group: roundelay.Group, sentence: str) -> bool:
    return any(sentence in warning for warning in group.status()["warnings"])


def test_multicast_under_a_seal(tmp_path):
    """A node's own datagrams come back to it, and are neither strange nor replayed."""
    key = key_file(tmp_path / "group.key")

    async def story() -> None:
        peers = free_addresses("abc")
        port = peers["a"].rpartition(":")[2]
        keys = dict.fromkeys("abc", key)
        async with joined("g", peers, keys, multicast=f"239.77.12.9:{port}") as groups:
            await together(groups)
            await together(groups)
            for group in groups.values():
                found = group.status()
                assert found["drops"]["own"] > 0
                assert not set(found["drops"]) & {"own name", "impostor", "key", "seal"}
                assert found["seal"]["proven"] == sorted(set("abc") - {found["node"]})

    play(story)


def test_whoever_uses_the_name_of_a_sealed_node_ends_nobody(tmp_path, caplog):
    """A second node of a name cannot be told from somebody who repeats old datagrams."""
    key = key_file(tmp_path / "group.key")

    async def story() -> None:
        peers = free_addresses("ab")
        away = free_addresses("a")["a"]
        async with joined("g", peers, dict.fromkeys("ab", key)) as groups:
            await together(groups)
            before = groups["a"].view.id
            confused = {"a": away, "b": peers["a"], "c": peers["b"]}
            async with roundelay.join("g", node="a", peers=confused, key=key) as twin:
                for _ in range(30):
                    await (await twin.send(b"alone"))
                await holds(lambda: groups["a"].status()["drops"].get("own name", 0) > 10)
                assert twin.view.members == ("a",)
            await together(groups)
            assert groups["a"].view.id == before
        assert caplog.text.count("datagrams under the name of this node came") == 1

    with caplog.at_level(logging.WARNING):
        play(story)


def test_a_node_alone_is_not_ended_by_frames_under_its_name_either(tmp_path):
    key = key_file(tmp_path / "group.key")

    async def story() -> None:
        here, there = free_addresses("ab").values()
        async with (
            roundelay.join("g", node="a", peers={"a": here}, key=key) as first,
            roundelay.join("g", node="a", peers={"a": there, "b": here}, key=key),
        ):
            # Without a key, a second and a few frames end it: see `test_neighbours`.
            await holds(lambda: first.status()["uptime_s"] > 3)
            assert first.status()["drops"]["own name"] > 5
            await (await first.send(b"still here"))

    play(story)


def test_programs_without_an_event_loop_have_keys_too(tmp_path):
    key = key_file(tmp_path / "group.key")
    peers = free_addresses("ab")
    with (
        roundelay.blocking.join("g", node="a", peers=peers, key=key) as a,
        roundelay.blocking.join("g", node="b", peers=peers, key=key, cipher="chacha") as b,
    ):
        a.wait_for(timeout_s=LIMIT_S)
        b.wait_for(timeout_s=LIMIT_S)
        assert not a.reload_key()["changed"]
        write_keys(key, (KEYS[3], KEYS[0]), replace=True)
        assert b.reload_key()["changed"]
        assert len(a.reload_key()["accepts"]) == 2
        a.send(b"x", safe=True).wait(LIMIT_S)
        key.write_text("garbage")
        with pytest.raises(ConfigError, match="is no key file"):
            a.reload_key()
        b.send(b"x", safe=True).wait(LIMIT_S)
