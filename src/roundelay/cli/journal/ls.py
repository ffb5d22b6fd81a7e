"""`roundelay journal ls PATH`: what a journal holds."""

import argparse
import json
import time
from typing import Any

from roundelay.cli.connection import printable
from roundelay.cli.journal.common import add_path, sentences
from roundelay.journal.inspect import Overview, journals, overview

TERMS_SHOWN = 10
"""The newest terms that are printed; `--json` has all that are kept."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    with sentences():
        found = [overview(path) for path in journals(args.path)]
    if args.json:
        print(json.dumps([_document(view) for view in found]))
        return 0
    for view in found:
        for line in _lines(view):
            print(printable(line))
    return 0


def _lines(view: Overview) -> list[str]:
    kept = view.kept
    state = "in use by a running node" if view.running else "not in use"
    lines = [
        f"{view.path}: node {view.node or '?'} of group {view.group or '?'}, {state}",
        f"  log {kept.log.hex() or 'none yet'}, generation {kept.generation}",
        f"  entries {kept.first} to {view.place.length - 1}, committed below {view.committed}"
        if view.place.length > kept.first
        else f"  no entries from {kept.first} on",
        f"  policy {view.policy or 'unknown'}, "
        + ("closed in order" if view.clean else "not closed in order"),
        "  able" if view.able else f"  not able: {view.why}",
    ]
    if view.damage is not None:
        lines.append(f"  {view.damage}")
    for mark in kept.marks[-TERMS_SHOWN:]:
        lossy = ", after a loss" if mark.lossy else ""
        lines.append(f"  term {mark.term} from {mark.base}, voters {', '.join(mark.voters)}{lossy}")
    for segment in view.segments:
        begun = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(segment.wall_us / 1e6))
        lines.append(f"  {segment.path.name} {segment.bytes} bytes, begun {begun} UTC")
    lines += [f"  snapshot at {index}" for index in view.snapshots]
    lines += [f"  set aside: {path}" for path in view.aside]
    return lines


def _document(view: Overview) -> dict[str, Any]:
    kept = view.kept
    return {
        "path": str(view.path),
        "group": view.group,
        "node": view.node,
        "running": view.running,
        "log": kept.log.hex(),
        "generation": kept.generation,
        "first": kept.first,
        "length": view.place.length,
        "committed": view.committed,
        "term": str(view.place.term) if kept.marks else None,
        "able": view.able,
        "why": view.why,
        "policy": view.policy,
        "clean": view.clean,
        "damage": None if view.damage is None else str(view.damage),
        "terms": [
            {
                "term": str(mark.term),
                "base": mark.base,
                "voters": list(mark.voters),
                "generation": mark.generation,
                "lossy": mark.lossy,
            }
            for mark in kept.marks
        ],
        "segments": [
            {
                "file": segment.path.name,
                "bytes": segment.bytes,
                "first": segment.first,
                "begun_us": segment.wall_us,
            }
            for segment in view.segments
        ],
        "snapshots": list(view.snapshots),
        "aside": [str(path) for path in view.aside],
    }
