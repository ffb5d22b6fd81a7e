"""`roundelay bench ring --journal`: what the replicated log costs, and how fast it commits."""

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench.ring_tables import PACE_PER_S, Ahead, Printer
from roundelay.cli.errors import UserError
from roundelay.journal.policy import parse_policy

if TYPE_CHECKING:
    from roundelay.bench.ring.catchup import Catchup
    from roundelay.bench.ring.disk import Disk
    from roundelay.bench.ring.jobs import Cell, Journal
    from roundelay.bench.ring.journals import Commits, Journaled, Reads
    from roundelay.bench.ring.schedule import Part
    from roundelay.bench.ring.starts import Start
    from roundelay.bench.ring.systems import System

CATCHUP_S = 150.0
"""How long a node may take to catch up while the others append."""
CATCHUP_STEP_S = 15.0
"""How long each step of that takes, until one was seen."""
START_STEP_S = 10.0
"""The same for filling a log, killing all nodes and starting them."""
POLICIES = ("off", "interval", "always")
PARTS = ("throughput", "latency", "reads", "catchup", "start")
PEER = "pysyncobj"
"""The peer that has a journal too."""


def check(args: argparse.Namespace) -> None:
    """Refuse options that mean nothing with `--journal`."""
    if args.sealed or args.full or args.profile:
        raise UserError(
            "--journal compares groups with and without a journal, and nothing else; leave "
            "--sealed, --full and --profile out"
        )
    if "safe" in (args.service or ()):
        raise UserError("--service safe: what is appended has no service; leave it out")
    if set(args.only or ()) - set(PARTS):
        raise UserError(f"with --journal, --only takes {', '.join(PARTS)}")
    if "start" in (args.only or ()) and not _surviving(args.journal):
        raise UserError(
            "--only start kills all nodes, after which --journal off lets nobody go on; give "
            "interval or always"
        )
    if not 1 <= args.fill <= 100_000:
        raise UserError(f"--fill {args.fill}: give 1 to 100000 MB")
    if args.disk is not None and not args.disk.is_dir():
        raise UserError(f"--disk {args.disk} is no directory")


def _surviving(policies: "Sequence[Journal]") -> "list[Journal]":
    """Those with which a group goes on after `kill -9` of all its nodes."""
    return [policy for policy in policies if parse_policy(policy).survives_kill]


