"""`roundelay bench pipeline`: the check of deliveries on Spark, next to DuckDB."""

import argparse
import dataclasses
import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.bench.pipeline import Cost, Outlook

OUTLOOK_ROWS = 1_000_000_000
"""To which the costs of several traces are continued."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows",
        type=int,
        nargs="+",
        default=[20_000_000],
        metavar="N",
        help="delivery rows of each trace, as 20000000 100000000",
    )
    parser.add_argument("--master", metavar="URL", default="local[2]", help="of this machine")
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, default=Path("out/bench"), help="for the traces"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.pipeline.errors import PipelineError

    if min(args.rows) < 10_000:
        raise UserError("--rows must be 10000 at least; fewer say nothing about Spark")
    if not args.master.startswith("local["):
        raise UserError("--master must be local[N]: time and memory are read from this machine")
    costs = []
    try:
        from roundelay.bench import pipeline

        for rows in args.rows:
            progress = Progress("writing the trace")
            costs.append(pipeline.measure(rows, args.output, args.master, progress.update))
            progress.close()
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None
    further = pipeline.outlook(costs, OUTLOOK_ROWS) if len(costs) > 1 else None
    if args.json:
        document = {**dataclasses.asdict(costs[0]), "all": [dataclasses.asdict(c) for c in costs]}
        if further is not None:
            document["outlook"] = dataclasses.asdict(further)
        print(json.dumps(document, indent=2))
    else:
        _print(costs, further, args.master)
    return 0 if all(len(cost.proved) == len(pipeline.JUDGED) for cost in costs) else 1


def _print(costs: "list[Cost]", further: "Outlook | None", master: str) -> None:
    print(f"order, duplication, FIFO and virtual synchrony on {master}")
    print(
        f"  {'deliveries':>12}{'table MB':>10}{'CPU s':>8}{'wall s':>8}{'JVM MB':>8}{'live MB':>9}"
        f"{'shuffle':>9}{'DuckDB CPU s':>14}   proved"
    )
    for cost in costs:
        peer = "-" if cost.duckdb_cpu_s is None else f"{cost.duckdb_cpu_s:.1f}"
        print(
            f"  {cost.rows:>12,}{cost.table_mb:>10.0f}{cost.cpu_s:>8.1f}{cost.wall_s:>8.1f}"
            f"{cost.peak_mb:>8.0f}{cost.live_mb:>9.0f}{cost.shuffle_share:>9.2%}"
            f"{peer:>14}   {' '.join(cost.proved)}"
        )
    for one, other in pairwise(costs):
        print(
            f"  {other.rows / one.rows:.1f}x the rows, {other.cpu_s / one.cpu_s:.2f}x the CPU time"
        )
    if further is not None:
        print(
            f"  each further million of rows takes {further.cpu_s_per_million:.2f} CPU s; "
            f"{further.rows:,} rows would take {further.cpu_s:,.0f} CPU s, "
            f"and shuffle {further.shuffle_mb:,.0f} MB, {further.shuffle_share:.2%} of the table"
        )
        print(
            f"  and adds {further.live_mb_per_million:.3f} MB to the heap after the check, "
            f"{further.peak_mb_per_million:.3f} MB to the largest size of the JVM: "
            f"{further.live_mb:,.0f} and {further.peak_mb:,.0f} MB then"
        )
    print("  DuckDB: the order check by blocks alone, on the same files, in one process")
