"""`roundelay bench ring --profile`: what one message costs at each layer."""

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from roundelay.cli.bench.ring_tables import Ahead, Printer

if TYPE_CHECKING:
    from roundelay.bench.ring.jobs import Cell
    from roundelay.bench.ring.profile import Costs

FLOOR = "nothing but system calls"


def measure(cell: "Cell", args: argparse.Namespace) -> int:
    from roundelay.bench.ring import profile, runs
    from roundelay.bench.ring.schedule import STARTING_S, Part
    from roundelay.bench.ring.systems import OURS

    out = Printer(args.json)
    unusual = out.settings((OURS,))
    ahead = Ahead(
        [
            Part("profile", 1, STARTING_S + args.seconds),
            Part("costs", args.rounds, STARTING_S + args.seconds),
        ]
    )
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "profile"
        load = ahead.measured(
            "profile", lambda done: done.after(runs.load(OURS, cell, args.seconds, profile=file))
        )
        found = profile.read(file)
    costs = ahead.measured(
        "costs", lambda done: profile.costs(cell, args.seconds, args.rounds, found, done)
    )
    if args.json:
        document = {
            "settings": unusual,
            "profile": dataclasses.asdict(found),
            "costs": dataclasses.asdict(costs),
        }
        print(json.dumps(document, indent=2))
        return 0
    print(f"{cell}: CPU time of one message at all nodes together, {args.rounds} rounds, medians")
    print(table(costs))
    print(f"functions of one node, by their share under a profiler ({load.messages:,} messages;")
    print("calls look dearer there than they are)")
    for s in found.functions:
        print(f"  {s.share:>6.1%}  {s.calls:>9,} calls  {s.name}")
    return 0


def table(costs: "Costs") -> str:
    """The costs as text, the dearest layer first, and the floor below."""
    width = max(len(name) for name in (FLOOR, *(name for name, _ in costs.layers)))
    rows = [
        f"  {name:<{width}}  {us:7.3f} us  {us / costs.us_per_msg:>5.1%}"
        for name, us in costs.layers
    ]
    floor = costs.floor
    rows += [
        f"  {'all':<{width}}  {costs.us_per_msg:7.3f} us",
        f"  {FLOOR:<{width}}  {costs.floor_us:7.3f} us  {costs.floor_us / costs.us_per_msg:>5.1%}",
        f"  that is {floor.datagrams_per_msg:.5f} datagrams of {floor.datagram_bytes:,} B to send "
        f"and receive, {floor.us_per_datagram:.2f} us each,",
        f"  and {floor.tokens_per_msg:.5f} tokens, {floor.us_per_token:.2f} us each; a core that "
        f"did no more would order {1e6 / costs.floor_us:,.0f} messages a second,",
        f"  and at all layers together {1e6 / costs.us_per_msg:,.0f}",
    ]
    return "\n".join(rows)
