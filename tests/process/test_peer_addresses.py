"""Peers that move, or whose names do not resolve yet, are found; on addresses 127.0.0.x."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from tests.patience import LIMIT_S, STORY_S, holds, play

import roundelay
from roundelay.runtime.group import Group
from roundelay.runtime.key_files import write_keys
from roundelay.runtime.machine import Machine
from roundelay.runtime.settings import settings
from roundelay.sealing.keys import GroupKey
from roundelay.transport.address import (
    Address,
    AddressError,
    SocketAddress,
    free_addresses,
    resolve,
)

pytestmark = pytest.mark.process


class Names:
    """A name server of our own; numeric addresses resolve as ever."""

    def __init__(self, **known: str) -> None:
        self.known = known
        self.asked = 0
        self.answers = threading.Event()
        """While it is not set, whoever asks for a name waits."""
        self.answers.set()

    def resolve(self, address: Address, family: int) -> tuple[int, SocketAddress]:
        name, dot, _ = address.host.partition(".test")
        if not dot:
            return resolve(address, family)
        self.asked += 1
        self.answers.wait(STORY_S)
        if name not in self.known:
            raise AddressError(f"{address.host!r} does not resolve")
        return family, (self.known[name], address.port)


def ports(nodes: str) -> dict[str, str]:
    return {node: text.rpartition(":")[2] for node, text in free_addresses(nodes).items()}


def member(node: str, names: Names, **told: Any) -> Group:
    values = {"group": "g", "node": node, **told}
    return Group(settings(values), Machine(resolve=names.resolve))


plain_member = member


async def together(*groups: Group) -> None:
    for group in groups:
        await group.wait_for(timeout_s=LIMIT_S)
    await (await groups[0].send(b"x"))


@pytest.mark.parametrize("sealed", [False, True])
def test_a_peer_that_moved_behind_its_name_is_found(sealed, tmp_path):
    key = tmp_path / "group.key" if sealed else None
    if key is not None:
        write_keys(key, (GroupKey(bytes(32)),), replace=False)

    def member(node: str, names: Names, **told: Any) -> Group:
        return plain_member(node, names, key=key, **told)

    async def story() -> None:
        port = ports("ab")
        peers = {node: f"{node}.test:{port[node]}" for node in "ab"}
        names = Names(a="127.0.0.2", b="127.0.0.3")
        async with member("a", names, peers=peers, bind=f"127.0.0.2:{port['a']}") as a:
            async with member("b", names, peers=peers, bind=f"127.0.0.3:{port['b']}") as b:
                await together(a, b)
            names.known["b"] = "127.0.0.4"
            async with member("b", names, peers=peers, bind=f"127.0.0.4:{port['b']}") as b:
                await together(a, b)
                assert a.status()["addresses"] == {"b": f"127.0.0.4:{port['b']}"}

    play(story)


def test_names_that_do_not_resolve_yet_end_no_node(caplog):
    async def story() -> None:
        port = ports("ab")
        peers = {node: f"{node}.test:{port[node]}" for node in "ab"}
        names = Names()
        async with (
            member("a", names, peers=peers, bind=f"127.0.0.2:{port['a']}") as a,
            member("b", names, peers=peers, bind=f"127.0.0.3:{port['b']}") as b,
        ):
            await (await a.send(b"alone"))
            assert a.status()["addresses"] == {}
            # Both are looked up once more in vain, and no more is said.
            while names.asked < 4:  # noqa: ASYNC110  # Nobody tells of it.
                await asyncio.sleep(0.01)
            assert caplog.text.count("'b.test', the host of peer 'b', does not resolve") == 1
            names.known |= {"a": "127.0.0.2", "b": "127.0.0.3"}
            await together(a, b)

    with caplog.at_level(logging.WARNING):
        play(story)


def test_a_name_server_that_does_not_answer_holds_nobody_up():
    async def story() -> None:
        port = ports("abc")
        peers = {node: f"127.0.0.1:{port[node]}" for node in "ab"} | {"c": f"c.test:{port['c']}"}
        names = Names()
        async with (
            member("a", names, peers=peers) as a,
            member("b", names, peers=peers) as b,
        ):
            asked = names.asked
            names.answers.clear()  # From now on.
            await a.wait_for(["a", "b"], timeout_s=LIMIT_S)
            await holds(lambda: names.asked > asked)
            for _ in range(10):
                await (await a.send(b"goes on"))
            assert b.view.members == ("a", "b")
        assert not names.answers.is_set()  # Both have left, and the look-up still goes on.
        names.answers.set()

    play(story)


def test_a_peer_that_speaks_from_another_port_is_found_where_it_speaks_from():
    async def story() -> None:
        port = ports("abx")
        peers = {node: f"127.0.0.1:{port[node]}" for node in "ab"}
        names = Names()
        async with member("a", names, peers=peers) as a:
            async with member("b", names, peers=peers) as b:
                await together(a, b)
            async with member("b", names, peers=peers, bind=f"127.0.0.9:{port['x']}") as b:
                await together(a, b)
                assert a.status()["addresses"] == {"b": f"127.0.0.9:{port['x']}"}
                assert a.status()["drops"]["probe"] >= 2
            async with member("b", names, peers=peers) as b:  # And back.
                await together(a, b)
                assert a.status()["addresses"] == {"b": peers["b"]}

    play(story)


def test_a_sealed_peer_that_was_restarted_at_another_port_is_not_looked_for_there(tmp_path):
    """Challenges go to where a peer is known to be: a node sends nothing to where somebody says
    that he is."""
    key = tmp_path / "group.key"
    write_keys(key, (GroupKey(bytes(32)),), replace=False)

    async def story() -> None:
        port = ports("abx")
        peers = {node: f"127.0.0.1:{port[node]}" for node in "ab"}
        names = Names()
        async with member("a", names, peers=peers, key=key) as a:
            async with member("b", names, peers=peers, key=key) as b:
                await together(a, b)
            async with member("b", names, peers=peers, key=key, bind=f"127.0.0.9:{port['x']}") as b:
                await a.wait_for(["a"], timeout_s=LIMIT_S)
                before = a.status()["drops"]["unproven"]
                await holds(lambda: a.status()["drops"]["unproven"] >= before + 20)
                assert a.status()["addresses"] == {"b": peers["b"]}
                assert b.status()["never_heard"] == ["a"]
            async with member("b", names, peers=peers, key=key) as b:
                await together(a, b)

    play(story)


def test_a_sealed_peer_that_was_found_elsewhere_is_still_expected_where_peers_say(tmp_path):
    """Whoever was on the path for a while can have moved it: that must not last."""
    key = tmp_path / "group.key"
    write_keys(key, (GroupKey(bytes(32)),), replace=False)

    async def story() -> None:
        port = ports("ab")
        peers = {node: f"127.0.0.1:{port[node]}" for node in "ab"}
        names = Names()
        async with member("a", names, peers=peers, key=key) as a:
            async with member("b", names, peers=peers, key=key) as b:
                await together(a, b)
            assert a._node is not None
            a._node.peer_addresses._move("b", ("127.0.0.9", 9))
            async with member("b", names, peers=peers, key=key) as b:
                await together(a, b)
                assert a.status()["addresses"] == {"b": peers["b"]}

    play(story)


def test_a_numeric_address_of_another_kind_is_told():
    async def story() -> None:
        port = ports("ab")
        peers = {"a": f"127.0.0.1:{port['a']}", "b": f"[::1]:{port['b']}"}
        with pytest.raises(roundelay.ListenError, match="peer 'b': '::1' does not resolve to an"):
            await roundelay.join("g", node="a", peers=peers).start()

    play(story)
