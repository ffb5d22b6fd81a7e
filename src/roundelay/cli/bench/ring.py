"""`roundelay bench ring`: measures real nodes on this machine, next to peers."""

import argparse
import dataclasses
import importlib.util
import itertools
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench import ring_journal, ring_sealed
from roundelay.cli.bench.ring_tables import PACE_PER_S, Printer, shown
from roundelay.cli.engines import totally_ordering
from roundelay.cli.errors import UserError
from roundelay.core.checksum import SOURCE
from roundelay.group.engines import describe
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.systems import System

ROUNDS, ROUNDS_SEALED, ROUNDS_JOURNAL = 2, 9, 5
PARTS = ("throughput", "latency", "idle", "recovery", "reads", "catchup")
PLAIN_PARTS = PARTS[:4]
"""What is measured of groups without a journal."""
TIMEOUT_S = 0.1
"""A short token timeout in seconds, with which recovery is measured too."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="the whole table, not a few cells")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--peer",
        nargs="+",
        metavar="NAME",
        help="peers in the same run: pysyncobj, corosync, none; by default those that are here",
    )
    cells = parser.add_argument_group(
        "cells", "any of these measures every combination of what is given"
    )
    cells.add_argument(
        "--engine",
        nargs="+",
        type=totally_ordering,
        metavar="NAME",
        help="engines that put all messages into one order: it is verified in every run",
    )
    cells.add_argument("--size", nargs="+", type=int, metavar="B", help="bytes in a message")
    cells.add_argument("--nodes", nargs="+", type=int, metavar="N")
    cells.add_argument("--senders", nargs="+", choices=("all", "one"))
    cells.add_argument("--service", nargs="+", choices=("agreed", "safe"))
    cells.add_argument("--datagram", nargs="+", type=int, metavar="B", help="bytes in a datagram")
    cells.add_argument("--reading", nargs="+", choices=("batches", "messages"))
    cells.add_argument("--trace", nargs="+", choices=("off", "on"))
    cells.add_argument(
        "--check", nargs="+", choices=("off", "on"), help="every node checks its own rows"
    )
    cells.add_argument(
        "--cipher", nargs="+", choices=("none", "aes", "chacha"), help="that seals the traffic"
    )
    cells.add_argument(
        "--timeout", nargs="+", type=float, metavar="S", dest="timeout_s", help="of the token"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="that a run sends")
    parser.add_argument(
        "--rounds",
        type=int,
        help="runs of each, alternating (default: 2; 9 with --sealed, 5 with --journal)",
    )
    parser.add_argument(
        "--sealed",
        action="store_true",
        help="sealed groups next to plain ones, with each cipher; throughput and latency",
    )
    parser.add_argument(
        "--journal",
        nargs="+",
        choices=ring_journal.POLICIES,
        metavar="POLICY",
        help="groups with journals next to a group without, with each of these policies: off,"
        " interval, always; throughput, commit latency, reads and catch-up",
    )
    parser.add_argument(
        "--disk",
        type=Path,
        metavar="DIR",
        help="with --journal: where the journals are, removed at the end (default: the directory"
        " for temporary files)",
    )
    parser.add_argument(
        "--fill",
        type=int,
        default=256,
        metavar="MB",
        help="with --journal: megabytes of log that a fresh node has to fetch (default: 256)",
    )
    parser.add_argument(
        "--profile", action="store_true", help="only where the time of one node goes, first cell"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    if args.rounds is None:
        args.rounds = ROUNDS
        if args.sealed or args.journal:
            args.rounds = ROUNDS_SEALED if args.sealed else ROUNDS_JOURNAL
    if not 0.1 <= args.seconds <= 3600 or args.rounds < 1:
        raise UserError("--seconds must be 0.1 to 3600 and --rounds at least 1")
    if args.journal:
        ring_journal.check(args)
    elif args.disk is not None:
        raise UserError("--disk says where journals are; add --journal always, or leave it out")
    elif set(args.only or ()) - set(PLAIN_PARTS):
        raise UserError("--only reads and --only catchup need --journal")
    cells = _cells(args)
    if any(cell.cipher != "none" for cell in cells) or args.sealed:
        need_cryptography()
    if args.sealed:
        return guarded(lambda: ring_sealed.measure(cells, args, machine()))
    if args.journal:
        return guarded(lambda: ring_journal.measure(cells, _peers(args), args, machine()))
    return guarded(lambda: _profile(cells[0], args) if args.profile else _measure(cells, args))


def guarded(measure: Callable[[], int]) -> int:
    """Measure; a run that fails or orders wrongly ends the command with a sentence."""
    from roundelay.bench.ring.cluster import RunError, SplitError
    from roundelay.bench.ring.runs import OrderError

    try:
        return measure()
    except SplitError as e:
        advice = "if nothing else kept this machine busy, please report this"
        print(f"roundelay bench: {e}; {advice}", file=sys.stderr)
        return 1
    except OrderError as e:
        print(f"roundelay bench: {e}, which must not happen; please report this", file=sys.stderr)
        return 1
    except RunError as e:
        raise UserError(f"{e}; run it again, or with fewer nodes") from None


def _measure(cells: "Sequence[Cell]", args: argparse.Namespace) -> int:
    from roundelay.bench.ring import figures
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.systems import FLOOR, OURS

    parts = args.only or PLAIN_PARTS
    peers = _peers(args)
    out = Printer(args.json)
    out.line(f"{machine()}; {args.rounds} rounds, medians; the order is verified in every run")
    groups = list(
        dict.fromkeys(
            Cell(engine=c.engine, nodes=c.nodes, senders="one", timeout_s=c.timeout_s)
            for c in cells
        )
    )
    document: dict[str, Any] = {"machine": machine()}
    if "throughput" in parts:
        document["throughput"] = shown(
            "ordering",
            lambda report: figures.throughput(cells, peers, args.seconds, args.rounds, report),
            out.throughput,
        )
    if "latency" in parts:
        document["latency"] = shown(
            "taking the time",
            lambda report: [
                found
                for cell in groups
                for found in figures.latency(
                    [OURS, *peers, FLOOR], cell, PACE_PER_S, 2 * args.seconds, args.rounds, report
                )
            ],
            out.latency,
        )
    if "idle" in parts:
        document["idle"] = shown(
            "doing nothing",
            lambda _: [figures.idle(cell, 3 * args.seconds) for cell in groups],
            out.idle,
        )
    if "recovery" in parts:
        document["recovery"] = shown(
            "crashing nodes",
            lambda _: [
                figures.recovery(
                    dataclasses.replace(cell, timeout_s=t), cell.nodes if args.full else 2
                )
                for cell in groups
                for t in dict.fromkeys((cell.timeout_s, TIMEOUT_S))
            ],
            out.recovery,
        )
    if args.json:
        print(json.dumps({**_headline(document, peers), **document}, indent=2))
    if any(entry["splits"] for entry in document.get("throughput", ())):
        print(
            "roundelay bench: nodes lost sight of others that were running; if nothing else kept "
            "this machine busy, please report this",
            file=sys.stderr,
        )
        return 1
    return 0


def _headline(document: dict[str, Any], peers: "Sequence[System]") -> dict[str, Any]:
    """The figures of the first cell and of the first peer."""
    head: dict[str, Any] = {}
    cells = document.get("throughput", [])
    times = {entry["system"]: entry for entry in reversed(document.get("latency", []))}
    if cells:
        head["msgs_per_s"] = cells[0]["msgs_per_s"]
    if "roundelay" in times:
        head |= {key: times["roundelay"][key] for key in ("p50_ms", "p99_ms")}
    for peer in peers[:1]:
        theirs: dict[str, Any] = {"name": peer.name}
        if cells and peer.name in cells[0]["peers"]:
            rival = cells[0]["peers"][peer.name]
            theirs["msgs_per_s"] = rival["msgs_per_s"]
            head["ratio"] = rival["ratio"]
        if peer.name in times:
            theirs |= {key: times[peer.name][key] for key in ("p50_ms", "p99_ms")}
        head["peer"] = theirs
    return head


def _cells(args: argparse.Namespace) -> "Sequence[Cell]":
    from roundelay.bench.ring.figures import QUICK, full
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.runs import NAMES
    from roundelay.bench.ring.sealed import DATAGRAMS

    given = {
        field.name: getattr(args, field.name)
        for field in dataclasses.fields(Cell)
        if getattr(args, field.name) is not None and field.name != "journal"
    }
    if args.sealed:
        _check_sealed(args)
        given.setdefault("datagram", list(DATAGRAMS))
    for engine in given.get("engine", ()):
        if "safe" in given.get("service", ()) and not describe(engine).carries_safe:
            raise UserError(f"--service safe: safe messages are nothing special to {engine}")
    for nodes in given.get("nodes", ()):
        if not 2 <= nodes <= len(NAMES):
            raise UserError(f"--nodes {nodes}: a ring has 2 to {len(NAMES)} nodes here")
    for size in given.get("size", ()):
        if not 8 <= size <= 1_000_000:
            raise UserError(f"--size {size}: messages have 8 to 1000000 bytes here")
    for timeout_s in given.get("timeout_s", ()):
        if not 0.02 <= timeout_s <= 60:
            raise UserError(f"--timeout {timeout_s:g}: a timeout has 0.02 to 60 seconds")
    for datagram in given.get("datagram", ()):
        if not 576 <= datagram <= 65_000:
            raise UserError(f"--datagram {datagram}: datagrams have 576 to 65000 bytes")
    if args.journal and not given:
        return [Cell()]
    if not given:
        return full() if args.full else QUICK
    for switch in ("trace", "check"):
        if switch in given:
            given[switch] = [word == "on" for word in given[switch]]
    return [
        Cell(**dict(zip(given, values, strict=True)))
        for values in itertools.product(*given.values())
    ]


def _check_sealed(args: argparse.Namespace) -> None:
    if args.cipher is not None or args.peer is not None or args.full or args.profile:
        raise UserError(
            "--sealed compares every cipher with plain nodes, and nothing else; leave --cipher, "
            "--peer, --full and --profile out"
        )
    if set(args.only or ()) - set(ring_sealed.PARTS):
        raise UserError(f"with --sealed, --only takes {' and '.join(ring_sealed.PARTS)}")


def need_cryptography() -> None:
    """UserError if nodes here cannot have a key."""
    if importlib.util.find_spec("cryptography") is None:
        raise UserError(needs("cryptography"))


def _peers(args: argparse.Namespace) -> "list[System]":
    """The peers that the user asked for, or by default those that are installed."""
    from roundelay.bench.ring.systems import PEERS

    for name in args.peer or ():
        if name not in PEERS and name != "none":
            raise UserError(f"no peer is called {name!r}; there are: {', '.join(PEERS)}, none")
    chosen = [peer for name, peer in PEERS.items() if args.peer is None or name in args.peer]
    if args.journal:  # Others have none.
        chosen = [peer for peer in chosen if peer.name == ring_journal.PEER]
    found = []
    for peer in chosen:
        missing = peer.missing()
        if missing is None:
            found.append(peer)
        elif args.peer is not None:
            raise UserError(missing)
        else:
            print(f"without {peer.name}: {missing}", file=sys.stderr)
    return found


def machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}, checksums by {SOURCE}"


def _profile(cell: "Cell", args: argparse.Namespace) -> int:
    from roundelay.bench.ring import profile, runs
    from roundelay.bench.ring.systems import OURS

    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "profile"
        load = runs.load(OURS, cell, args.seconds, profile=file)
        found = profile.read(file)
    if args.json:
        print(json.dumps({"profile": dataclasses.asdict(found)}, indent=2))
        return 0
    print(f"{cell}: where the time of one node goes, as a profiler sees it")
    print(f"({load.messages:,} messages; calls look dearer here than they are)")
    for title, shares in (("layers", found.layers), ("functions", found.functions)):
        print(title)
        for s in shares:
            print(f"  {s.share:>6.1%}  {s.calls:>9,} calls  {s.name}")
    return 0
