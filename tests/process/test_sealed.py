"""Groups with a key, as real processes, while keys change, nodes restart and somebody on the path
repeats what he has recorded."""

import json
import random
import re
import signal
import stat
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest
from tests.patience import until
from tests.process.cluster import Cluster, judge
from tests.process.wiretap import Recorded

from roundelay.cli import main
from roundelay.runtime.key_files import read_keys
from roundelay.sealing.lives import PROOF_S
from roundelay.wire.frame import SEALED_MAGIC, key_id_of

pytestmark = pytest.mark.process

BUSY = ("overloaded", "receive buffer", "packets came more than once", "token is lost")
"""What nodes warn of on a machine that is busy, which is no fault of the seal."""


def keygen(path: Path, *change: str) -> Path:
    assert main(["keygen", "-o", str(path), *change]) == 0
    return path


def key_ids(path: Path) -> list[str]:
    return [key.id("g").hex() for key in read_keys(path)]


def seal(cluster: Cluster, node: str) -> dict[str, object]:
    found = cluster.status(node)
    assert found is not None
    shown: dict[str, object] = found["seal"]
    return shown


def drops(cluster: Cluster, node: str, *reasons: str) -> int:
    found = cluster.status(node)
    assert found is not None
    return sum(found["drops"].get(reason, 0) for reason in reasons)


def warnings(cluster: Cluster, node: str) -> list[str]:
    """What its log warns of, in its present life."""
    said = cluster.log(node).splitlines()
    return [line for line in said if " ms" not in line and not any(word in line for word in BUSY)]


def views(cluster: Cluster, nodes: Iterable[str]) -> dict[str, tuple[str, int]]:
    """The view of each node, and how many it has had."""
    found = {node: cluster.status(node) for node in nodes}
    return {
        node: (status["view"]["id"], status["counters"]["views"])
        for node, status in found.items()
        if status is not None
    }


def replay(cluster: Cluster, frames: Sequence[Recorded]) -> None:
    """Send recorded datagrams to their receivers once more."""
    for at, frame in enumerate(frames):
        cluster.tap.send(frame.sender, frame.receiver, frame.data)
        if at % 50 == 49:
            time.sleep(0.005)  # A receive buffer that is full proves nothing.


def refused(cluster: Cluster, frames: Sequence[Recorded], *reasons: str) -> int:
    """Send recorded datagrams once more and wait until they were read; returns how many of them
    were dropped for these reasons. Challenges among them are not dropped but answered."""
    sent = Counter(frame.receiver for frame in frames)
    dropped = {node: drops(cluster, node, *reasons) for node in sent}
    replay(cluster, frames)
    for node in sent:
        before = drops(cluster, node, "foreign")
        cluster.tap.send(next(iter(set(cluster.nodes) - {node})), node, b"the last one")
        until(partial(marked, cluster, node, before), "all are read")
    return sum(drops(cluster, node, *reasons) - dropped[node] for node in sent)


def marked(cluster: Cluster, node: str, before: int) -> bool:
    return drops(cluster, node, "foreign") > before


def test_a_group_under_load_changes_its_key(tmp_path, capsys):
    """Nobody is missed and no message lost, and the old key ends."""
    key = keygen(tmp_path / "group.key")
    (old,) = key_ids(key)
    with Cluster(tmp_path, "abcde", key=key, tap=True, timeout_s=1.0, old_key_s=4.0) as cluster:
        cluster.start()
        cluster.view()
        cluster.traffic()
        before = views(cluster, cluster.nodes)
        keygen(key, "--rotate")
        new = key_ids(key)[0]
        assert new != old
        for node in cluster.nodes:
            cluster.traffic(node, messages=3)
            capsys.readouterr()
            assert main(["key", "reload", "--json", "--control", str(cluster.control(node))]) == 0
            told = json.loads(capsys.readouterr().out)
            assert told["changed"]
            assert told["accepts"] == [new, old]
        until(
            lambda: all(seal(cluster, node)["sends_with"] == new for node in cluster.nodes),
            "all send with the new key",
        )
        under_old = [frame for frame in cluster.tap.recorded if key_id_of(frame.data).hex() == old]
        until(
            lambda: all(seal(cluster, node)["accepts"] == [new] for node in cluster.nodes),
            "the old key ends",
        )
        cluster.traffic()
        # Also from boots that have proven themselves, nothing is heard under the old key.
        to_a = [frame for frame in under_old if frame.receiver == "a"][-200:]
        assert refused(cluster, to_a, "key") == len(to_a) > 100
        cluster.traffic()
        assert views(cluster, cluster.nodes) == before
        # To read the same file again does not bring the old key back.
        assert main(["key", "reload", "--control", str(cluster.control("a"))]) == 0
        assert capsys.readouterr().out.startswith("the key file has not changed")
        keygen(key, "--retire")
        assert main(["key", "reload", "--control", str(cluster.control("a"))]) == 0
        assert seal(cluster, "a")["accepts"] == [new]
        assert all(frame.data[:2] == SEALED_MAGIC for frame in cluster.tap.recorded)
        judge(cluster)
        assert {stat.S_IMODE(path.stat().st_mode) for path in cluster.records} == {0o600}


