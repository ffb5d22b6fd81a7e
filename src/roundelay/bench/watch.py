"""How many rows a second `watch` judges live, with how much delay, and what judging alone costs.

The traces of three nodes that agree are written beforehand. Then their pieces are moved to where
`watch` looks, second by second, as nodes would have written them.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread

from roundelay.check import Verdict
from roundelay.core.effects import Kind
from roundelay.pipeline.live.follow import start
from roundelay.pipeline.live.judge import RunJudge
from roundelay.pipeline.live.source import stream
from roundelay.pipeline.live.trails import after, steps, trails
from roundelay.pipeline.live.watch import ROWS_MAX, Batch, Watch
from roundelay.pipeline.session import open_session
from roundelay.trace.manifest import Manifest
from roundelay.trace.pieces import PieceWriter
from roundelay.trace.schema import Row

NODES = ("a", "b", "c")
ROWS_OF_A_PACKET = 6
"""One that sends it, two that receive it, three that deliver it."""
CATCH_UP_S = 120.0
"""How long the last rows may take to be judged, in seconds, before the run counts as failed."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run of `watch` was like."""

    rows: int
    judged: int
    seconds: float
    """From the first piece to the last verdict."""
    offered_rows_per_s: float
    batch_rows_per_s: float
    """Rows judged in a second of a batch's time, the median of batches that had new rows."""
    alone_rows_per_s: float
    """The same without Spark, in a second of processor time: what judging itself allows."""
    behind_median_s: float
    behind_max_s: float
    waiting_max: int
    state_bytes_first: int
    state_bytes_last: int
    state_bytes_max: int
    """What is saved after a batch: early, at the end, and at most."""
    left_out: int
    violations: int
    planted: int = 0
    """Breaches that were planted."""
    told_s: float | None = None
    """How long after its piece was there the planted breach was told, in seconds; None if it was
    not told."""
    told_batches: int | None = None
    """In which batch it was told, of those that ended after its piece was there: 1 is the first."""

    @property
    def ok(self) -> bool:
        """Whether every row was judged, and nothing was found but what was planted."""
        whole = self.rows == self.judged and not self.left_out
        return whole and self.violations == self.planted


class _Told:
    """What was told while it was watched."""

    def __init__(self, state: Path) -> None:
        self.batches: list[Batch] = []
        self.sizes: list[int] = []
        self.violations: list[tuple[float, int]] = []
        """When each was told, and how many batches had ended."""
        self.ended: list[float] = []
        """When each batch did."""
        self._state = state

    def begins(self, judge: RunJudge) -> None:
        pass

    def violated(self, manifest: Manifest, verdict: Verdict) -> None:
        self.violations.append((time.monotonic(), len(self.batches)))

    def batch(self, batch: Batch) -> None:
        self.ended.append(time.monotonic())
        self.batches.append(batch)
        files = (self._state / str(batch.number)).iterdir()
        self.sizes.append(sum(file.stat().st_size for file in files))

    def note(self, sentence: str) -> None:
        pass


def measure(
    rate: int,
    seconds: int,
    master: str,
    every_s: float,
    say: Callable[[str], None],
    plant: int | None = None,
) -> Figures:
    """Offer so many rows a second for so many seconds; with `plant`, one delivery is there twice in
    what comes then, that many seconds after the first."""
    with TemporaryDirectory(prefix="roundelay-watch-") as name:
        home = Path(name)
        say("writing the traces")
        pieces = _write(home / "made", rate, seconds, plant)
        say("judging without Spark")
        alone = _alone(home / "made", home / "alone")
        source, out = home / "in", home / "out"
        for directory in (source, out):
            directory.mkdir()
        told = _Told(out / "state")
        with open_session(master) as spark:
            watching = Watch([str(source)], out, told)
            files = stream(spark, [str(source)], ROWS_MAX)
            query = start(files, watching.batch, out / "checkpoint", every_s)
            say("pieces come in")
            began = time.monotonic()
            there: list[float] = []
            args = (home / "made", source, pieces, there)
            player = Thread(target=_play, args=args, daemon=True)
            player.start()
            deadline = began + seconds + CATCH_UP_S
            total = _total(rate, seconds, plant)
            while _judged(watching) < total and time.monotonic() < deadline:
                if query.awaitTermination(0.1):
                    break
                watching.idle()
            took = time.monotonic() - began
            query.stop()
            player.join()
        figures = _figures(told, total, _judged(watching), took, rate, alone)
        return figures if plant is None else _told_of(figures, told, there[plant])


def _total(rate: int, seconds: int, plant: int | None) -> int:
    """How many rows there are."""
    packets = rate * seconds // ROWS_OF_A_PACKET
    return packets * ROWS_OF_A_PACKET + len(NODES) + (plant is not None)


def _told_of(figures: Figures, told: _Told, there: float) -> Figures:
    """With how late a planted breach was told, whose piece was there at that time."""
    if not told.violations:
        return replace(figures, planted=1)
    when, batches = told.violations[0]
    ended = sum(end >= there for end in told.ended[:batches])
    return replace(figures, planted=1, told_s=when - there, told_batches=ended + 1)


