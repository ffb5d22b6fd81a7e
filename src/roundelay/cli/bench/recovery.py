"""`roundelay bench recovery`: the ordered log in Spark, while all that takes part is killed."""

import argparse
import dataclasses
import json

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs


def configure(parser: argparse.ArgumentParser) -> None:
    for name, default, words in (
        ("--rounds", 1, "two nodes, two drivers and an executor are killed in each"),
        ("--rows", 3000, "rows that a query appends to the log"),
        ("--rate", 100, "entries that a client appends by the way, per second"),
        ("--seed", 0, "of the moments at which drivers are killed"),
    ):
        parser.add_argument(name, type=int, metavar="N", default=default, help=words)
    parser.add_argument("--fsync", default="always", help="policy of the nodes")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.pipeline.errors import PipelineError

    if min(args.rounds, args.rows, args.rate) < 1:
        raise UserError("--rounds, --rows and --rate must be 1 at least")
    progress = Progress("recovery")
    try:
        from roundelay.bench.recovery import run as leader
        from roundelay.pipeline.signals import orderly_end

        plan = leader.Plan(args.rounds, args.rows, args.rate, args.fsync, args.seed)
        with orderly_end():
            outcome = leader.run(plan, progress.say)
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except (PipelineError, leader.StuckError) as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    if args.json:
        print(json.dumps(dataclasses.asdict(outcome), indent=2))
        return 0 if not outcome.faults else 1
    print(
        f"killed: {outcome.node_kills} nodes, {outcome.driver_kills} drivers "
        f"({outcome.in_batches} in the middle of a batch), "
        f"{outcome.executors_lost} executors; {outcome.seconds:.0f} s"
    )
    print(
        f"{outcome.entries:,} entries: {outcome.appended_by_query:,} appended by a query, "
        f"{outcome.appended_by_client:,} by a client"
    )
    for fault in outcome.faults:
        print(f"wrong: {fault}")
    if not outcome.faults:
        print(f"each is in the journals and in the table once, in order, in {outcome.files} files")
    return 0 if not outcome.faults else 1
