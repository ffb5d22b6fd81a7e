"""The tables that `roundelay bench ring` prints."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from roundelay.cli.progress import Progress

if TYPE_CHECKING:
    from roundelay.bench.ring.figures import (
        Compared,
        Formation,
        Idle,
        Latency,
        Recoveries,
        Throughput,
    )
    from roundelay.bench.ring.schedule import Part, Schedule
    from roundelay.bench.ring.sealed import Sealed, SealedLatency
    from roundelay.bench.ring.systems import System

T = TypeVar("T")
R = TypeVar("R")

PACE_PER_S = 100.0
"""Messages per second while latencies are measured."""


class Ahead:
    """One progress line for all parts of a measurement, which knows what comes after each."""

    def __init__(self, plan: "Sequence[Part]") -> None:
        from roundelay.bench.ring.schedule import Schedule

        self._schedule = Schedule(plan)
        self._progress = Progress("measuring")

    def shown(
        self,
        part: str,
        measure: "Callable[[Done], list[T]]",
        show: "Callable[[list[T]], None]",
    ) -> list[dict[str, Any]]:
        """Measure one part, print its table, and return it for the JSON document."""
        found = self.measured(part, measure)
        show(found)
        return [dataclasses.asdict(f) for f in found]  # type: ignore[call-overload]

    def measured(self, part: str, measure: "Callable[[Done], R]") -> R:
        """Measure one part, and return what it gives."""
        found = measure(Done(part, self._schedule, self._progress))
        self._progress.close()
        return found

    def close(self) -> None:
        self._progress.close()


class Done:
    """Called whenever another step of a part is done."""

    def __init__(self, part: str, schedule: "Schedule", progress: Progress) -> None:
        self._part = part
        self._schedule = schedule
        self._progress = progress
        self._last = time.monotonic()

    def __call__(self, done: int = 1, total: int = 1) -> None:
        now = time.monotonic()
        self._schedule.note(self._part, 1, now - self._last)
        self._last = now
        self._progress.forecast(self._schedule.share, self._schedule.left_s, self._part)

    def after(self, found: T) -> T:
        """The same, for a step that gives a figure."""
        self()
        return found


def _compared(found: "Compared") -> str:
    ratios = {"rate": found.rate, "CPU": found.cpu}
    return ", ".join(
        f"{name} {ratio.median:.2f} ({ratio.lowest:.2f} to {ratio.highest:.2f})"
        for name, ratio in ratios.items()
    )


def in_words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={given}" for name, given in settings.items()) or "none"


class Printer:
    """Prints tables, or nothing if `quiet`, when a JSON document is wanted."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def line(self, text: str) -> None:
        if not self._quiet:
            print(text, flush=True)

    def settings(self, systems: "Sequence[System]") -> dict[str, dict[str, Any]]:
        """Print the settings that are not the defaults of these systems, and return them."""
        unusual = {system.name: system.unusual() for system in systems}
        self.line("settings that are not the defaults, and what a peer is driven by")
        for name, told in unusual.items():
            self.line(f"  {name:<14} {in_words(told)}")
        return unusual

    def throughput(self, found: "Sequence[Throughput]") -> None:
        self.line("ordered messages per second, delivered at every node")
        if any(f.compared for f in found):
            self.line("ratios: to the first cell with the same nodes, senders, size and datagram,")
            self.line("within a round, medians (lowest to highest)")
        width = max(len(str(f.cell)) for f in found)
        for f in found:
            text = (
                f"  {f.cell!s:<{width}}  {f.msgs_per_s:>9,.0f}"
                f"  ({f.lowest:,.0f} to {f.highest:,.0f}; {f.cpu_us_per_msg:.2f} us CPU each)"
            )
            if f.compared is not None:
                text += f"  {_compared(f.compared)}"
            for name, rival in f.peers.items():
                text += f"  {rival.ratio:.1f}x {name}'s {rival.msgs_per_s:,.0f}"
            if f.suspicions:
                text += f"  {f.suspicions} false suspicions"
            if f.splits:
                text += f"  split in {f.splits} rounds"
            self.line(text)

    def latency(self, found: "Sequence[Latency]") -> None:
        self.line("submit to delivery, over all nodes, 100 messages of 100 B a second")
        for f in found:
            name = f.engine or f.system
            times = f"p50 {f.p50_ms:.2f} ms  p99 {f.p99_ms:.2f} ms"
            self.line(f"  {name:<14}{f.nodes} nodes  {f.pattern:<13}{times}")

    def idle(self, found: "Sequence[Idle]") -> None:
        self.line("a node with nothing to do, share of a core")
        for f in found:
            self.line(
                f"  {f.engine:<12}{f.nodes} nodes  {f.cpu_share:.1%}, at most {f.highest:.1%}"
            )

    def formation(self, found: "Sequence[Formation]") -> None:
        self.line("the last node's join until the last node has the first view of all")
        for f in found:
            self.line(
                f"  {f.engine:<12}{f.nodes} nodes  {f.formation_s:.2f} s,"
                f" at most {f.formation_s_max:.2f}"
            )

    def recovery(self, found: "Sequence[Recoveries]") -> None:
        self.line("kill -9 until the last survivor has the new view, with the longest pause in")
        self.line("deliveries at a survivor; join until all have the view of all again")
        for f in found:
            timeout = "default" if f.timeout_s is None else f"{f.timeout_s * 1e3:.0f} ms"
            self.line(
                f"  {f.engine}, {f.nodes} nodes, timeout {timeout:<8} new view {f.crash_s:.2f} s"
                f" (at most {f.crash_s_max:.2f}), pause {f.pause_s:.2f} s"
                f" (at most {f.pause_s_max:.2f}), rejoin {f.rejoin_s:.2f} s"
                f" (at most {f.rejoin_s_max:.2f}; with the start of Python {f.restart_s:.2f})"
            )

    def sealed(self, found: "Sequence[Sealed]") -> None:
        self.line("ordered messages per second, delivered at every node: plain, and sealed")
        width = max(len(str(f.cell)) for f in found)
        for f in found:
            text = (
                f"  {f.cell!s:<{width}}  {f.plain_msgs_per_s:>9,.0f}  {f.msgs_per_s:>9,.0f}"
                f"  ratio {f.ratio:.2f} ({f.lowest:.2f} to {f.highest:.2f})"
                f"  CPU per message {f.cpu_ratio - 1:+.0%}"
            )
            if f.suspicions:
                text += f"  {f.suspicions} false suspicions"
            if f.splits:
                text += f"  split in {f.splits} rounds"
            self.line(text)

    def sealed_latency(self, found: "Sequence[SealedLatency]") -> None:
        self.line("submit to delivery, over all nodes, 100 messages of 100 B a second")
        for f in found:
            self.line(
                f"  {f.cell.engine:<12}{f.cell.nodes} nodes  {f.cell.cipher:<8}"
                f"p50 plain {f.plain_p50_ms:.2f} ms, sealed {f.p50_ms:.2f} ms"
                f" ({f.more_ms:+.2f} ms within a round)"
            )