def measure(
    cells: "Sequence[Cell]", peers: "Sequence[System]", args: argparse.Namespace, machine: str
) -> int:
    """Compare groups with and without a journal; returns the exit code."""
    from roundelay.bench.ring import catchup, disk, journals, starts
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.systems import OURS

    parts = args.only or PARTS
    policies = list(dict.fromkeys(args.journal))
    directory = args.disk or Path(tempfile.gettempdir())
    out = Tables(args.json)
    out.line(f"{machine}; {args.rounds} rounds, medians; the order is verified in every run")
    groups = list(
        dict.fromkeys(
            Cell(engine=c.engine, nodes=c.nodes, senders="one", timeout_s=c.timeout_s)
            for c in cells
        )
    )
    document: dict[str, Any] = {"machine": machine, "rounds": args.rounds}
    document["settings"] = out.settings((OURS, *peers))
    ahead = Ahead(_plan(cells, groups, len(policies), len(peers), parts, args))
    disks: list[Disk] = []
    if "throughput" in parts:
        found, disks = ahead.measured(
            "throughput",
            lambda report: journals.throughput(
                cells, policies, peers, args.seconds, args.rounds, directory, report
            ),
        )
        out.disks(disks)
        out.journaled(found)
        document["throughput"] = [dataclasses.asdict(f) for f in found]
    if "latency" in parts:
        document["latency"] = ahead.shown(
            "latency",
            lambda report: journals.latency(
                groups,
                policies,
                peers,
                PACE_PER_S,
                2 * args.seconds,
                args.rounds,
                directory,
                report,
            ),
            out.commits,
        )
    if "reads" in parts:
        document["reads"] = ahead.shown(
            "reads",
            lambda report: journals.reads(
                [dataclasses.replace(cell, journal=policies[-1]) for cell in groups],
                args.seconds,
                args.rounds,
                directory,
                report,
            ),
            out.reads,
        )
    if "catchup" in parts:
        cell = dataclasses.replace(cells[0], nodes=3, journal=policies[-1])
        document["catchup"] = ahead.shown(
            "catchup",
            lambda report: [
                catchup.measure(
                    cell, args.fill * 1_000_000, 2 * args.seconds, CATCHUP_S, directory, report
                )
            ],
            out.catchup,
        )
    if "start" in parts and (surviving := _surviving(policies)):
        cell = dataclasses.replace(cells[0], nodes=3, journal=surviving[-1])
        document["start"] = ahead.shown(
            "start",
            lambda report: starts.measure(cell, args.fill * 1_000_000, directory, report),
            out.starts,
        )
    document["disk"] = [dataclasses.asdict(d) for d in disks or [disk.measure(directory)]]
    if args.json:
        print(json.dumps({**headline(document), **document}, indent=2))
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
    groups: "Sequence[Cell]",
    policies: int,
    peers: int,
    parts: Sequence[str],
    args: argparse.Namespace,
) -> "list[Part]":
    """How many runs there will be of each part, and how long each takes."""
    from roundelay.bench.ring import starts
    from roundelay.bench.ring.catchup import STEPS
    from roundelay.bench.ring.schedule import STARTING_S, Part

    plan = (
        Part(
            "throughput",
            args.rounds * len(cells) * (1 + policies + peers),
            STARTING_S + args.seconds,
        ),
        Part(
            "latency",
            args.rounds * len(groups) * (2 + policies + peers),
            STARTING_S + 2 * args.seconds,
        ),
        Part("reads", args.rounds * len(groups), 2 * (STARTING_S + args.seconds)),
        Part("catchup", STEPS, CATCHUP_STEP_S),
        Part("start", starts.STEPS if _surviving(args.journal) else 0, START_STEP_S),
    )
    return [part for part in plan if part.name in parts]


def headline(document: dict[str, Any]) -> dict[str, Any]:
    """The figures of the first cell, by policy."""
    head: dict[str, Any] = {}
    for entry in document.get("throughput", ()):
        policy = entry["cell"]["journal"]
        head.setdefault("journal_ratio", {}).setdefault(policy, entry["ratio"])
        head.setdefault("disk_share", {}).setdefault(policy, entry["disk_share"])
        head.setdefault("ratio_at_most", {}).setdefault(policy, entry["ratio_at_most"])
        if entry["peer_msgs_per_s"]:
            peer = head.setdefault("peer", {"name": PEER})
            peer.setdefault("msgs_per_s", entry["peer_msgs_per_s"])
    for entry in document.get("latency", ()):
        policy = entry["cell"]["journal"]
        head.setdefault("agreed_p50_ms", entry["plain_p50_ms"])
        head.setdefault("commit_p50_ms", {}).setdefault(policy, entry["p50_ms"])
        head.setdefault("commit_p99_ms", {}).setdefault(policy, entry["p99_ms"])
        head.setdefault("fdatasync_p50_ms", entry["fdatasync_p50_ms"])
        head.setdefault("hop_p50_ms", entry["hop_p50_ms"])
        if entry["peer_p50_ms"]:
            head.setdefault("peer", {"name": PEER}).setdefault("p50_ms", entry["peer_p50_ms"])
    for entry in document.get("reads", ())[:1]:
        head["read_p50_ms"] = entry["p50_ms"]
        head["reads_per_s"] = entry["reads_per_s"]
    for entry in document.get("start", ())[-1:]:
        head["start_mb"] = entry["mb"]
        head["start_s"] = entry["joined_s"]
    for entry in document.get("catchup", ())[:1]:
        full = entry["full_msgs_per_s"]
        head["catchup_mb_per_s"] = entry["idle_mb_per_s"]
        head["catchup_loaded_mb_per_s"] = entry["loaded_mb_per_s"]
        head["catchup_loaded"] = {"ended": entry["loaded_caught"], "seconds": entry["loaded_s"]}
        head["catchup_ring_ratio"] = entry["during_msgs_per_s"] / full if full else 0.0
    return head


