"""`roundelay status`: shows the state of a running node, or what is known of a group live."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roundelay.cli import connection, watched
from roundelay.cli.errors import UserError
from roundelay.runtime.metrics import prometheus

WATCH_S = 1.0
"""How many seconds pass between two updates with --watch."""
BAR_CHARACTERS = 40
"""The length of the longest bar of a histogram, in characters."""


def configure(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    form.add_argument("--prometheus", action="store_true", help="metrics in Prometheus's format")
    form.add_argument("--watch", action="store_true", help="again every second, until interrupted")
    parser.add_argument(
        "--watched",
        metavar="OUT",
        type=Path,
        help="verdicts and measures that `roundelay watch` writes there, instead of a node's state",
    )
    connection.configure(parser)


def run(args: argparse.Namespace) -> int:
    if args.watched is not None:
        return _watched(args)
    with connection.connected(args) as client:
        if args.watch:
            _again(lambda: text(client.ask(do="status")))
        document = client.ask(do="status")
        if args.json:
            shown = json.dumps(document) + "\n"
        else:
            shown = prometheus(document) if args.prometheus else text(document)
    print(shown, end="")
    return 0


def _watched(args: argparse.Namespace) -> int:
    if args.prometheus or (args.control or args.group or args.node) is not None:
        raise UserError("--watched shows what `roundelay watch` wrote; leave out what names a node")

    def shown() -> str:
        return "\n".join(map(connection.printable, watched.text(document()))) + "\n"

    def document() -> dict[str, Any]:
        return watched.document(args.watched)

    if args.watch:
        _again(shown)
    print(json.dumps(document()) + "\n" if args.json else shown(), end="")
    return 0


def _again(show: Callable[[], str]) -> None:
    """Show something again and again until Ctrl-C."""
    terminal = sys.stdout.isatty()
    while True:
        shown = show()
        sys.stdout.write(f"\x1b[H\x1b[J{shown}" if terminal else f"{shown}\n")
        sys.stdout.flush()
        time.sleep(WATCH_S)


def text(document: dict[str, Any]) -> str:
    """The status as text."""
    view, rates, queues = document["view"], document["rates"], document["queues"]
    counters = document["counters"]
    away = [peer for peer in document["peers"] if peer not in view["members"]]
    lines = [
        f"{document['group']}/{document['node']}, {document['engine']}, "
        f"up {document['uptime_s']:.0f} s, incarnation {document['incarnation']}",
        f"view       {view['id']}: {', '.join(view['members'])}"
        + _standing(view)
        + (f"; away: {', '.join(away)}" if away else ""),
        f"phase      {document['phase']}{_reason(document)}, {counters['views']} views, "
        f"{counters['suspicions']} suspicions, {counters['pauses']} pauses",
        f"delivered  {counters['messages_delivered']:,} messages, "
        f"{counters['bytes_delivered']:,} bytes",
        f"rate       {rates['messages_per_s']:,.0f} messages/s, "
        f"{rates['bytes_per_s']:,.0f} bytes/s",
        f"queues     {queues['packets_to_send']} packets to send, "
        f"{queues['packets_to_read']} to be read by the application",
        f"drops      {_pairs(document['drops'])}",
        f"seal       {_seal(document['seal'])}",
    ]
    lines += _log(document.get("log"))
    lines += _check(document.get("check"))
    lines += [f"warning    {sentence}" for sentence in document.get("warnings", [])]
    for name in ("latency", "rotation"):
        lines += _histogram(name, document[name])
    return "\n".join(map(connection.printable, lines)) + "\n"


def _reason(document: dict[str, Any]) -> str:
    """Why the node gathers, if it does and says so."""
    return f" ({document['gather']})" if document.get("gather") else ""


def _standing(view: dict[str, Any]) -> str:
    if view["primary"]:
        voters = "" if view["voters"] == view["members"] else f" by {', '.join(view['voters'])}"
        return f", primary{voters}" if view["voters"] else ", primary"
    return f", not primary ({view['why']})" if view["why"] else ", not primary"


def _log(log: dict[str, Any] | None) -> list[str]:
    """The replicated log, if the node keeps one."""
    if log is None:
        return []
    first, length = log["first"], log["length"]
    held = f"entries {first:,} to {length - 1:,}" if length > first else "no entries"
    lag = f", {log['lag']:,} not committed yet" if log["lag"] else ""
    waiting = f", {log['waiting']:,} appended here wait" if log["waiting"] else ""
    lines = [
        f"log        {log['state']}, this node is {log['condition']}, term {log['term']}, "
        f"voters {', '.join(log['voters']) or 'none'}",
        f"           {held}, {log['committed']:,} committed{lag}{waiting}",
    ]
    if log["why"]:
        lines.append(f"           {log['why']}")
    if log["applied"] is not None:
        snapshot = "none" if log["snapshot"] is None else f"{log['snapshot']:,}"
        lines.append(f"           {log['applied']:,} applied, newest snapshot {snapshot}")
    if log["sync"]["count"]:
        lines.append(
            f"           fsync {log['fsync']}: {log['sync']['count']:,} syncs, mean "
            f"{log['sync']['mean_ms']:.2f} ms, 99 % up to {log['sync']['p99_ms']:g} ms"
        )
    for name, machine in (log["machines"] or {}).items():
        lines += _machine(name, machine)
    return lines


def _machine(name: str, machine: dict[str, Any]) -> list[str]:
    """A replicated machine: sizes, who holds it, who watches it here."""
    known = machine["versions"]
    told = [
        f"{key} {_told(value)}"
        for key, value in machine.items()
        if key not in ("kind", "versions", "watchers")
    ]
    if machine["watchers"]:
        told.append(f"{machine['watchers']} watch it here")
    line = f"machine    {name + ', ' if name else ''}{machine['kind']}: {', '.join(told)}"
    if len(set(known.values())) <= 1:
        return [line]
    versions = ", ".join(f"{node} {version}" for node, version in known.items())
    return [line, f"           its versions differ: {versions}; upgrade the older ones"]


def _told(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _check(check: dict[str, Any] | None) -> list[str]:
    """What a node with the setting `check` found in its own rows."""
    if check is None:
        return []
    lines = [f"check      {check['violations']:,} violations in {check['rows']:,} rows"]
    if check["violations"]:
        counts = ", ".join(f"{name} {count:,}" for name, count in check["violated"].items())
        lines[0] += f": {counts}"
        lines.append(f"           the first: {check['first']}")
    if check["failure"]:
        lines.append(f"           {check['failure']}")
    return lines


def _seal(seal: dict[str, Any] | None) -> str:
    """With what a node seals its datagrams, and which peers have proven to be alive."""
    if seal is None:
        return "none: whoever reaches the port can be a member; make a key with `roundelay keygen`"
    accepts = [key_id for key_id in seal["accepts"] if key_id != seal["sends_with"]]
    also = f", accepts {accepts[0]} too" if accepts else ""
    proven = ", ".join(seal["proven"]) or "none"
    return f"{seal['cipher']}, key {seal['sends_with']}{also}; proven: {proven}"


def _pairs(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.items() if count) or "none"


def _histogram(name: str, histogram: dict[str, Any]) -> list[str]:
    if not histogram["count"]:
        return [f"{name:<10} nothing to tell yet"]
    lines = [
        f"{name:<10} mean {histogram['mean_ms']:.2f} ms, median up to {histogram['p50_ms']:g} ms, "
        f"99 % up to {histogram['p99_ms']:g} ms"
    ]
    ends = [f"{bound:g} ms" for bound in histogram["bounds_ms"]]
    most = max(histogram["counts"])
    for end, count in zip([*ends, "more"], histogram["counts"], strict=True):
        if count:
            bar = "#" * max(1, round(count * BAR_CHARACTERS / most))
            lines.append(f"  {end:>8} {bar} {count}")
    return lines