def _judged(watching: Watch) -> int:
    return sum(judge.rows for judge in watching.judges.values())


def _figures(told: _Told, rows: int, judged: int, took: float, rate: int, alone: float) -> Figures:
    busy = [batch for batch in told.batches if batch.rows] or told.batches
    return Figures(
        rows=rows,
        judged=judged,
        seconds=took,
        offered_rows_per_s=rate,
        batch_rows_per_s=median(batch.judged / batch.seconds for batch in busy),
        alone_rows_per_s=alone,
        behind_median_s=median(batch.behind_s for batch in busy),
        behind_max_s=max(batch.behind_s for batch in busy),
        waiting_max=max(batch.waiting for batch in busy),
        state_bytes_first=told.sizes[min(3, len(told.sizes) - 1)],
        state_bytes_last=told.sizes[-1],
        state_bytes_max=max(told.sizes),
        left_out=sum(batch.left_out for batch in told.batches),
        violations=len(told.violations),
    )


def _alone(made: Path, out: Path) -> float:
    """Rows judged in a second of this process's time, a batch at a time as Spark would give them,
    what is saved after each included."""
    out.mkdir()
    watching = Watch([str(made)], out, _Told(out / "state"))
    read: dict[str, tuple[int, int]] = {}
    began = time.process_time()
    for number in itertools.count():
        new = steps(trails([made]), read, rows_max=ROWS_MAX)
        if not new:
            break
        watching.batch([step.source for step in new], number)
        read = after(read, new)
    watching.end()
    return _judged(watching) / (time.process_time() - began)


def _play(made: Path, source: Path, pieces: int, there: list[float]) -> None:
    """Move the pieces of each second to where they are looked for, and note when they are there."""
    manifests = {
        path.name: Manifest.from_json(path.read_text()) for path in made.glob("*.manifest.json")
    }
    began = time.monotonic()
    for number in range(pieces):
        time.sleep(max(0.0, began + number - time.monotonic()))
        for path in made.glob(f"*.{number:06}.parquet"):
            path.touch()
            path.rename(source / path.name)
        for name, manifest in manifests.items():
            last = number == pieces - 1
            rows = manifest.rows if last else None
            beside = source / f"{name}.tmp"
            beside.write_text(replace(manifest, pieces=number + 1, rows=rows).to_json())
            beside.rename(source / name)
        there.append(time.monotonic())


def _write(home: Path, rate: int, seconds: int, plant: int | None = None) -> int:
    """The traces of nodes that write so many rows a second in all; returns the number of pieces."""
    manifest = Manifest(
        run="bench", nodes=NODES, protocol="totem", mode="views", machine="of this bench"
    )
    writers = [
        PieceWriter(home, manifest, name=f"{node}-1", unclosed={f"{number}.1": "as it runs"})
        for number, node in enumerate(NODES)
    ]
    total = _total(rate, seconds, plant)
    rows = _rows(None if plant is None else total * (2 * plant + 1) // (2 * seconds))
    for number in range(seconds):
        share = total * (number + 1) // seconds - total * number // seconds
        for row in itertools.islice(rows, share):
            writers[row.proc].append(row)
        for writer in writers:
            writer.roll()
    pieces = {writer.close().pieces for writer in writers}
    assert len(pieces) == 1
    return pieces.pop()


def _rows(twice: int | None = None) -> Iterator[Row]:
    """What three nodes do that send in turn and deliver in one order; after `twice` rows a delivery
    is there twice."""
    counts = [0] * len(NODES)

    def row(kind: str, proc: int, lam: int, **more: object) -> Row:
        counts[proc] += 1
        view = {"c_seq": 1, "c_rep": 0, "c_kind": 0}
        told = {**view, "t_ns": lam * 1000, **more}
        return Row(kind, proc, 1, counts[proc] - 1, lam=lam, **told)  # type: ignore[arg-type]

    everybody = tuple(range(len(NODES)))
    for proc in everybody:
        yield row(Kind.INSTALL, proc, 1, members=everybody, primary=True)
    for packet in itertools.count():
        sender = packet % len(NODES)
        of: dict[str, object] = {
            **{"m_src": sender, "m_inc": 1, "m_seq": packet // len(NODES)},
            **{"svc": 2, "digest": packet & 0xFFFF, "size": 100},
        }
        lam = 10 + 3 * packet
        yield row(Kind.ORIGINATE, sender, lam, **of)
        for proc in everybody:
            if proc != sender:
                yield row(Kind.RECEIVE, proc, lam + 1, **of)
        times = 1
        if twice is not None and sum(counts) >= twice:
            twice, times = None, 2
        for proc in [*everybody, *everybody[: times - 1]]:
            yield row(Kind.DELIVER, proc, lam + 2, layer="app", k0=1, k1=0, k2=packet, k3=0, **of)
