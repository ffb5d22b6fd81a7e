"""`roundelay bench intruder`: three sealed nodes at full speed while somebody attacks them."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench.ring import guarded, machine, need_cryptography
from roundelay.cli.engines import totally_ordering
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress

if TYPE_CHECKING:
    from roundelay.bench.intruder.run import Verdict

RMEM_MAX = Path("/proc/sys/net/core/rmem_max")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine", type=totally_ordering, default="totem", metavar="NAME", help="(default: totem)"
    )
    parser.add_argument("--cipher", choices=("aes", "chacha"), default="aes")
    parser.add_argument("--datagram", type=int, default=60_000, metavar="B", help="of the nodes")
    parser.add_argument("--size", type=int, default=100, metavar="B", help="bytes in a message")
    parser.add_argument("--seconds", type=float, default=10.0, help="that an attack lasts")
    parser.add_argument("--rounds", type=int, default=5, help="without and with the intruder")
    parser.add_argument(
        "--flood", type=int, default=100_000, metavar="N", help="datagrams per second, to all nodes"
    )
    parser.add_argument("--timeout", type=float, metavar="S", dest="timeout_s", help="of the token")
    parser.add_argument(
        "--floor",
        action="store_true",
        help="also let the flood go to sockets whose reader drops it, next to the same load",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if not 0.5 <= args.seconds <= 600 or args.rounds < 1:
        raise UserError("--seconds must be 0.5 to 600 and --rounds at least 1")
    if not 0 <= args.flood <= 1_000_000:
        raise UserError(f"--flood {args.flood}: give 0 to 1000000 datagrams per second")
    if not 8 <= args.size <= 1_000_000:
        raise UserError(f"--size {args.size}: messages have 8 to 1000000 bytes here")
    if not 576 <= args.datagram <= 65_000:
        raise UserError(f"--datagram {args.datagram}: datagrams have 576 to 65000 bytes")
    if args.timeout_s is not None and not 0.02 <= args.timeout_s <= 60:
        raise UserError(f"--timeout {args.timeout_s:g}: a timeout has 0.02 to 60 seconds")
    need_cryptography()
    return guarded(lambda: _measure(args))


def _measure(args: argparse.Namespace) -> int:
    from roundelay.bench.intruder.run import measure
    from roundelay.bench.ring.jobs import Cell

    cell = Cell(
        args.engine,
        size=args.size,
        datagram=args.datagram,
        cipher=args.cipher,
        timeout_s=args.timeout_s,
    )
    progress = Progress("attacking")
    found = measure(cell, args.seconds, args.flood, args.rounds, progress.update, floor=args.floor)
    progress.close()
    if args.json:
        print(json.dumps(document(found, str(cell)), indent=2))
    else:
        _print(found, str(cell))
    return 0 if found.sound else 1


def document(found: "Verdict", cell: str) -> dict[str, Any]:
    """What `--json` prints."""
    return {
        "views_changed": found.views_changed,
        "foreign_delivered": found.foreign_delivered,
        "throughput_ratio": found.throughput_ratio,
        "floor_ratio": found.ratio("drained"),
        "attack_cores": found.attack_cores,
        "intruder_cores": found.intruder_cores,
        "memory_growth": found.growth("attacked"),
        "memory_growth_quiet": found.growth("quiet"),
        "memory_flat": found.flat,
        "rmem_max": rmem_max(),
        "machine": machine(),
        "cell": cell,
        "sessions": [dataclasses.asdict(session) for session in found.sessions],
    }


def rmem_max() -> int | None:
    """The largest receive buffer that the system gives, in bytes; None where it does not say."""
    try:
        return int(RMEM_MAX.read_text())
    except (OSError, ValueError):
        return None


def _print(found: "Verdict", cell: str) -> None:
    print(f"{machine()}; rmem_max {rmem_max()}; {cell}")
    for s in found.sessions:
        text = (
            f"  {s.kind:<9} {s.msgs_per_s:>10,.0f} msg/s  {s.cpu_us_per_msg:.2f} us CPU each"
            f"  {s.before_mb:.0f} to {s.after_mb:.0f} MB"
        )
        if s.sent:
            text += f"  intruder {s.intruder_cpu:.0%} of a core: {_pairs(s.sent)}"
        if s.drain_cpu:
            text += f"; reader {s.drain_cpu:.0%} of a core"
        if s.kind == "attacked":
            text += f"\n{'':12}refused: {_pairs(s.drops)}"
        print(text)
    print(
        f"views changed      {found.views_changed}\n"
        f"foreign delivered  {found.foreign_delivered}\n"
        f"memory             {found.growth('attacked'):.2f}x after an attack,"
        f" {found.growth('quiet'):.2f}x without one\n"
        f"throughput ratio   {found.throughput_ratio:.2f} of the rate without the intruder, median"
    )
    if found.attack_cores is not None:
        print(
            f"the attack takes   {found.attack_cores:.2f} of a core from all nodes together, and"
            f" {found.intruder_cores:.2f} to send"
        )
    if (floor := found.ratio("drained")) is not None:
        print(f"floor              {floor:.2f} if nodes get nothing of the flood, but it is read")


def _pairs(counts: Any) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items()) or "nothing"
