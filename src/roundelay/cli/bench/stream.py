"""`roundelay bench stream`: the ordered log in Spark, next to Parquet."""

import argparse
import dataclasses
import json

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs


def configure(parser: argparse.ArgumentParser) -> None:
    number = {"type": int, "metavar": "N"}
    parser.add_argument("--entries", **number, default=6_000_000, help="entries that are read")
    parser.add_argument("--size", **number, default=100, help="bytes of an entry")
    parser.add_argument(
        "--packet-bytes", **number, default=60_000, help="bytes of the packets they came in"
    )
    parser.add_argument("--rounds", **number, default=5, help="how often both are read")
    parser.add_argument(
        "--stream-batch", **number, default=1_000_000, help="entries in a batch of the stream"
    )
    parser.add_argument(
        "--sink-entries", **number, default=800_000, help="entries that are appended; 0 for none"
    )
    parser.add_argument("--fsync", default="interval", help="policy of the nodes appended to")
    parser.add_argument("--master", metavar="URL", default="local[2]", help="of this machine")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.pipeline.errors import PipelineError

    if args.size < 12 or args.entries < 1 or args.rounds < 1 or args.stream_batch < 1:
        raise UserError("--size must be 12 at least, and the other numbers 1")
    if not args.master.startswith("local["):
        raise UserError("--master must be local[N]: the rates are those of this machine")
    progress = Progress("preparing")
    try:
        from roundelay.bench import stream

        rates = stream.measure(
            *(args.entries, args.size, args.packet_bytes, args.rounds, args.stream_batch),
            *(args.sink_entries, args.fsync, args.master, progress.say),
        )
    except ImportError as e:
        raise UserError(needs(str(e.name), "spark")) from None
    except PipelineError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    if args.json:
        print(json.dumps(dataclasses.asdict(rates), indent=2))
        return 0
    print(f"{rates.entries:,} entries of {rates.entry_bytes} bytes on {args.master}")
    print(f"  source            {rates.source_entries_per_s:>12,.0f} entries/s, all columns")
    print(f"  next to Parquet   {rates.parquet_ratio:>12.2f}")
    print(f"  as a stream       {rates.stream_entries_per_s:>12,.0f} entries/s")
    if rates.sink_entries:
        print(f"  sink              {rates.sink_entries_per_s:>12,.0f} entries/s, three nodes")
    return 0
