"""`roundelay bench stream`: the ordered log in Spark, next to Parquet."""

import argparse
import dataclasses
import json

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs


def configure(parser: argparse.ArgumentParser) -> None:
    for name, default, words in (
        ("--entries", 6_000_000, "entries that are read"),
        ("--size", 100, "bytes of an entry"),
        ("--packet-bytes", 60_000, "bytes of the packets they came in"),
        ("--rounds", 5, "how often both are read"),
        ("--stream-batch", 1_000_000, "entries in a batch of the stream"),
        ("--sink-entries", 800_000, "entries that are appended; 0 for none"),
    ):
        parser.add_argument(name, type=int, metavar="N", default=default, help=words)
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
