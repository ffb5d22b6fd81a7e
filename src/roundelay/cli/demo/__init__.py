"""`roundelay demo`: runs a real group of five nodes on this machine through faults, and checks it.

With `--simulated` it runs two groups in the simulator instead, one of which orders nothing.
"""

import argparse
import importlib.util
import shutil
import time
from pathlib import Path

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


def run(args: argparse.Namespace) -> int:
    if args.output.exists() and not args.output.is_dir():
        raise UserError(f"{args.output} is not a directory; name another place with -o")
    if args.simulated:
        from roundelay.cli.demo import simulated

        simulated.show(args.output)
        return 0
    missing = [name for name in ("pyspark", "plotly") if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"{needs(missing[0], 'spark,report')}; or look at groups in the simulator, with: "
            "roundelay demo --simulated"
        )
    start = time.monotonic()
    trace = _run_nodes(args.output, args.engine)
    code = _judge(trace, args.output, args.master)
    print(f"\nAll of it took {time.monotonic() - start:.0f} s.")
    return code


def _run_nodes(output: Path, engine: str) -> Path:
    """Run five processes through faults; returns the directory of their trace."""
    from roundelay.cli.demo.processes import Nodes

    print(f"1. Five {engine} nodes, each a process of its own, over UDP on this machine.\n")
    with Nodes(output / "nodes", NODES, engine) as nodes:
        began = time.monotonic()

        def say(text: str) -> None:
            print(f"   {time.monotonic() - began:5.1f} s  {text}", flush=True)

        nodes.start(*NODES)
        say(f"a b c d e found each other after {nodes.wait_for_view(*NODES):.1f} s")
        nodes.send_from(*NODES, pause_s=PAUSE_S)
        say("all of them send from now on; every fourth message is safe")
        time.sleep(AFTER_FAULT_S)
        nodes.kill("b")
        say(f"kill -9 of b; the others go on after {nodes.wait_for_view('a', 'c', 'd', 'e'):.2f} s")
        time.sleep(AFTER_FAULT_S)
        nodes.pause("d")
        say(f"d is stopped (SIGSTOP); a c e go on after {nodes.wait_for_view('a', 'c', 'e'):.2f} s")
        time.sleep(AFTER_FAULT_S)
        nodes.resume("d")
        say(f"d goes on; together again after {nodes.wait_for_view('a', 'c', 'd', 'e'):.2f} s")
        time.sleep(AFTER_FAULT_S)
        nodes.network("partition a,c d,e")
        apart = max(nodes.wait_for_view("a", "c"), nodes.wait_for_view("d", "e"))
        say(f"the network parts; a c and d e go on by themselves after {apart:.2f} s")
        time.sleep(AFTER_FAULT_S)
        nodes.network("heal")
        say(f"the network is whole; merged after {nodes.wait_for_view('a', 'c', 'd', 'e'):.2f} s")
        time.sleep(AFTER_FAULT_S)
        nodes.start("b")
        say(f"b starts again; all five after {nodes.wait_for_view(*NODES):.2f} s")
        time.sleep(AFTER_FAULT_S)
        nodes.wait_until_quiet()
        receipts = sum(load.delivered for load in nodes.loads.values())
        say(f"quiet; {receipts} messages were delivered to those who sent them")
        return nodes.collect()


def _judge(trace: Path, output: Path, master: str) -> int:
    """Ingest, check and measure the trace on Spark, and write the report; returns the exit code."""
    from roundelay.check.text import table
    from roundelay.cli.measure import described
    from roundelay.pipeline.errors import PipelineError
    from roundelay.pipeline.examine import examine
    from roundelay.report import write_report

    print("\n2. Their traces, put together, ingested, checked and measured on Spark.\n", flush=True)
    home = output / "table"
    shutil.rmtree(home, ignore_errors=True)
    progress = Progress("on Spark")
    try:
        done = examine([trace], home, master, progress.step)
        progress.close()
        report = write_report(output, output / "report.html").path
    except PipelineError as e:
        raise UserError(str(e)) from None
    for one in done.reports:
        print(table(one.report, one.manifest))
    print("\n".join(described(done.lines)))
    print(f"\ntrace:   {trace} (roundelay check {trace}; roundelay draw {trace} -o run.svg)")
    print(f"table:   {home}")
    print(f"report:  {report} (open it in a browser)")
    if not done.ok:
        print("\nA promise was broken, which must not be: please report this, with the trace.")
        return 1
    print("\nEvery promise held.")
    return 0
