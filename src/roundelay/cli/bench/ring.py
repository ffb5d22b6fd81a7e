"""`roundelay bench ring`: measures real nodes on this machine, next to peers."""

import argparse
import dataclasses
import importlib.util
import itertools
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench import against, ring_journal, ring_profile, ring_sealed
from roundelay.cli.bench.ring_tables import PACE_PER_S, Ahead, Printer
from roundelay.cli.engines import engine_in_views
from roundelay.cli.errors import UserError
from roundelay.core.checksum import SOURCE
from roundelay.group.engines import EngineError, describe, engine_config
from roundelay.trace.extras import needs

if TYPE_CHECKING:
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.schedule import Part
    from roundelay.bench.ring.systems import System

ROUNDS, ROUNDS_SEALED, ROUNDS_JOURNAL = 2, 9, 5
PLAIN_PARTS = ("throughput", "latency", "idle", "formation", "recovery")
"""What is measured of groups without a journal."""
PARTS = (*PLAIN_PARTS, "reads", "catchup", "start")
TIMEOUT_S = 0.1
"""A short token timeout in seconds, with which recovery is measured too."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="the whole table, not a few cells")
    parser.add_argument("--only", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument(
        "--peer",
        nargs="+",
        metavar="NAME",
        help="peers in the same run: pysyncobj, corosync (with both of its transports), "
        "corosync-knet, corosync-udpu, none; by default those that are here",
    )
    cells = parser.add_argument_group(
        "cells", "any of these measures every combination of what is given"
    )
    cells.add_argument(
        "--engine",
        nargs="+",
        type=engine_in_views,
        metavar="NAME",
        help="its order is verified in every run: one of all messages, or that of each sender",
    )
    cells.add_argument("--size", nargs="+", type=int, metavar="B", help="bytes in a message")
    cells.add_argument(
        "--sizes",
        nargs="+",
        choices=("equal", "uniform", "lognormal"),
        help="how sizes are spread around --size: not at all, evenly from half of it to one and a"
        " half, or log-normally up to twenty times that",
    )
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
    parser.add_argument(
        "--verify",
        choices=("last", "all"),
        default="last",
        help="what readers at full speed compare with what was sent: the last message of each "
        "batch (default), or every byte of every message, which costs time",
    )
    cells.add_argument(
        "--pattern",
        nargs="+",
        choices=("oneway", "conversation"),
        help="of messages at a slow rate: one node sends, or two answer each other",
    )
    cells.add_argument(
        "--queue",
        nargs="+",
        type=_bytes,
        metavar="B",
        help="bytes that may wait to be sent; also as 4MB or 4MiB (default: 4MiB here, 32MiB in"
        " nodes)",
    )
    cells.add_argument(
        "--option",
        action="append",
        nargs="*",
        metavar="NAME=VALUE",
        dest="options",
        help="settings of the engine; give it again for another set, and with nothing for none",
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
        help="with --journal: megabytes of log that a fresh node has to fetch, and that nodes have"
        " when they start again (default: 256)",
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="only what one message costs at each layer, and the floor of bare system calls; "
        "first cell",
    )
    against.add_option(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


UNITS = {"kB": 1000, "MB": 1000**2, "KiB": 1024, "MiB": 1024**2}


def _bytes(text: str) -> int:
    """A number of bytes, for `type=` of an argument."""
    unit = next((unit for unit in UNITS if text.endswith(unit)), "")
    number = text.removesuffix(unit).strip()
    if not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of bytes, as 4194304 or 4MiB are")
    return int(number) * UNITS.get(unit, 1)


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
        raise UserError("--only reads, --only catchup and --only start need --journal")
    if args.verify == "all" and (args.sealed or args.journal or args.profile):
        raise UserError("--verify all is for plain runs; leave --sealed, --journal, --profile out")
    if args.verify == "all" and "throughput" not in (args.only or PLAIN_PARTS):
        raise UserError(
            "--verify all compares what is read at full speed; add throughput to --only, or leave "
            "--verify out"
        )
    cells = _cells(args)
    if args.against is not None:
        return _measure_against(args)
    if any(cell.cipher != "none" for cell in cells) or args.sealed:
        need_cryptography()
    if args.sealed:
        return guarded(lambda: ring_sealed.measure(cells, args, machine()))
    if args.journal:
        return guarded(lambda: ring_journal.measure(cells, _peers(args), args, machine()))
    return guarded(
        lambda: ring_profile.measure(cells[0], args) if args.profile else _measure(cells, args)
    )


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
    from roundelay.bench.ring.systems import OURS

    parts = args.only or PLAIN_PARTS
    peers = _peers(args)
    out = Printer(args.json)
    every = ", and every message at full speed" if args.verify == "all" else ""
    verified = f"the order is verified in every run{every}"
    out.line(f"{machine()}; {args.rounds} rounds, medians; {verified}")
    unusual = out.settings((OURS, *peers))
    groups = list(
        dict.fromkeys(
            Cell(
                engine=c.engine,
                nodes=c.nodes,
                senders="one",
                timeout_s=c.timeout_s,
                pattern=c.pattern,
                options=c.options,
            )
            for c in cells
        )
    )
    alone = list(dict.fromkeys(dataclasses.replace(cell, pattern="oneway") for cell in groups))
    loads = list(dict.fromkeys(dataclasses.replace(cell, pattern="oneway") for cell in cells))
    timeouts = [(cell, t) for cell in alone for t in dict.fromkeys((cell.timeout_s, TIMEOUT_S))]
    pairs = _latency_pairs(groups, peers)
    ahead = Ahead(_plan(loads, pairs, alone, len(timeouts), len(peers), parts, args))
    document: dict[str, Any] = {"machine": machine(), "settings": unusual}
    if "throughput" in parts:
        document["throughput"] = ahead.shown(
            "throughput",
            lambda done: figures.throughput(
                loads, peers, args.seconds, args.rounds, done, args.verify
            ),
            out.throughput,
        )
    if "latency" in parts:
        document["latency"] = ahead.shown(
            "latency",
            lambda done: figures.latency(pairs, PACE_PER_S, 2 * args.seconds, args.rounds, done),
            out.latency,
        )
    if "idle" in parts:
        document["idle"] = ahead.shown(
            "idle",
            lambda done: [done.after(figures.idle(cell, 3 * args.seconds)) for cell in alone],
            out.idle,
        )
    if "formation" in parts:
        document["formation"] = ahead.shown(
            "formation",
            lambda done: [figures.formation(cell, args.rounds, done) for cell in alone],
            out.formation,
        )
    if "recovery" in parts:
        document["recovery"] = ahead.shown(
            "recovery",
            lambda done: [
                done.after(
                    figures.recovery(
                        dataclasses.replace(cell, timeout_s=t), cell.nodes if args.full else 2
                    )
                )
                for cell, t in timeouts
            ],
            out.recovery,
        )
    ahead.close()
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


def _plan(
    cells: "Sequence[Cell]",
    pairs: "Sequence[tuple[System, Cell]]",
    groups: "Sequence[Cell]",
    recoveries: int,
    peers: int,
    parts: Sequence[str],
    args: argparse.Namespace,
) -> "list[Part]":
    """How many runs there will be of each part, and how long each takes."""
    from roundelay.bench.ring.figures import common
    from roundelay.bench.ring.runs import SETTLE_S
    from roundelay.bench.ring.schedule import CRASH_S, STARTING_S, Part

    loads = len(cells) + peers * len({common(cell) for cell in cells})
    crashes = max((cell.nodes for cell in groups), default=0) if args.full else 2
    plan = (
        Part("throughput", args.rounds * loads, STARTING_S + args.seconds),
        Part(
            "latency",
            args.rounds * len(pairs),
            STARTING_S + 2 * args.seconds,
        ),
        Part("idle", len(groups), STARTING_S + SETTLE_S + 3 * args.seconds),
        Part("formation", args.rounds * len(groups), STARTING_S),
        Part("recovery", recoveries, STARTING_S + crashes * CRASH_S),
    )
    return [part for part in plan if part.name in parts]


def _latency_pairs(
    groups: "Sequence[Cell]", peers: "Sequence[System]"
) -> "list[tuple[System, Cell]]":
    """What is measured in turn. Peers do not answer each other, and the floor orders nothing."""
    from roundelay.bench.ring.systems import FLOOR, OURS

    pairs: list[tuple[System, Cell]] = []
    for cell in groups:
        pairs.append((OURS, cell))
        for peer in (*peers, FLOOR):
            other = (peer, dataclasses.replace(cell, engine="totem", pattern="oneway"))
            if other not in pairs:
                pairs.append(other)
    return pairs


PASSED_ON = {
    "full": "--full",
    "only": "--only",
    "peer": "--peer",
    "engine": "--engine",
    "size": "--size",
    "sizes": "--sizes",
    "nodes": "--nodes",
    "senders": "--senders",
    "service": "--service",
    "datagram": "--datagram",
    "reading": "--reading",
    "trace": "--trace",
    "check": "--check",
    "cipher": "--cipher",
    "timeout_s": "--timeout",
    "pattern": "--pattern",
    "queue": "--queue",
    "options": "--option",
    "seconds": "--seconds",
}
"""What another checkout is told, and the words for it."""


def _measure_against(args: argparse.Namespace) -> int:
    if args.sealed or args.journal or args.profile or args.peer or args.verify == "all":
        raise UserError(
            "--against compares plain runs of two checkouts; leave --sealed, --journal, --profile "
            "and --peer out"
        )
    if args.only is None:
        args.only = ["throughput"]
    args.peer = ["none"]
    return against.measure(args, "ring", PASSED_ON, _figures, _troubles)


def _figures(document: dict[str, Any]) -> dict[str, float]:
    """What is compared with another checkout, by name."""
    found: dict[str, float] = {}
    for entry in document.get("throughput", ()):
        name = _cell_name(entry["cell"])
        if not entry["splits"]:
            found[f"{name}: messages/s"] = entry["msgs_per_s"]
            found[f"{name}: us CPU each"] = entry["cpu_us_per_msg"]
    for entry in document.get("latency", ()):
        if entry["system"] == "roundelay":
            name = f"{entry['engine']}, {entry['nodes']} nodes"
            if entry.get("pattern", "oneway") != "oneway":
                name += f", {entry['pattern']}"
            for key in ("p50_ms", "p99_ms"):
                found[f"{name}: {key}"] = entry[key]
    for entry in document.get("idle", ()):
        found[f"{entry['engine']}, {entry['nodes']} nodes: idle CPU share"] = entry["cpu_share"]
    for entry in document.get("formation", ()):
        name = f"{entry['engine']}, {entry['nodes']} nodes, timeout {entry['timeout_s']}"
        found[f"{name}: formation_s"] = entry["formation_s"]
    for entry in document.get("recovery", ()):
        name = f"{entry['engine']}, {entry['nodes']} nodes, timeout {entry['timeout_s']}"
        for key in ("crash_s", "pause_s", "rejoin_s"):
            found[f"{name}: {key}"] = entry[key]
    return found


def _troubles(document: dict[str, Any]) -> dict[str, int]:
    """What should not have happened, and is no figure."""
    cells = document.get("throughput", ())
    return {
        "false suspicions": sum(entry["suspicions"] for entry in cells),
        "splits": sum(entry["splits"] for entry in cells),
    }


def _cell_name(cell: dict[str, Any]) -> str:
    """The cell of another checkout, which may have fewer settings, or more."""
    from roundelay.bench.ring.jobs import Cell

    known = {field.name for field in dataclasses.fields(Cell)}
    return str(Cell(**{name: given for name, given in cell.items() if name in known}))


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
    for queue in given.get("queue", ()):
        if not 65_536 <= queue <= 1 << 30:
            raise UserError(f"--queue {queue}: a queue has 64KiB to 1024MiB here")
    for timeout_s in given.get("timeout_s", ()):
        if not 0.02 <= timeout_s <= 60:
            raise UserError(f"--timeout {timeout_s:g}: a timeout has 0.02 to 60 seconds")
    for datagram in given.get("datagram", ()):
        if not 576 <= datagram <= 65_000:
            raise UserError(f"--datagram {datagram}: datagrams have 576 to 65000 bytes")
    if "options" in given:
        engines = given.get("engine", [Cell().engine])
        given["options"] = [_options(texts, engines) for texts in given["options"]]
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


def _options(texts: list[str], engines: list[str]) -> tuple[str, ...]:
    """Settings that all these engines have."""
    from roundelay.cli.node import pairs

    settings = pairs(texts, "--option")
    for engine in engines:
        try:
            engine_config(engine, settings)
        except (EngineError, ValueError) as e:
            raise UserError(f"--option: {e}") from None
    return tuple(f"{name}={given}" for name, given in settings.items())


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

    known = dict.fromkeys(name for peer in PEERS.values() for name in peer.asked_for_by)
    for name in args.peer or ():
        if name not in known and name != "none":
            raise UserError(f"no peer is called {name!r}; there are: {', '.join(known)}, none")
    chosen = [
        peer
        for peer in PEERS.values()
        if args.peer is None or set(peer.asked_for_by) & set(args.peer)
    ]
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
