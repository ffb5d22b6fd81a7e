"""`roundelay doctor`: looks whether a node would run well on this machine, and says what to do."""

import argparse
import dataclasses
import json

from roundelay.cli import node
from roundelay.cli.connection import printable
from roundelay.cli.doctor import machine, network, places
from roundelay.cli.doctor.facts import Facts, Needs
from roundelay.cli.doctor.judge import Finding, Level, judge
from roundelay.cli.progress import Progress
from roundelay.runtime.settings import DATAGRAM_BYTES, Settings
from roundelay.transport.address import AddressError, is_loopback, parse_address, resolve

_OWN = ("strict", "json", "run")
"""Arguments that are no settings of a node."""
ADVICE = "->"
"""What stands before a line that says what to do."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "Looks whether a node would run well on this machine: versions, clocks, limits, sockets. "
        "With the settings of a node, as `roundelay node` takes them, also its addresses, its "
        "disks and its key. Nothing is changed, and nothing is sent to other nodes."
    )
    parser.add_argument(
        "--strict", action="store_true", help="warnings count as problems: exit with 1"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    node.configure_settings(parser)


def run(args: argparse.Namespace) -> int:
    settings = {name: value for name, value in vars(args).items() if name not in _OWN}
    told = node.told(args)[0] if any(settings.values()) else None
    findings = judge(gather(told))
    worst = {finding.level for finding in findings}
    if args.json:
        document = {"findings": [dataclasses.asdict(finding) for finding in findings]}
        print(json.dumps(document, indent=2))
    else:
        print(report(findings))
    bad = {Level.PROBLEM, Level.WARNING} if args.strict else {Level.PROBLEM}
    return 1 if worst & bad else 0


def gather(told: Settings | None) -> Facts:
    """Everything that can be found out with these settings, or without any."""
    progress = Progress("looking")
    needs = needs_of(told)
    progress.say("at the machine")
    facts = Facts(
        needs,
        machine.software(),
        machine.packages(),
        machine.java(),
        machine.processors(),
        machine.clock(),
        machine.files(),
        network.buffers(),
        network.loopback(needs.datagram_bytes),
        places.control(told),
    )
    if told is not None:
        progress.say("at names, addresses and disks")
        facts = dataclasses.replace(
            facts,
            listening=network.listening(told),
            multicast=network.multicast(told),
            peers=network.peers(told),
            disks=places.disks(told),
            key=places.key(told),
        )
    progress.close()
    return facts


def needs_of(told: Settings | None) -> Needs:
    if told is None:
        return Needs()
    return Needs(
        datagram_bytes=_datagram_bytes(told),
        fsync=told.journal is not None and told.fsync == "always",
        segment_bytes=told.segment_bytes if told.journal is not None else 0,
        by_wall_clock=told.retain_s is not None,
        key=told.key is not None,
        trace=told.trace is not None,
    )


def _datagram_bytes(told: Settings) -> int:
    """The largest datagrams of a node with these settings, as the node itself decides."""
    if told.datagram_bytes is not None:
        return told.datagram_bytes
    try:
        local = all(is_loopback(resolve(parse_address(text))[1]) for text in told.peers.values())
    except AddressError:
        local = False
    return DATAGRAM_BYTES["loopback" if local and told.multicast is None else "network"]


def report(findings: list[Finding]) -> str:
    """The findings as text, one line each, and what to do below those that are not fine."""
    width = max(len(finding.subject) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level:<7}  {finding.subject:<{width}}  {finding.found}")
        if finding.advice:
            lines.append(f"{'':<7}  {'':<{width}}  {ADVICE} {finding.advice}")
    counts = [
        f"{count} {level}{'s' if count != 1 else ''}"
        for level in (Level.PROBLEM, Level.WARNING, Level.NOTE)
        if (count := sum(finding.level is level for finding in findings))
    ]
    lines.append(", ".join(counts) if counts else "everything is fine")
    return "\n".join(map(printable, lines))
