"""`roundelay bench ring --sealed`: what the seal of a group costs."""

import argparse
import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench.ring_tables import PACE_PER_S, Ahead, Printer

if TYPE_CHECKING:
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.schedule import Part

PARTS = ("throughput", "latency")


def measure(cells: "Sequence[Cell]", args: argparse.Namespace, machine: str) -> int:
    """Compare plain and sealed groups; returns the exit code."""
    from roundelay.bench.ring import sealed
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.systems import OURS

    parts = args.only or PARTS
    out = Printer(args.json)
    out.line(f"{machine}; {args.rounds} rounds, medians; the order is verified in every run")
    groups = list(
        dict.fromkeys(
            Cell(engine=c.engine, nodes=c.nodes, senders="one", timeout_s=c.timeout_s)
            for c in cells
        )
    )
    document: dict[str, Any] = {"machine": machine, "rounds": args.rounds}
    document["settings"] = out.settings((OURS,))
    ahead = Ahead(_plan(cells, groups, parts, args))
    if "throughput" in parts:
        document["throughput"] = ahead.shown(
            "throughput",
            lambda report: sealed.throughput(cells, args.seconds, args.rounds, report),
            out.sealed,
        )
    if "latency" in parts:
        document["latency"] = ahead.shown(
            "latency",
            lambda report: sealed.latency(
                groups, PACE_PER_S, 2 * args.seconds, args.rounds, report
            ),
            out.sealed_latency,
        )
    if args.json:
        print(json.dumps({**headline(document), **document}, indent=2))
    if any(entry["splits"] for entry in document.get("throughput", ())):
        print(
            "roundelay bench: nodes lost sight of others that were running; if nothing else kept "
            "this machine busy, please report this",
            file=sys.stderr,
        )
        return 1
    return 0


def _plan(
    cells: "Sequence[Cell]",
    groups: "Sequence[Cell]",
    parts: Sequence[str],
    args: argparse.Namespace,
) -> "list[Part]":
    """How many runs there will be of each part, and how long each takes."""
    from roundelay.bench.ring.schedule import STARTING_S, Part
    from roundelay.bench.ring.sealed import CIPHERS

    each = args.rounds * (1 + len(CIPHERS))
    plan = (
        Part("throughput", each * len(cells), STARTING_S + args.seconds),
        Part("latency", each * len(groups), STARTING_S + 2 * args.seconds),
    )
    return [part for part in plan if part.name in parts]


def headline(document: dict[str, Any]) -> dict[str, Any]:
    """Ratios by size of the datagram and by cipher; of each the first cell."""
    head: dict[str, dict[str, Any]] = {}
    for entry in document.get("throughput", ()):
        datagram, cipher = str(entry["cell"]["datagram"]), entry["cell"]["cipher"]
        for name, value in (("sealed_ratio", "ratio"), ("cpu_ratio", "cpu_ratio")):
            head.setdefault(name, {}).setdefault(datagram, {}).setdefault(cipher, entry[value])
    for entry in document.get("latency", ()):
        more = head.setdefault("p50_more_ms", {})
        more.setdefault(entry["cell"]["cipher"], entry["more_ms"])
    return head
