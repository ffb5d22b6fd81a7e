"""`roundelay bench structures`: a replicated map and counter next to PySyncObj's, in one run."""

import argparse
import dataclasses
import json

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, default=3, help="(default: 3)")
    parser.add_argument(
        "--outstanding",
        type=int,
        default=1000,
        help="writes that wait at each node (default: 1000)",
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="of each task (default: 3)")
    parser.add_argument("--rounds", type=int, default=3, help="(default: 3)")
    parser.add_argument(
        "--fsync",
        choices=("off", "interval", "always"),
        default="off",
        help="of our journals; PySyncObj never syncs its own (default: off)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.bench.structures.run import OURS, MemberError, compare

    if not 1 <= args.nodes <= 8 or not 2 <= args.outstanding <= 20_000:
        raise UserError("give 1 to 8 --nodes, and 2 to 20000 --outstanding")
    if not 0.1 <= args.seconds <= 600 or not 1 <= args.rounds <= 100:
        raise UserError("give 0.1 to 600 --seconds, and 1 to 100 --rounds")
    progress = Progress("structures")
    try:
        found = compare(
            args.nodes,
            args.outstanding,
            args.seconds,
            args.rounds,
            args.fsync,
            lambda done, of: progress.update(done, of),
        )
    except MemberError as e:
        progress.close()
        raise UserError(str(e)) from None
    progress.close()
    if args.json:
        print(json.dumps({"nodes": args.nodes, "fsync": args.fsync, **dataclasses.asdict(found)}))
        return 0
    print(
        f"{args.nodes} nodes, {args.outstanding} writes outstanding at each, fsync {args.fsync}; "
        f"{args.rounds} rounds, medians"
    )
    for system, figures in found.systems.items():
        print(
            f"  {system:<10} map {figures.map_writes_per_s:>9,.0f} writes/s"
            f"  counter {figures.counter_writes_per_s:>9,.0f}"
            f"  {figures.cpu_us_per_write:>6.1f} us CPU a write"
            f"  one at a time {figures.map_p50_ms:.2f} ms (99 % {figures.map_p99_ms:.2f} ms,"
            f" {figures.alone_cpu_us:.0f} us CPU)"
            f"  local reads {figures.reads_per_cpu_s:>9,.0f} per CPU second"
        )
    print(
        f"  {OURS}: {found.writes_ratio:.1f} times the writes to a map, "
        f"{found.counter_ratio:.1f} times those to a counter, "
        f"{found.latency_ratio:.2f} of the latency\n"
        f"  two bare UDP hops, there and back: {2 * found.hop_p50_ms:.2f} ms"
    )
    return 0
