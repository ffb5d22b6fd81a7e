"""Two engines side by side: the same messages on the same network, and what each makes of them."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from statistics import fmean, quantiles
from typing import Any

from roundelay import draw
from roundelay.check import PROPERTIES, Standing, Validity, check
from roundelay.core.effects import Kind
from roundelay.group.engines import describe, engine_names
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import parse
from roundelay.trace.schema import WORLD, Row, expand
from roundelay.web.lab.errors import LaboratoryError

DIAGRAM_EVENTS = 70
"""How many events each diagram shows. Fewer: not one message is delivered everywhere; more: the
page gets long."""
ORDER_MAX = 40
"""How many deliveries of each node are listed."""
LOAD_S_MAX = 5.0
"""For how long messages may be submitted, in seconds of virtual time. More: idle tokens fill the
run."""
QUIET_S = 4
"""Seconds of virtual time without faults in which what is missing may still be delivered."""
MS = 1_000_000

NETWORKS: Mapping[str, str] = {
    "lan": "network lan latency={latency_ms:g}ms jitter={jitter_ms:g}ms",
    "bus": "network bus rate=10Mbit propagation={latency_ms:g}ms",
    "channel": "network channel rate=10Mbit propagation={latency_ms:g}ms",
}
"""By name: the network as a scenario has it."""

_SHOWN = {
    Kind.SUBMIT, Kind.SEND, Kind.ARRIVE, Kind.DELIVER, Kind.DROP, Kind.FAULT, Kind.SUSPECT,
}  # fmt: skip
"""Kinds of events that the diagrams show."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the most that a number may be, and what it is at first."""

    low: float
    high: float
    usual: float
    unit: str
    label: str


BOUNDS: Mapping[str, Bounds] = {
    "nodes": Bounds(2, 7, 4, "", "nodes"),
    "messages": Bounds(2, 200, 40, "", "messages"),
    "rate": Bounds(1, 2000, 200, "a second, of each node", "rate"),
    "size": Bounds(1, 1000, 100, "bytes", "size"),
    "latency": Bounds(0.05, 50, 1, "ms", "latency"),
    "loss": Bounds(0, 20, 0, "%", "loss"),
    "safe": Bounds(0, 100, 0, "%", "safe messages"),
    "seed": Bounds(0, 999_999, 1, "", "seed"),
}
"""What can be chosen, besides the engines and the network."""

_WHOLE = frozenset({"nodes", "messages", "size", "seed"})


@dataclass(frozen=True, slots=True)
class Load:
    """What both engines have to do."""

    network: str = "lan"
    nodes: int = 4
    messages: int = 40
    rate: float = 200.0
    size: int = 100
    latency: float = 1.0
    loss: float = 0.0
    safe: float = 0.0
    seed: int = 1

    @property
    def duration_s(self) -> float:
        """For about how long messages are submitted."""
        return self.messages / (self.rate * self.nodes)

    def scenario(self, engine: str) -> str:
        """The run of one engine, as a scenario that `roundelay sim run` understands."""
        network = NETWORKS[self.network].format(
            latency_ms=self.latency, jitter_ms=self.latency / 10
        )
        submitting_ms = round(1.5 * self.duration_s * 1000) + 100
        lines = [
            f"engine {engine} static",
            network,
            f"seed {self.seed}",
            f"nodes {self.nodes}",
            *([f"faults loss={self.loss:g}%"] if self.loss else []),
            f"load messages={self.messages} rate={self.rate:g}/s size={self.size} "
            f"safe={self.safe:g}%",
            f"run {submitting_ms}ms",
            f"end after={QUIET_S}s",
            "check",
            "----",
        ]
        return "\n".join(lines) + "\n"


def engines() -> tuple[str, ...]:
    """The engines that can be compared."""
    return tuple(engine_names())


def choices() -> dict[str, Any]:
    """What the page offers."""
    return {
        "engines": [{"name": name, "what": _what(name)} for name in engines()],
        "networks": list(NETWORKS),
        "numbers": {
            name: {
                "low": b.low, "high": b.high, "usual": b.usual, "unit": b.unit, "label": b.label,
                "whole": name in _WHOLE,
            }
            for name, b in BOUNDS.items()
        },
    }  # fmt: skip


def read_load(asked: Mapping[str, str]) -> Load:
    """The load that somebody asks for; LaboratoryError if a number makes no sense."""
    given: dict[str, Any] = {}
    for name, text in asked.items():
        if name == "network":
            if text not in NETWORKS:
                raise LaboratoryError(f"there is no network {text!r}: {', '.join(NETWORKS)}")
            given[name] = text
        elif name in BOUNDS:
            given[name] = _number(name, text)
    load = Load(**{field.name: given[field.name] for field in fields(Load) if field.name in given})
    if load.duration_s > LOAD_S_MAX:
        raise LaboratoryError(
            f"{load.messages} messages at that rate take {load.duration_s:.0f} s of virtual time, "
            f"and {LOAD_S_MAX:g} s are the most; raise the rate, or send fewer"
        )
    return load