class Tables(Printer):
    """Prints the tables of groups with journals."""

    def disks(self, found: "Sequence[Disk]") -> None:
        rates = sorted(disk.bytes_per_s / 1e6 for disk in found)
        syncs = sorted(disk.fdatasync_ms for disk in found)
        self.line(
            f"the disk by itself: {rates[0]:,.0f} to {rates[-1]:,.0f} MB/s in a row,"
            f" fdatasync {syncs[0]:.2f} to {syncs[-1]:.2f} ms"
        )

    def journaled(self, found: "Sequence[Journaled]") -> None:
        self.line("committed entries per second, read at every node, next to agreed messages")
        width = max(len(str(f.cell)) for f in found)
        for f in found:
            text = (
                f"  {f.cell!s:<{width}}  {f.plain_msgs_per_s:>9,.0f}  {f.msgs_per_s:>9,.0f}"
                f"  ratio {f.ratio:.2f} ({f.lowest:.2f} to {f.highest:.2f};"
                f" at most {f.ratio_at_most:.2f} with the kernel's time alone)"
                f"  CPU per message {f.cpu_ratio - 1:+.0%}"
                f"  {f.disk_share:.2f} of what the disk takes"
            )
            if f.peer_msgs_per_s:
                text += (
                    f"  {f.msgs_per_s / f.peer_msgs_per_s:.1f}x {PEER}'s {f.peer_msgs_per_s:,.0f}"
                )
            if f.suspicions:
                text += f"  {f.suspicions} false suspicions"
            if f.splits:
                text += f"  split in {f.splits} rounds"
            self.line(text)

    def commits(self, found: "Sequence[Commits]") -> None:
        self.line("append to committed, over all nodes, 100 entries of 100 B a second")
        for f in found:
            text = (
                f"  {f.cell.engine:<12}{f.cell.nodes} nodes  {f.cell.journal:<9}"
                f"p50 {f.p50_ms:.2f} ms  p99 {f.p99_ms:.2f} ms"
                f"  (agreed {f.plain_p50_ms:.2f} ms, {f.more_ms:+.2f} ms within a round;"
                f" fdatasync {f.fdatasync_p50_ms:.2f} ms,"
                f" two bare UDP hops {2 * f.hop_p50_ms:.2f} ms)"
            )
            if f.peer_p50_ms:
                text += f"  {PEER} {f.peer_p50_ms:.2f} ms"
            self.line(text)

    def reads(self, found: "Sequence[Reads]") -> None:
        self.line("linearizable reads in an idle group")
        for f in found:
            self.line(
                f"  {f.cell.engine:<12}{f.cell.nodes} nodes  p50 {f.p50_ms:.2f} ms"
                f" (a UDP hop {f.hop_p50_ms:.2f} ms)"
                f"  {f.reads_per_s:,.0f} a second at every node, with many at once"
            )

    def catchup(self, found: "Sequence[Catchup]") -> None:
        self.line("a node with an empty disk catches up")
        for f in found:
            end = "" if f.loaded_caught else "without reaching the end "
            self.line(
                f"  {f.mb:,.0f} MB in an idle group: {f.idle_s:.1f} s, {f.idle_mb_per_s:.0f} MB/s\n"
                f"  under full load: {end}in {f.loaded_s:.0f} s, {f.loaded_mb_per_s:.0f} MB/s;"
                f" the group commits {f.during_msgs_per_s:,.0f} entries a second"
                f" meanwhile, {f.ratio:.2f} of {f.full_msgs_per_s:,.0f}"
            )

    def starts(self, found: "Sequence[Start]") -> None:
        self.line("kill -9 of all three nodes, until the log is open and whole at all of them")
        for f in found:
            self.line(
                f"  {f.mb:>7,.1f} MB of log: {f.joined_s:.2f} s from join on, {f.killed_s:.2f} s"
                " with the start of the processes"
            )
