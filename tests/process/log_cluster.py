"""Real nodes with journals under load, clients that repeat what they are not told of, and a judge
of what is in the journals afterwards."""

import base64
import json
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.patience import LIMIT_S, until
from tests.process.cluster import Cluster

from roundelay.bench.kills.judge import Held, Receipts, Verdict, judge
from roundelay.check import check
from roundelay.check.text import table
from roundelay.journal.reader import Batch, Reader
from roundelay.runtime.client import Client, ClientError
from roundelay.runtime.replay import replay
from roundelay.trace import reader


class LogCluster(Cluster):
    """Nodes that keep a log, and append to it."""

    def __init__(
        self,
        directory: Path,
        nodes: Sequence[str],
        *,
        fsync: str = "always",
        rate: float = 100,
        power: bool = False,
        traced: bool = False,
        more: Mapping[str, object] | None = None,
    ) -> None:
        """With `power` a kill is a power cut: what was not synced is lost. With `traced` there are
        traces and records, and they are judged too."""
        super().__init__(directory, nodes, rate=rate, relay=False)
        self.fsync = fsync
        self.power = power
        self.traced = traced
        self.more = more or {}
        self.boots = 0
        """How often all machines lost their power."""

    def journal(self, node: str) -> Path:
        return self.directory / "journal" / node

    def _next_life(self, node: str) -> tuple[dict[str, object], Path]:
        told, log = super()._next_life(node)
        life = log.name.rpartition("-")[2]
        told |= {
            "state": None,
            "journal": str(self.journal(node)),
            "fsync": self.fsync,
            "appends": str(self.directory / f"appends-{node}-{life}"),
            **self.more,
        }
        if not self.traced:
            told |= {"trace": None, "trace_every_row": False, "record": None}
        told["trace_frames"] = False
        if self.power:
            told["power"] = f"boot {self.boots}"
        return told, log

    def log_status(self, node: str) -> dict[str, Any] | None:
        found = self.status(node)
        return None if found is None else found["log"]

    def committed(self, node: str) -> int:
        """0 while it does not answer."""
        found = self.log_status(node)
        return 0 if found is None else int(found["committed"])

    def open(self, *nodes: str, limit_s: float = LIMIT_S) -> None:
        """Wait until the log is open at these nodes, or at all, and they are able."""
        names = nodes or self.nodes

        def opened(node: str) -> bool:
            found = self.log_status(node)
            return found is not None and (found["state"], found["condition"]) == ("open", "able")

        try:
            until(lambda: all(map(opened, names)), f"an open log at {', '.join(names)}", limit_s)
        except AssertionError:
            raise AssertionError(str({node: self.log_status(node) for node in names})) from None

    def progress(self, *nodes: str, entries: int = 20) -> None:
        """Wait until so many more entries are committed at each of these nodes."""
        before = {node: self.committed(node) for node in nodes or self.nodes}
        until(
            lambda: all(self.committed(n) >= count + entries for n, count in before.items()),
            f"{entries} more entries",
        )

    def kill_at_once(self, *nodes: str) -> None:
        """As near to one moment as a test can."""
        for node in nodes or self.nodes:
            self._processes[node].kill()
        for node in nodes or self.nodes:
            self._processes[node].wait()
        self.boots += 1

    def wipe(self, node: str) -> None:
        shutil.rmtree(self.journal(node))

    def stop_load(self) -> None:
        """Nodes append nothing more; wait until all have the same log."""
        import signal

        for process in self._processes.values():
            process.send_signal(signal.SIGUSR1)

        def quiet() -> bool:
            found = [self.log_status(node) for node in self.nodes]
            if not all(found):
                return False
            stored = {(f["committed"], f["stored"], f["length"]) for f in found if f}
            return len(stored) == 1 and len(set(stored.pop())) == 1

        self.open()
        until(quiet, "one log at all nodes")

    def held(self, node: str) -> Held:
        """What the journal of a node says is committed."""
        reader = Reader(self.journal(node) / "g")
        reader.refresh()
        held = Held(node, reader.first)
        for item in reader.read(reader.first):
            assert isinstance(item, Batch)
            held.add(item.index, str(item.term), item.session, item.number, item.payloads)
        reader.close()
        return held

    def confirmed(self) -> Receipts:
        """What nodes were told of their own appends."""
        receipts = Receipts()
        for path in sorted(self.directory.glob("appends-*")):
            for line in path.read_text().splitlines(keepends=True):
                if line.endswith("\n"):  # A killed node may leave half a line.
                    payload, index = json.loads(line)
                    receipts.add(payload, payload.encode(), index)
        return receipts

    def judge(self, receipts: Receipts | None = None, *, least: int = 50) -> Verdict:
        """After the load has ended and all have caught up: stop everybody and look."""
        self.stop_load()
        if self.traced:
            self._judge_trace()
        else:
            for node in self.nodes:
                self.stop(node)
        told = self.confirmed()
        if receipts is not None:
            for key, index in receipts.told.items():
                told.told[key], told.names[key] = index, receipts.names[key]
            told.contradictions += receipts.contradictions
        verdict = judge(told, [self.held(node) for node in self.nodes])
        assert verdict.kept, verdict.words
        assert verdict.confirmed >= least
        return verdict

    def _judge_trace(self) -> None:
        length = self.committed(self.nodes[0])
        until(
            lambda: all(self.held(node).length == length for node in self.nodes),
            "the files to tell how much is committed",
        )
        whole = reader.read(self.finish())
        report = check(whole.rows, whole.manifest, problems=whole.problems)
        assert report.ok, table(report, whole.manifest)
        judged = {verdict.property for verdict in report.verdicts if verdict.instances}
        assert judged >= {"J1", "J2", "J3", "J4", "J5", "J6", "J7", "J8", "J9", "J11", "L8", "L9"}
        for record in self.records:
            found = replay(record)
            assert found.differs_at is None, f"{record.name}: {found}"


class Repeater:
    """A client with a session of its own: it appends one message after another, and repeats each
    through another node until it is told the index."""

    def __init__(self, cluster: LogCluster, name: str = "client") -> None:
        self.name = name
        self.receipts = Receipts()
        self.repeated = 0
        self._cluster = cluster
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Repeater":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(LIMIT_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        nodes = self._cluster.nodes
        number = turn = 0
        while not self._ended.is_set():
            payload = f"{self.name} {number}".encode()
            try:
                with Client(self._cluster.control(nodes[turn % len(nodes)])) as client:
                    client.ask(
                        patient=True,
                        do="append",
                        payload=base64.b64encode(payload).decode(),
                        session=self.name,
                        number=number,
                        timeout_s=1.0,
                    )
                    index = client.answer(patient=True)["index"]
            except ClientError:
                self.repeated += 1
                time.sleep(0.05)
            else:
                self.receipts.add(payload.decode(), payload, index)
                number += 1
            turn += 1
