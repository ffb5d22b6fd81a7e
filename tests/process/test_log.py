"""Real nodes that keep a log, through what befalls real nodes: nothing that was confirmed is lost,
journals agree, and what clients repeat is there once."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.patience import until
from tests.process.log_cluster import LogCluster, Repeater

from roundelay.check import check
from roundelay.check.text import table
from roundelay.journal.inspect import overview
from roundelay.journal.reader import Lossy, Reader
from roundelay.journal.segment import HEADER_BYTES
from roundelay.runtime.client import Client
from roundelay.trace import reader

pytestmark = pytest.mark.process

ROUNDS = 10


def test_kill_9_of_a_minority_again_and_again(tmp_path):
    chance = random.Random(1)
    with LogCluster(tmp_path, "abc", traced=True) as cluster:
        for node in cluster.nodes:
            cluster.fork(node)
        cluster.open()
        with Repeater(cluster) as client:
            for _ in range(ROUNDS):
                node = chance.choice(cluster.nodes)
                others = [other for other in cluster.nodes if other != node]
                cluster.kill(node)
                cluster.progress(*others, entries=5)
                cluster.fork(node)
                cluster.open()
        verdict = cluster.judge(client.receipts)
        assert client.repeated
        assert verdict.entries >= verdict.confirmed


@pytest.mark.parametrize(("nodes", "return_first"), [("abc", "bc"), ("abcde", "ace")])
def test_a_power_cut_of_a_minority_and_of_all_and_the_return_of_a_majority(
    tmp_path, nodes, return_first
):
    with LogCluster(tmp_path, nodes, power=True) as cluster:
        for node in nodes:
            cluster.fork(node)
        cluster.open()
        with Repeater(cluster) as client:
            cluster.progress(entries=50)
            minority = nodes[: len(nodes) // 2]
            cluster.kill_at_once(*minority)
            cluster.progress(*nodes[len(nodes) // 2 :], entries=5)
            for node in minority:
                cluster.fork(node)
            cluster.open()
            cluster.kill_at_once()
            for node in return_first:
                cluster.fork(node)
            cluster.open(*return_first)
            cluster.progress(*return_first, entries=20)
            cluster.kill_at_once(*return_first)
            for node in nodes:
                cluster.fork(node)
            cluster.open()
            cluster.progress(entries=5)
        cluster.judge(client.receipts)


def test_the_policy_interval_survives_kill_9_of_all_at_once(tmp_path):
    with LogCluster(tmp_path, "abc", fsync="interval") as cluster:
        for node in cluster.nodes:
            cluster.fork(node)
        cluster.open()
        cluster.progress(entries=50)
        cluster.kill_at_once()
        for node in cluster.nodes:
            cluster.fork(node)
        cluster.open()
        cluster.progress(entries=5)
        cluster.judge()


def test_after_kill_9_of_all_under_the_policy_off_an_operator_goes_on(tmp_path):
    with LogCluster(tmp_path, "abc", fsync="off") as cluster:
        for node in cluster.nodes:
            cluster.fork(node)
        cluster.open()
        cluster.progress(entries=50)
        cluster.kill_at_once()
        _recover_after_all_failed(cluster)
        cluster.progress(entries=5)


def _recover_after_all_failed(cluster: LogCluster) -> int:
    """All come back and nobody is able; c loses its disk, and an operator goes on with a and b. The
    index where the new generation begins."""
    for node in cluster.nodes:
        cluster.fork(node)
    cluster.view()
    _nobody_is_able(cluster)
    cluster.kill_at_once()
    cluster.wipe("c")
    begun = _recover_two(cluster)
    for node in cluster.nodes:
        cluster.fork(node)
    cluster.open()
    return begun


def _nobody_is_able(cluster: LogCluster) -> None:
    for node in cluster.nodes:
        found = cluster.log_status(node)
        assert found is not None
        assert (found["state"], found["condition"]) == ("closed", "not able")
        assert found["why"]


def _recover_two(cluster: LogCluster) -> int:
    """Of what a and b have an operator makes a new generation, which begins at this index."""
    logs = {node: overview(cluster.journal(node) / "g") for node in "ab"}
    first, second = sorted(logs, key=lambda node: logs[node].place, reverse=True)
    told = _recover(cluster, first, logs[first].kept.log)
    view = re.search(r"--follow (\S+)", told)
    assert view is not None
    _recover(cluster, second, logs[second].kept.log, "--follow", view[1])
    return logs[first].place.length


def test_a_power_cut_under_interval_leaves_nobody_able_and_an_operator_goes_on(tmp_path):
    """Of three disks one is lost besides. The two others are recovered, the better one first."""
    with LogCluster(tmp_path, "abc", fsync="interval:200ms", power=True, traced=True) as cluster:
        for node in cluster.nodes:
            cluster.fork(node)
        cluster.open()
        cluster.progress(entries=150)
        cluster.kill_at_once()
        begun = _recover_after_all_failed(cluster)
        cluster.progress(entries=20)
        cluster.stop_load()
        length = cluster.committed("a")
        until(
            lambda: all(len(_read(cluster, node)[0]) == length for node in cluster.nodes),
            "the files to tell how much is committed",
        )
        texts, losses = zip(*(_read(cluster, node) for node in cluster.nodes), strict=True)
        assert texts[0] == texts[1] == texts[2]
        assert len(texts[0]) > begun
        assert losses == ([begun],) * 3
        whole = reader.read(cluster.finish())
    report = check(whole.rows, whole.manifest, problems=whole.problems)
    assert report.ok, table(report, whole.manifest)
    tags = {(row.kind, row.tag) for row in whole.rows if row.tag in ("lossy", "follows")}
    assert tags == {("open", "lossy"), ("open", "follows")}
    # Without the rows that say so, entries were lost.
    hidden = [r._replace(tag="", kind="stored") if r.tag == "lossy" else r for r in whole.rows]
    assert {"J1", "J9"} & {v.property for v in check(hidden, whole.manifest).violated}


def _recover(cluster: LogCluster, node: str, log: bytes, *more: str) -> str:
    words = ("journal", "recover", str(cluster.journal(node)), "--force", "--survivors", "a,b")
    command = [sys.executable, "-m", "roundelay", *words, "--log", log.hex(), *more]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _read(cluster: LogCluster, node: str) -> tuple[list[bytes], list[int]]:
    """What is committed in the journal of a node, and where something may be lost before."""
    texts: list[bytes] = []
    losses: list[int] = []
    journal = Reader(cluster.journal(node) / "g")
    for item in journal.read(0):
        if isinstance(item, Lossy):
            losses.append(item.from_index)
        else:
            texts += item.payloads
    journal.close()
    return texts, losses


def test_a_donor_dies_a_disk_is_wiped_and_a_segment_is_damaged(tmp_path):
    slow = {"catchup_bytes_per_s": 1 << 18, "segment_bytes": 1 << 20}
    with LogCluster(tmp_path, "abcd", more=slow) as cluster:
        for node in cluster.nodes:
            cluster.fork(node)
        cluster.open()
        _append(cluster, "a", 40, 60_000)
        cluster.kill("d")
        cluster.wipe("d")
        cluster.fork("d")
        until(lambda: _filling(cluster, "d"), "d to fetch")
        for donor in "abc":
            cluster.kill(donor)
            cluster.fork(donor)
            cluster.open(*"abc")
        cluster.open()
        cluster.progress()

        cluster.kill("c")
        old, *_, newest = sorted((cluster.journal("c") / "g" / "log").glob("*.log"))
        _damage(newest, HEADER_BYTES + 2000)  # Found at the start.
        cluster.fork("c")
        cluster.open()
        assert "is damaged at byte" in cluster.log("c")
        cluster.progress()

        cluster.kill("c")
        _damage(old, old.stat().st_size // 2)  # Found when it is read; repaired by a restart.
        cluster.fork("c")
        until(lambda: "follow: " in cluster.log("c"), "the damage to be found")
        cluster.kill("c")
        cluster.fork("c")
        cluster.open()
        cluster.judge()


def _damage(path: Path, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        data = file.read(64)
        file.seek(offset)
        file.write(bytes(byte ^ 0xFF for byte in data))


def _append(cluster: LogCluster, node: str, count: int, size: int) -> None:
    """Append large messages through a node."""
    lines = b"".join(bytes([97 + n % 26]) * size + b"%d\n" % n for n in range(count))
    command = [sys.executable, "-m", "roundelay", "send", "--log", "--json"]
    subprocess.run(
        [*command, "--control", str(cluster.control(node))],
        input=lines,
        check=True,
        capture_output=True,
    )


def _filling(cluster: LogCluster, node: str) -> bool:
    found = cluster.log_status(node)
    return found is not None and found["condition"] != "able" and found["length"] > 0


def test_a_disk_that_fills_up_holds_nobody_up_and_goes_on_when_there_is_room(tmp_path):
    place = tmp_path / "journal" / "c"
    place.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", str(place)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        ballast = place / "ballast"
        with LogCluster(tmp_path, "abc", more={"segment_bytes": 1 << 20}) as cluster:
            for node in cluster.nodes:
                cluster.fork(node)
            cluster.open()
            cluster.progress()
            free = os.statvfs(place)
            ballast.write_bytes(bytes(free.f_bavail * free.f_frsize))
            _append(cluster, "a", 30, 1_000_000)
            cluster.progress("a", "b")
            until(lambda: "disk is full" in cluster.log("c"), "c to say that its disk is full")
            found = cluster.status("c")
            assert found is not None
            assert any("disk is full" in sentence for sentence in found["warnings"])
            assert found["log"]["stored"] < cluster.committed("a")
            ballast.unlink()
            subprocess.run(["mount", "-o", "remount,size=200m", str(place)], check=True)
            cluster.open()
            cluster.judge()  # Which waits until c has stored what it lacked.
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_commands_append_and_read_the_log_of_a_running_node(tmp_path):
    with LogCluster(tmp_path, "ab", rate=0.001) as cluster:
        cluster.start()
        cluster.open()

        def command(*words: str) -> str:
            told = [sys.executable, "-m", "roundelay", *words]
            control = str(cluster.control("a"))
            done = subprocess.run(
                [*told, "--control", control], capture_output=True, text=True, check=False
            )
            assert not done.returncode, done.stderr
            return done.stdout

        first = int(command("send", "--log", "hello").strip())
        assert command("send", "--log", "--session", "s", "--first", "4", "one", "two") == (
            f"{first + 1}\n{first + 2}\n"
        )
        again = command("send", "--log", "--session", "s", "--first", "5", "two")
        assert again == f"{first + 2}\n"
        shown = command("tail", "--log", "--from", str(first), "--count", "3").splitlines()
        assert shown == [f"{first} a: hello", f"{first + 1} a: one", f"{first + 2} a: two"]
        text = command("status")
        assert "log        open, this node is able" in text
        assert f"{first + 3:,} committed" in text
        metrics = command("status", "--prometheus")
        assert f'roundelay_log_committed{{group="g",node="a"}} {first + 3}' in metrics
        assert "roundelay_log_sync_seconds_count" in metrics
        assert 'roundelay_log_generation{group="g",node="a"} 0' in metrics
        assert "roundelay_log_applied" not in metrics, "there is no machine"
        with Client(cluster.control("a")) as client:
            document = client.ask(do="status")["log"]
        assert document["voters"] == ["a", "b"]
        cluster.kill("b")
        until(lambda: _state(cluster, "a") == "closed", "a to be alone")
        failed = subprocess.run(
            [
                *(sys.executable, "-m", "roundelay", "send", "--log", "--timeout", "0.1", "x"),
                *("--control", str(cluster.control("a"))),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert failed.returncode == 2
        assert "nothing was sent" in failed.stderr
        assert "needs" in command("status")


def _state(cluster: LogCluster, node: str) -> str:
    found = cluster.log_status(node)
    return "" if found is None else str(found["state"])