def compare(names: tuple[str, str], load: Load) -> dict[str, Any]:
    """What two engines do under a load, and where their orders differ."""
    for name in names:
        if name not in engines():
            raise LaboratoryError(f"there is no engine {name!r}: {', '.join(engines())}")
    sides = [_side(name, load) for name in names]
    return {"load": {f.name: getattr(load, f.name) for f in fields(Load)}, "sides": sides}


def _number(name: str, text: str) -> float | int:
    bounds = BOUNDS[name]
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
        raise LaboratoryError(f"{bounds.label}: {text!r} is not a number; write one like 10")
    number = float(text)
    if not bounds.low <= number <= bounds.high:
        raise LaboratoryError(
            f"{bounds.label}: {text} is not between {bounds.low:g} and {bounds.high:g}"
        )
    return int(number) if name in _WHOLE else number


def _what(engine: str) -> str:
    return describe(engine).summary


def _side(engine: str, load: Load) -> dict[str, Any]:
    """One engine under the load."""
    scenario = load.scenario(engine)
    runner = ScenarioRunner()
    for block in parse(scenario):
        runner.play(block)
    rows, manifest = runner.rows, runner.manifest()
    measured = _Measures(rows, len(manifest.nodes))
    report = check(rows, manifest)
    broken = [
        {
            "property": verdict.property,
            "title": PROPERTIES[verdict.property].title,
            "reason": verdict.reason,
        }
        for verdict, entry in zip(report.verdicts, report.profile.entries, strict=True)
        if entry.standing is not Standing.OPTIONAL and verdict.validity is Validity.VIOLATED
    ]
    kept = sum(verdict.validity is Validity.OK for verdict in report.verdicts)
    first_ns = min((row.t_ns for row in rows if row.kind == Kind.SUBMIT), default=0)
    shown = [row for row in rows if row.kind in _SHOWN and row.layer != "vs"]
    window = draw.Window(start_ns=first_ns, limit=DIAGRAM_EVENTS)
    orders = {
        manifest.nodes[proc]: [f"{manifest.nodes[src]}:{number}" for src, number in sequence]
        for proc, sequence in sorted(measured.orders.items())
    }
    return {
        "engine": engine,
        "what": _what(engine),
        "scenario": scenario,
        **measured.document(),
        "one_order": len({tuple(order) for order in orders.values()}) == 1,
        "orders": {node: order[:ORDER_MAX] for node, order in orders.items()},
        "left_out": max((len(order) for order in orders.values()), default=0) - ORDER_MAX,
        "broken": broken,
        "kept": kept,
        "svg": draw.svg(shown, manifest, title=f"The first messages in {engine}", window=window),
    }


class _Measures:
    """What the rows of a run amount to, from the first message submitted to the last delivery."""

    def __init__(self, rows: list[Row], nodes: int) -> None:
        self.orders: dict[int, list[tuple[int, int]]] = {proc: [] for proc in range(nodes)}
        """By node: what it delivered, in order."""
        self._nodes = nodes
        self._submitted: dict[tuple[int, int], int] = {}
        self._delivered: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        last_ns = 0
        for row in expand(rows):
            if row.layer != "app" or row.m_src is None or row.m_seq is None:
                continue
            message = row.m_src, row.m_seq
            if row.kind == Kind.SUBMIT:
                self._submitted[message] = row.t_ns
            elif row.kind == Kind.DELIVER:
                self._delivered[message].append(row.t_ns)
                self.orders[row.proc].append(message)
                last_ns = max(last_ns, row.t_ns)
        first_ns = min(self._submitted.values(), default=0)
        sent = [
            row for row in rows
            if row.kind == Kind.SEND and row.proc != WORLD and first_ns <= row.t_ns <= last_ns
        ]  # fmt: skip
        self._frames = Counter(row.tag for row in sent)
        self._bytes = sum(row.size or 0 for row in sent)
        self._busy_ns = last_ns - first_ns

    def document(self) -> dict[str, Any]:
        single = [
            (at - self._submitted[message]) / MS
            for message, times in self._delivered.items()
            if message in self._submitted
            for at in times
        ]
        everywhere = [
            (max(times) - self._submitted[message]) / MS
            for message, times in self._delivered.items()
            if message in self._submitted and len(times) == self._nodes
        ]
        messages = max(len(self._submitted), 1)
        return {
            "messages": len(self._submitted),
            "delivered": len(single),
            "owed": len(self._submitted) * self._nodes,
            "latency_ms": _percentiles(single),
            "everywhere_ms": _percentiles(everywhere),
            "frames": sum(self._frames.values()),
            "frames_per_message": round(sum(self._frames.values()) / messages, 2),
            "bytes_per_message": round(self._bytes / messages, 1),
            "frames_by_type": dict(self._frames.most_common()),
            "busy_ms": round(self._busy_ns / MS, 3),
        }


def _percentiles(values: list[float]) -> dict[str, float] | None:
    """None if there are too few values to say anything."""
    if len(values) < 2:
        return None
    cuts = quantiles(values, n=100, method="inclusive")
    found = {
        "mean": fmean(values), "p50": cuts[49], "p90": cuts[89], "p99": cuts[98],
        "max": max(values),
    }  # fmt: skip
    return {name: round(value, 3) for name, value in found.items()}
