"""`roundelay bench core`: engines next to each other, without a network."""

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench import against
from roundelay.cli.engines import engine
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.group.engines import engine_names

if TYPE_CHECKING:
    from roundelay.bench.core import Figures


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--protocol",
        nargs="+",
        type=engine,
        metavar="P",
        help=f"only these, and totem to compare with: {', '.join(engine_names())}",
    )
    parser.add_argument(
        "--messages", type=int, default=4_000, help="of each of five nodes, in a run"
    )
    parser.add_argument(
        "--subset",
        type=float,
        default=1.0,
        metavar="SHARE",
        help="of the group that a message is for, more than 0 and at most 1, where engines can",
    )
    parser.add_argument("--rounds", type=int, default=3, help="runs of each engine, alternating")
    against.add_option(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.bench import core

    engines = args.protocol or list(engine_names())
    if args.messages < 1 or args.rounds < 1:
        raise UserError("--messages and --rounds must be at least 1")
    if not 0 < args.subset <= 1:
        raise UserError("--subset must be more than 0, and at most 1")
    if args.against is not None:
        return against.measure(args, "core", PASSED_ON, _figures)
    progress = Progress("running cores")
    figures = core.compare(engines, args.messages, args.rounds, progress.update, args.subset)
    progress.close()
    if args.json:
        document = {
            "nodes": len(core.NODES),
            "message_bytes": core.MESSAGE_BYTES,
            "subset": args.subset,
            "engines": [dataclasses.asdict(f) for f in figures],
        }
        print(json.dumps(document, indent=2))
        return 0
    print(
        f"cores of {len(core.NODES)} nodes, {core.MESSAGE_BYTES} B messages, no network;"
        f" medians of {args.rounds} rounds\n"
        f"rate and event cost: deliveries per second and CPU time per event, next to {core.PEER}'s"
        " in the same round"
    )
    print(
        "  engine      packing   events/s  deliveries/s    messages/s  ns/delivery  messages/packet"
        "    rate  event cost"
    )
    for f in figures:
        print(_line(f))
    return 0


PASSED_ON = {"protocol": "--protocol", "messages": "--messages", "subset": "--subset"}
"""What another checkout is told, and the words for it."""


def _figures(document: dict[str, Any]) -> dict[str, float]:
    """What is compared with another checkout, by name."""
    return {
        f"{entry['engine']}, packing {'on' if entry['packing'] else 'off'}: ns/delivery": entry[
            "ns_per_delivery"
        ]
        for entry in document["engines"]
        if entry["complete"]
    }


def _line(f: "Figures") -> str:
    name = f"  {f.engine:<12}{'on' if f.packing else 'off':<7}"
    if not f.complete:
        return f"{name}  does not run saturated on a static group"
    waits = f"  {f.expiries} waits for a timer" if f.expiries else ""
    return (
        f"{name}{f.events_per_s:>11,.0f}{f.deliveries_per_s:>14,.0f}{f.messages_per_s:>14,.0f}{f.ns_per_delivery:>13,.0f}"
        f"{f.messages_per_packet:>17.1f}{f.ratio:>7.2f}x{f.event_ratio:>11.2f}x{waits}"
    )
