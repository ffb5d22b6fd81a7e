"""`roundelay bench sim`: the simulator next to SimPy and to real time, and its memory."""

import argparse
import dataclasses
import importlib.util
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench import against
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import install

if TYPE_CHECKING:
    from roundelay.bench.realtime import Pace


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pairs", type=int, default=50, help="nodes that ping each other, in pairs"
    )
    parser.add_argument("--events", type=int, default=300_000, help="arrivals in one run")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each simulator, alternating")
    parser.add_argument(
        "--messages",
        type=int,
        nargs=2,
        default=[200_000, 1_000_000],
        metavar=("FEW", "MANY"),
        help="lengths of the two runs whose memory is compared",
    )
    parser.add_argument("--ring", action="store_true", help="only a Totem ring next to real time")
    parser.add_argument(
        "--ring-seconds", type=float, default=2.0, metavar="S", help="virtual time of that ring"
    )
    parser.add_argument("--profile", action="store_true", help="only where the ring's time goes")
    against.add_option(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if args.against is not None:
        return _measure_against(args)
    if args.profile:
        return _profile(args)
    if args.ring:
        paces = _paces(args)
        if args.json:
            print(json.dumps({"ring": [dataclasses.asdict(p) for p in paces]}, indent=2))
        else:
            _print_paces(paces)
        return 0
    if importlib.util.find_spec("simpy") is None:
        raise UserError(f"SimPy is the peer of this measurement: {install('bench')}")
    from roundelay.bench import sim

    progress = Progress("pinging")
    speed = sim.compare_events(args.pairs, args.events, args.rounds, progress.update)
    progress.close()
    paces = _paces(args)
    runs = []
    progress = Progress("checking online")
    for done, messages in enumerate(args.messages):
        progress.update(sum(args.messages[:done]), sum(args.messages))
        runs.append(sim.memory_in_child(messages))
    progress.close()
    growth = runs[1].peak_mb / runs[0].peak_mb
    if args.json:
        document = {
            **dataclasses.asdict(speed),
            "ring": [dataclasses.asdict(p) for p in paces],
            "memory": [dataclasses.asdict(r) for r in runs],
            "memory_growth": growth,
        }
        print(json.dumps(document, indent=2))
        return 0
    print(f"events per second, {args.rounds} runs each of {speed.events:,} events, medians")
    print(f"  roundelay, bare simulator        {speed.ours:>12,.0f}")
    print(f"  SimPy, processes and mailboxes   {speed.simpy:>12,.0f}   ours {speed.ratio:.1f}x")
    print(
        f"  SimPy, timeouts and callbacks    {speed.simpy_callbacks:>12,.0f}"
        f"   ours {speed.ratio_callbacks:.1f}x"
    )
    _print_paces(paces)
    print("memory of a run with the online checker, trace not kept")
    for r in runs:
        print(
            f"  {r.messages:>9,} messages  {r.rows:>10,} rows  peak {r.peak_mb:6.1f} MB"
            f"  {r.seconds:6.1f} s CPU"
        )
    print(f"  {args.messages[1] / args.messages[0]:.0f}x the messages, {growth:.2f}x the memory")
    return 0


PASSED_ON = {
    "pairs": "--pairs",
    "events": "--events",
    "messages": "--messages",
    "ring": "--ring",
    "ring_seconds": "--ring-seconds",
}
"""What another checkout is told, and the words for it."""


def _measure_against(args: argparse.Namespace) -> int:
    if args.profile:
        raise UserError("--against compares speeds; leave --profile out")
    return against.measure(args, "sim", PASSED_ON, _figures)


def _figures(document: dict[str, Any]) -> dict[str, float]:
    """What is compared with another checkout, by name."""
    found = {
        f"ring, {pace['way']}: times real time": pace["times_real_time"]
        for pace in document["ring"]
    }
    if "ours" in document:
        found["bare simulator: events/s"] = document["ours"]
        found["bare simulator: times SimPy's callbacks"] = document["ratio_callbacks"]
    return found


def _paces(args: argparse.Namespace) -> "list[Pace]":
    from roundelay.bench import realtime

    if args.ring_seconds <= 0:
        raise UserError(f"--ring-seconds {args.ring_seconds} is no time; give more than 0")
    progress = Progress("turning the ring")
    paces = realtime.compare(args.ring_seconds, args.rounds, progress.update)
    progress.close()
    return paces


def _profile(args: argparse.Namespace) -> int:
    from roundelay.bench import realtime

    shares = realtime.profile(args.ring_seconds)
    if args.json:
        print(json.dumps({"profile": [dataclasses.asdict(s) for s in shares]}, indent=2))
        return 0
    print("a Totem ring of five under trace and checker: where the time goes")
    for s in shares:
        print(f"  {s.package:<12}{s.share:>7.1%}{s.calls_per_event:>8.1f} calls per event")
    return 0


def _print_paces(paces: "Sequence[Pace]") -> None:
    print(
        "a Totem ring of five, 100 us apart, 1000 messages a second of 1 KB: times real time\n"
        f"({paces[0].virtual_s:g} virtual seconds, medians)"
    )
    for pace in paces:
        print(
            f"  {pace.way:<32} {pace.times_real_time:>12.2f}x  {pace.events_per_s:>9,.0f} events/s"
            f"  {pace.rows:>9,} rows"
        )
