"""Real nodes, of which one is killed and one breaks, under `watch` and `ingest --follow`."""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.patience import LIMIT_S, until
from tests.pipeline.processes import die_with_parent

pytest.importorskip("pyspark")

from roundelay.cli import main
from roundelay.pipeline import session
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.ingest.table import Table
from roundelay.pipeline.live.judge import SILENT_S
from roundelay.runtime.client import Client, ClientError
from roundelay.trace.manifest import Manifest
from roundelay.transport.address import free_addresses

pytestmark = pytest.mark.process

ROUNDELAY = ("-m", "roundelay")
BROKEN = str(Path(__file__).parents[1] / "process" / "broken.py")


class Stage:
    """Processes below one directory, and when each line of their output came."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.running: dict[str, subprocess.Popen[str]] = {}
        self.said: dict[str, list[tuple[float, dict[str, Any]]]] = {}
        self._threads: list[Thread] = []
        self._peers = [f"--peer={n}={a}" for n, a in free_addresses("abc").items()]

    def start(self, name: str, *words: str) -> None:
        with (self.place / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=self.place,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                preexec_fn=die_with_parent,
            )
        self.running[name] = process
        said = self.said.setdefault(name, [])

        def listen() -> None:
            assert process.stdout is not None
            with process.stdout as lines:
                for line in lines:
                    if line.startswith("{"):
                        said.append((time.time(), json.loads(line)))

        self._threads.append(Thread(target=listen))
        self._threads[-1].start()

    def node(self, name: str, program: tuple[str, ...], *more: str) -> None:
        flags = ("--group=g", f"--node={name}", f"--control={name}.sock", f"--state=state-{name}")
        trace = ("--trace=in", "--trace-roll=1", "--quiet")
        self.start(name, *program, *flags, *trace, *self._peers, *more)

    def told(self, name: str, key: str) -> list[tuple[float, dict[str, Any]]]:
        assert self.running[name].poll() is None, (self.place / f"{name}.log").read_text()
        return [(when, said) for when, said in self.said[name] if key in said]

    def until_told(self, key: str) -> tuple[float, dict[str, Any]]:
        """The first thing that `watch` tells of that kind."""
        until(lambda: self.told("watch", key), key)
        return self.told("watch", key)[0]

    def together(self, names: str) -> None:
        def seen() -> bool:
            with suppress(ClientError), Client(self.place / f"{names[-1]}.sock") as client:
                return bool(client.ask(do="status")["view"]["members"] == list(names))
            return False

        until(seen, f"a view of {names}")

    def end(self, name: str, number: int) -> int:
        process = self.running.pop(name)
        process.send_signal(number)
        return process.wait(LIMIT_S)

    def close(self) -> None:
        for name in list(self.running):
            self.end(name, signal.SIGKILL)
        for thread in self._threads:
            thread.join()


@pytest.fixture
def stage() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="rd") as name:  # Paths of sockets must be short.
        made = Stage(Path(name))
        (made.place / "in").mkdir()
        try:
            yield made
        finally:
            made.close()


def pieces(place: Path) -> dict[str, list[Path]]:
    """By life, what its manifest counts."""
    found = {}
    for path in sorted((place / "in").glob("*.manifest.json")):
        life = path.name.removesuffix(".manifest.json")
        count = Manifest.from_json(path.read_text()).pieces
        found[life] = sorted((place / "in").glob(f"{life}.*.parquet"))[:count]
    return found


def known_since(place: Path, victim: tuple[int, int, int]) -> float:
    """When the last node had written behind this row (node, incarnation, number): from then on it
    could be judged."""
    lives: dict[int, list[tuple[int, float]]] = {}
    place_of: int | None = None
    for files in pieces(place).values():
        for file in files:
            rows = pq.read_table(file, columns=["proc", "inc", "lseq", "lam"]).to_pydict()
            piece = max(rows["lam"]), file.stat().st_mtime
            lives.setdefault(rows["inc"][0], []).append(piece)
            for row in zip(rows["proc"], rows["inc"], rows["lseq"], rows["lam"], strict=True):
                place_of = row[3] if row[:3] == victim else place_of
    assert place_of is not None
    behind = [[at for last, at in life if last > place_of] for life in lives.values()]
    return max(min(times) for times in behind if times)


def test_a_breach_in_a_running_group_is_told_within_two_batches_and_the_followed_table_agrees(
    spark, stage, monkeypatch, capsys
):
    stage.start("watch", *ROUNDELAY, "watch", "in", "-o", "out", "--master=local[1]", "--json")
    follow = ("ingest", "--follow", "in", "-o", "table", "--every=2", "--master=local[1]", "--json")
    stage.start("follow", *ROUNDELAY, *follow)
    stage.node("a", (*ROUNDELAY, "node"))
    stage.node("b", (*ROUNDELAY, "node"), "--trace-every-row")  # Else `check` convicts nobody.
    stage.node("c", (BROKEN, "twice"))  # What others send, and nobody has sent anything yet.
    stage.together("abc")
    stage.until_told("batch")
    stage.end("b", signal.SIGKILL)
    silent = time.time() + SILENT_S
    stage.together("ac")

    def judged_on() -> bool:
        """Whether nobody waits for b any more."""
        return any(at > silent and one["judged"] for at, one in stage.told("watch", "batch"))

    until(judged_on, "what is judged without b")
    assert not stage.told("watch", "violated")
    with Client(stage.place / "a.sock") as client:
        client.ask(do="send", payload="bWU=")
        client.answer()
    when, breach = stage.until_told("violated")
    assert breach["violated"] == "D2"
    proc, inc, lseq = map(int, breach["witness"][-1].split("."))
    since = known_since(stage.place, (proc, inc, lseq))
    batches = [at for at, _ in stage.told("watch", "batch") if since <= at <= when]
    assert len(batches) <= 2
    for name in "ac":
        assert stage.end(name, signal.SIGTERM) == 0

    def followed() -> bool:
        with suppress(PipelineError):
            table = Table.load(stage.place / "table")
            files = {str(file.resolve()) for life in pieces(stage.place).values() for file in life}
            ended = [manifest.rows is not None for manifest in table.latest.values()]
            return files <= table.paths and sum(ended) == 2
        return False

    until(followed, "all rows in the table")
    stage.end("follow", signal.SIGINT)
    assert stage.end("watch", signal.SIGINT) == 1
    monkeypatch.setattr(session, "open_session", lambda master, **_: nullcontext(spark))
    checked = main(["check", str(stage.place / "table"), "--master", "local[2]", "--json"])
    assert checked == 1
    found = json.loads(capsys.readouterr().out)
    (one,) = found["runs"]
    assert "D2" in {v["property"] for v in one["verdicts"] if v["verdict"] == "violated"}
    assert not [problem for problem in one["problems"] if "missing from" in problem]