RESTARTS = 50


def test_a_node_is_restarted_often_while_its_old_frames_are_replayed(tmp_path):
    """Whatever its earlier boots have sent, to form views too: none of it has an effect."""
    key = keygen(tmp_path / "group.key")
    dice = random.Random(1)
    with Cluster(tmp_path, "abc", key=key, tap=True, state=False, timeout_s=1.0) as cluster:
        cluster.start("a", "b")
        cluster.fork("c")
        cluster.view()
        replayed = dropped = 0
        for _ in range(RESTARTS):
            old = [frame for frame in list(cluster.tap.recorded) if frame.sender == "c"]
            cluster.kill("c")
            replay(cluster, dice.sample(old, min(40, len(old))))  # While it is away.
            cluster.fork("c")
            replay(cluster, dice.sample(old, min(40, len(old))))  # While it comes in.
            cluster.view()
            before = views(cluster, "ab")
            again = old[-100:] + dice.sample(old, min(100, len(old)))
            replayed += len(again)
            dropped += refused(cluster, again, "unproven", "replay")
            assert views(cluster, "ab") == before
        # Challenges among them are answered, and change nothing.
        assert dropped > 0.9 * replayed > 0.9 * 100 * RESTARTS
        rows = judge(cluster)
        assert len({row.inc for row in rows if row.proc == 2}) == RESTARTS + 1


def test_a_wrong_key_no_key_and_a_seal_of_the_future_at_one_of_five(tmp_path):
    """Four nodes go on as if the fifth were not there; a sentence at both sides says why."""
    key, other = keygen(tmp_path / "group.key"), keygen(tmp_path / "other.key")
    four = "abcd"
    with Cluster(tmp_path, "abcde", key=key, tap=True, timeout_s=1.0) as cluster:
        cluster.start(*four)
        cluster.view(*four)
        before = views(cluster, four)

        cluster.keys["e"] = other
        cluster.start("e")
        cluster.view("e")
        # Long enough to miss peers that are silent: these are not, they cannot be read.
        until(lambda: uptime_s(cluster, "e") > 6.5, "some seconds")
        (sentence,) = warnings(cluster, "e")
        assert "datagrams under another key came from 127.0.0.1:" in sentence
        assert "give this node and that one the same key file" in sentence
        for node in four:
            assert cluster.log(node).count("datagrams under another key came from") == 1
        cluster.traffic(*four)
        assert views(cluster, four) == before
        assert drops(cluster, "a", "key") > 0

        cluster.kill("e")
        cluster.keys["e"] = None
        cluster.start("e")
        cluster.view("e")
        until(lambda: uptime_s(cluster, "e") > 6.5, "some seconds")
        without, mixed = warnings(cluster, "e")
        assert "no key is set, so whoever reaches the port" in without
        assert "sealed datagrams came from 127.0.0.1:" in mixed
        assert "and this node has no key: start it with the key file of its group" in mixed
        for node in four:
            assert cluster.log(node).count("datagrams without a seal came from") == 1
        cluster.traffic(*four)
        assert views(cluster, four) == before
        assert drops(cluster, "a", "plain") > 0

        frame = next(frame.data for frame in cluster.tap.recorded if frame.receiver == "a")
        for _ in range(5):
            cluster.tap.send("b", "a", frame[:2] + b"\x02" + frame[3:])
        until(lambda: drops(cluster, "a", "version") == 5, "a seal of version 2")
        assert (
            cluster.log("a").count("datagrams with a seal of version 2, cipher 1, came from") == 1
        )
        assert views(cluster, four) == before

        # The key file is put right, and the node is let in.
        cluster.kill("e")
        cluster.keys["e"] = other
        cluster.start("e")
        cluster.view("e")
        other.write_bytes(key.read_bytes())
        assert main(["key", "reload", "--control", str(cluster.control("e"))]) == 0
        cluster.view()
        cluster.traffic()
        judge(cluster)


