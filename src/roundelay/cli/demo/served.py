"""The demo to play with: five real nodes behind a relay, and the dashboard in front of them."""

import argparse
from collections.abc import Sequence

from roundelay.cli import dashboard
from roundelay.cli.demo.processes import GROUP, LOADS, Nodes
from roundelay.web.dashboard import Dashboard
from roundelay.web.play import Own


def play(args: argparse.Namespace, names: Sequence[str]) -> None:
    """Run the nodes until Ctrl-C."""
    print(f"Five {args.engine} nodes start, each a process of its own, behind a relay.", flush=True)
    with Nodes(args.output / "served", names, args.engine, traced=False) as nodes:
        nodes.start(*names)
        nodes.wait_for_view(*names)
        nodes.send_from(*names, pause_s=LOADS["gentle"] or 0.0)

        def load(name: str) -> None:
            for one in nodes.loads.values():
                one.pause_s = LOADS[name]

        page = Dashboard(
            paths=[nodes.control(name) for name in names],
            relays=[nodes.relay_control],
            allow_faults=True,
            own=Own(GROUP, restart=nodes.restart, load=load),
        )
        about = (
            "It shows the five nodes, and lets you disturb them: see Play. Ctrl-C ends them all."
        )
        dashboard.serve(args, page, about)
