"""`roundelay demo`: runs a real group of five nodes on this machine through faults, and checks it.

With `--simulated` it runs two groups in the simulator instead, one of which orders nothing. With
`--serve` the five nodes run on, and a page shows them and disturbs them.
"""

import argparse
import importlib.util
import shutil
import time
from pathlib import Path

from roundelay.cli.dashboard import configure_place
from roundelay.cli.engines import engine_in_views
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.trace.extras import needs

NODES = ("a", "b", "c", "d", "e")
PAUSE_S = 0.02
"""How many seconds pass between two messages of one node."""
AFTER_FAULT_S = 1.0
"""How many seconds the group runs on after each fault is noticed."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, default=Path("out/demo"))
    parser.add_argument(
        "--engine",
        type=engine_in_views,
        default="totem",
        metavar="NAME",
        help="(default: totem)",
    )
    parser.add_argument("--master", default="local[2]", help="of Spark (default: local[2])")
    parser.add_argument(
        "--simulated", action="store_true", help="two groups in the simulator; needs no Spark"
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="keep the five nodes running, behind a page on which you disturb them",
    )
    configure_place(parser)


def run(args: argparse.Namespace) -> int:
    if args.output.exists() and not args.output.is_dir():
        raise UserError(f"{args.output} is not a directory; name another place with -o")
    if args.simulated:
        from roundelay.cli.demo import simulated

        simulated.show(args.output)
        return 0
    if args.serve:
        from roundelay.cli.demo import served

        served.play(args, NODES)
        return 0
    missing = [name for name in ("pyspark", "plotly") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"{needs(missing[0], 'spark,report')}; or look at groups in the simulator, with: "
            "roundelay demo --simulated"
        )
    start = time.monotonic()
    trace = _run_nodes(args.output, args.engine)
    held = _judge(trace, args.output, args.master)
    print(f"\nAll of it took {time.monotonic() - start:.0f} s.", end=" ")
    if held:
        print("Every promise held.")
    else:
        print("A promise was broken, which must not be: please report this, with the trace.")
    _show_places(args.output, trace)
    return 0 if held else 1


def _run_nodes(output: Path, engine: str) -> Path:
    """Run five processes through faults; returns the directory of their trace."""
    from roundelay.cli.demo.processes import Nodes

    print(f"1. Five {engine} nodes, each a process of its own, over UDP on this machine.\n")
    with Nodes(output / "nodes", NODES, engine) as nodes:

        def say(text: str, at_s: float | None = None) -> None:
            print(f"   {nodes.clock_s if at_s is None else at_s:5.1f} s  {text}", flush=True)

        def fault(text: str) -> None:
            say(f"fault {nodes.faults}: {text}", nodes.fault_s)

        def together(*names: str) -> str:
            return f"after {nodes.wait_for_view(*names):.2f} s"

        nodes.start(*NODES)
        say("five processes start", 0.0)
        nodes.wait_for_view(*NODES)
        say("a b c d e found each other")
        nodes.send_from(*NODES, pause_s=PAUSE_S)
        say("all of them send from now on; every fourth message is safe")
        time.sleep(AFTER_FAULT_S)
        nodes.kill("b")
        fault("kill -9 of b")
        say(f"the others go on {together('a', 'c', 'd', 'e')}")
        time.sleep(AFTER_FAULT_S)
        nodes.pause("d")
        fault("d is stopped (SIGSTOP)")
        say(f"a c e go on {together('a', 'c', 'e')}")
        time.sleep(AFTER_FAULT_S)
        nodes.resume("d")
        fault("d goes on (SIGCONT)")
        say(f"a c d e are together again {together('a', 'c', 'd', 'e')}")
        time.sleep(AFTER_FAULT_S)
        nodes.partition(("a", "c"), ("d", "e"))
        fault("the network parts between a c and d e")
        apart = max(nodes.wait_for_view("a", "c"), nodes.wait_for_view("d", "e"))
        primary = [names for names in ("a c", "d e") if nodes.primary(names[0])]
        about = f"{primary[0]} are the primary view" if primary else "neither view is primary"
        say(f"a c and d e go on by themselves after {apart:.2f} s; {about}")
        time.sleep(AFTER_FAULT_S)
        nodes.merge()
        fault("the network is whole again")
        say(f"a c d e have merged {together('a', 'c', 'd', 'e')}")
        time.sleep(AFTER_FAULT_S)
        nodes.start("b")
        fault("b starts again")
        say(f"all five are together {together(*NODES)}")
        time.sleep(AFTER_FAULT_S)
        nodes.wait_until_quiet()
        receipts = sum(load.delivered for load in nodes.loads.values())
        say(f"quiet; {receipts} messages were delivered to those who sent them")
        return nodes.collect()


def _judge(trace: Path, output: Path, master: str) -> bool:
    """Ingest, check and measure the trace on Spark, and write the report; whether every promise
    held."""
    from roundelay.check.text import table
    from roundelay.cli.measure import described
    from roundelay.pipeline.errors import PipelineError
    from roundelay.pipeline.examine import examine
    from roundelay.report import write_report

    print("\n2. Their traces, put together, ingested, checked and measured on Spark.\n", flush=True)
    home = _table(output)
    shutil.rmtree(home, ignore_errors=True)
    progress = Progress("on Spark")
    try:
        done = examine([trace], home, master, progress.step)
        progress.say("the report is being written")
        write_report(output, _report(output))
    except PipelineError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    for one in done.reports:
        print(table(one.report, one.manifest))
    print("\n".join(described(done.lines)))
    return done.ok


def _table(output: Path) -> Path:
    return output / "table"


def _report(output: Path) -> Path:
    return output / "report.html"


def _show_places(output: Path, trace: Path) -> None:
    """Say what there is to look at, and with which commands."""
    draw = f"roundelay draw {trace} --around fault:1 -o {output / 'fault-1.svg'}"
    print(f"\nreport:   {_report(output)} (open it in a browser)")
    print(f"picture:  {draw} (the others: fault:2 ...)")
    print(f"verdicts: roundelay check {trace}")
    print(f"measures: roundelay measure {_table(output)}")
    print("play:     roundelay demo --serve (five such nodes, and a page to disturb them)")