def uptime_s(cluster: Cluster, node: str) -> float:
    found = cluster.status(node)
    return 0.0 if found is None else float(found["uptime_s"])


def test_what_a_node_sent_behind_a_partition_has_no_effect_later(tmp_path):
    """B runs on alone and dies; what A never saw of it comes at A afterwards. C is stopped
    meanwhile for longer than a proof lasts, and comes back."""
    key = keygen(tmp_path / "group.key")
    with Cluster(tmp_path, "abc", key=key, tap=True) as cluster:
        cluster.start()
        cluster.view()
        cluster.traffic()
        cluster.tap.cut_off("b", "ac")
        cluster.signal("c", signal.SIGSTOP)
        cluster.view("a")
        cluster.view("b")
        cluster.traffic("a", "b")
        until(lambda: seal(cluster, "a")["proven"] == [], f"{PROOF_S:g} s")
        cluster.kill("b")
        unseen = [
            frame
            for frame in list(cluster.tap.recorded)
            if (frame.sender, frame.receiver, frame.carried) == ("b", "a", False)
        ]
        assert len(unseen) > 20
        assert not {frame.data for frame in cluster.tap.recorded if frame.carried} & {
            frame.data for frame in unseen
        }
        before = views(cluster, "a")
        cluster.tap.cuts.clear()
        assert refused(cluster, unseen, "unproven") > 20
        cluster.traffic("a")
        assert views(cluster, "a") == before

        cluster.signal("c", signal.SIGCONT)
        cluster.view("a", "c")
        cluster.start("b")
        cluster.view()
        cluster.traffic()
        judge(cluster)


def test_a_node_of_the_command_line_reads_its_key_again(tmp_path, capfd):
    key = keygen(tmp_path / "group.key")
    with Cluster(tmp_path, "a", key=key, relay=False) as cluster:
        cluster.start_command("a", "--cipher", "chacha")
        until(lambda: cluster.status("a"), "a node")
        shown = seal(cluster, "a")
        (old,) = key_ids(key)
        assert (shown["cipher"], shown["accepts"]) == ("ChaCha20-Poly1305", [old])
        keygen(key, "--rotate")
        cluster.signal("a", signal.SIGHUP)
        until(lambda: seal(cluster, "a")["accepts"] == key_ids(key), "both keys")
        assert "the key was changed; the old one is accepted for a while" in cluster.log("a")
        keygen(key, "--retire")
        held = key.read_bytes()
        key.write_text("garbage")
        cluster.signal("a", signal.SIGHUP)
        until(lambda: "the key was not changed" in cluster.log("a"), "an error")
        assert re.search(r"ERROR the key was not changed: \S+ is no key file", cluster.log("a"))
        control = ("--control", str(cluster.control("a")))
        capfd.readouterr()
        assert main(["key", "reload", *control]) == 2
        assert "is no key file: line 1" in capfd.readouterr().err
        assert len(seal(cluster, "a")["accepts"]) == 2  # type: ignore[arg-type]
        key.write_bytes(held)
        assert main(["key", "reload", *control]) == 0
        (new,) = key_ids(key)
        assert capfd.readouterr().out == f"the key was changed; sends with {new}, accepts {new}\n"
        assert main(["status", *control]) == 0
        assert f"seal       ChaCha20-Poly1305, key {new}; proven: none\n" in capfd.readouterr().out
        cluster.stop("a")
        secrets = re.findall("[0-9a-f]{64}", held.decode())
        assert secrets
        assert not any(secret in cluster.log("a") for secret in secrets)
