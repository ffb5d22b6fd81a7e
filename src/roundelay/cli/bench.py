"""`roundelay bench sim`."""

import argparse
import dataclasses
import importlib.util
import json

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    sim = what.add_parser("sim", help="the simulator next to SimPy, and its memory")
    sim.add_argument("--pairs", type=int, default=50, help="nodes that ping each other, in pairs")
    sim.add_argument("--events", type=int, default=300_000, help="arrivals in one run")
    sim.add_argument("--rounds", type=int, default=5, help="runs of each simulator, alternating")
    sim.add_argument(
        "--messages",
        type=int,
        nargs=2,
        default=[200_000, 1_000_000],
        metavar=("FEW", "MANY"),
        help="lengths of the two runs whose memory is compared",
    )
    sim.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if importlib.util.find_spec("simpy") is None:
        raise UserError("SimPy is the peer of this measurement: pip install 'roundelay[bench]'")
    from roundelay.bench import sim

    progress = Progress("pinging")
    speed = sim.compare_events(args.pairs, args.events, args.rounds, progress.update)
    progress.close()
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
    print("memory of a run with the online checker, trace not kept")
    for r in runs:
        print(
            f"  {r.messages:>9,} messages  {r.rows:>10,} rows  peak {r.peak_mb:6.1f} MB"
            f"  {r.seconds:6.1f} s CPU"
        )
    print(f"  {args.messages[1] / args.messages[0]:.0f}x the messages, {growth:.2f}x the memory")
    return 0
