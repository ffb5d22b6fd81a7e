"""`roundelay bench soak`: a group under full load for minutes, or under many kills."""

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from roundelay.cli.bench.ring import guarded
from roundelay.cli.bench.ring_tables import Printer
from roundelay.cli.engines import totally_ordering
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress

if TYPE_CHECKING:
    from roundelay.bench.kills.run import Outcome


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--engine",
        type=totally_ordering,
        default="totem",
        metavar="NAME",
        help="(default: totem)",
    )
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument(
        "--journal",
        action="store_true",
        help="nodes keep a replicated log, to which they append, and read what is committed",
    )
    parser.add_argument("--fsync", choices=("always", "interval"), default="always")
    kills = parser.add_argument_group(
        "kills",
        "nodes with journals are killed and started again, some without their disk or with a "
        "damaged one; at the end their journals are judged",
    )
    kills.add_argument(
        "--kills",
        action="store_true",
        help="with --journal; with --fsync interval there is no power cut of all nodes, for which "
        "it promises nothing",
    )
    kills.add_argument("--rounds", type=int, default=200, help="of kills (default: 200)")
    kills.add_argument("--seed", type=int, default=1, help="of what is killed, and when")
    kills.add_argument(
        "-o", "--output", type=Path, metavar="DIR", help="keep the journals in this new directory"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    from roundelay.bench.ring.runs import NAMES

    if not 2 <= args.nodes <= len(NAMES) or args.minutes <= 0:
        raise UserError(f"give 2 to {len(NAMES)} --nodes and more than 0 --minutes")
    if args.kills and not args.journal:
        raise UserError("--kills needs --journal: kills are judged by the journals")
    if args.kills:
        return _kill(args)
    return guarded(lambda: _soak(args))


def _soak(args: argparse.Namespace) -> int:
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.soak import soak
    from roundelay.bench.ring.systems import OURS

    unusual = Printer(args.json).settings((OURS,))
    progress = Progress("soaking")
    cell = Cell(args.engine, nodes=args.nodes, journal=args.fsync if args.journal else "none")
    found = soak(cell, args.minutes * 60, progress.update)
    progress.close()
    if args.json:
        document = {
            "engine": args.engine,
            "settings": unusual,
            "journal": cell.journal,
            **dataclasses.asdict(found),
            "cpu_share": found.cpu_share,
            "growth": found.growth,
        }
        print(json.dumps(document, indent=2))
    else:
        journal = f", journal {args.fsync}" if args.journal else ""
        print(
            f"{args.engine}{journal}: {found.nodes} nodes at full load for"
            f" {found.seconds / 60:g} minutes:"
            f" {found.messages:,} messages, {found.msgs_per_s:,.0f} a second, all in one order\n"
            f"  CPU               {found.cpu_us_per_msg:.2f} us for a message at all nodes;"
            f" the rate is {found.cpu_share:.2f} of what that allows on {found.cores} cores\n"
            f"  false suspicions  {found.suspicions}\n"
            f"  recoveries        {found.recoveries}, and {found.lost} datagrams were lost\n"
            f"  memory            {found.peak_mb:.0f} MB at most in the largest node,"
            f" {found.growth:.2f}x of what it was after a third of the time"
        )
    return 0 if found.sound else 1


def _kill(args: argparse.Namespace) -> int:
    from roundelay.bench.kills.run import Plan, soak

    if not 3 <= args.nodes <= 9 or args.rounds < 1:
        raise UserError("with --kills, give 3 to 9 --nodes and at least 1 --rounds")
    plan = Plan(
        nodes=args.nodes,
        rounds=args.rounds,
        fsync=args.fsync,
        seed=args.seed,
        engine=args.engine,
    )
    progress = Progress("killing nodes")
    with tempfile.TemporaryDirectory(prefix="roundelay-kills-") as scratch:
        journals = args.output or Path(scratch)
        if args.output is not None:
            try:
                args.output.mkdir(parents=True)
            except OSError as e:
                raise UserError(f"-o {args.output}: {e.strerror or e}") from None
        outcome = soak(plan, journals, progress.update)
    progress.close()
    if args.json:
        document = {**dataclasses.asdict(outcome), "sound": outcome.sound}
        print(json.dumps(document, indent=2))
    else:
        _print_kills(outcome)
    return 0 if outcome.sound else 1


def _print_kills(found: "Outcome") -> None:
    from roundelay.bench.kills.rounds import WORDS
    from roundelay.journal.policy import parse_policy

    plan, verdict = found.plan, found.verdict
    print(
        f"{plan.engine}, fsync {plan.fsync}: {found.rounds} rounds with {plan.nodes} nodes, seed"
        f" {plan.seed}: {found.kills} kills"
    )
    for kind, words in WORDS.items():
        if kind in found.rounds_of:
            print(f"  {found.rounds_of[kind]:>5}  {words}")
    if not parse_policy(plan.fsync).survives_power:
        print(f"         no power cut of all: fsync {plan.fsync} promises nothing for it")
    print(
        f"  {found.donors} kills interrupted who filled another node's journal; {found.damage_read}"
        f" damaged records were found by reading, the others at the start"
    )
    if found.outages_s:
        print(
            f"  first kill to the first receipt of every client, with all nodes back:"
            f" {median(found.outages_s):.1f} s, at most {max(found.outages_s):.1f} s"
        )
    if found.stuck:
        print(f"  stuck: {found.stuck}")
    if verdict is not None:
        print(
            f"  confirmed      {verdict.confirmed:,} appends, {found.retries:,} times a client sent"
            f" one again through another node\n"
            f"  journals       {verdict.entries:,} entries\n"
            f"  lost           {verdict.lost}\n"
            f"  disagreements  {verdict.disagreements}\n"
            f"  twice          {verdict.repeated}\n"
            f"  out of order   {verdict.disordered}"
        )
        for words in verdict.words:
            print(f"    {words}")
