"""The `roundelay` command.

One module or package per command, imported when that command runs, so that `--help` is quick and
needs no optional package; `subcommands` says what such a module has. Exit codes: 0 if all is fine,
1 if a property was violated or a run failed, 2 if the command was used wrongly or the environment
lacks something.
"""

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence

from roundelay import __version__
from roundelay.cli.errors import UserError
from roundelay.cli.subcommands import add_commands
from roundelay.trace.extras import EXTRAS, needs

COMMANDS = {
    "demo": "run a group through faults, check its trace, draw what went wrong",
    "node": "run a node of a real group",
    "keygen": "make a key for a group, or change it",
    "key": "tell a running node about its key",
    "send": "send messages through a running node",
    "tail": "show what a running node delivers",
    "status": "show how a running node is",
    "dashboard": "show running groups, their history and the simulator in a browser",
    "doctor": "look whether a node would run well on this machine, and say what to do",
    "kv": "get, set and watch keys that a group keeps",
    "lock": "run a command while holding a lock of a group",
    "journal": "look into the journal of a node: list, verify, print, export, recover",
    "collect": "put the traces of real nodes together",
    "replay": "run a node's recorded inputs through a fresh core",
    "chaos": "relay between real nodes, with faults",
    "sim": "run scenarios in the deterministic simulator",
    "claims": "measure what a paper claims, in the simulator",
    "audit": "run an engine many times, and count the runs that break a promise",
    "sweep": "run many simulations on Spark, as a plan says",
    "ingest": "put traces of many runs into one table, on Spark",
    "watch": "check the traces of running nodes while they are written, on Spark",
    "check": "check a trace against the properties its protocol promises",
    "measure": "measure latencies, load and recovery of the runs in a table, on Spark",
    "report": "put claims, figures, verdicts and diagrams into one HTML file",
    "draw": "draw a trace as a space-time diagram (SVG)",
    "bench": "measure Roundelay next to a peer, in one run",
    "completion": "print what makes a shell complete this command",
}


def main(argv: Sequence[str] | None = None, *, loaded: Callable[[], object] = lambda: None) -> int:
    """Run one command. Every expected failure prints a sentence and no traceback.

    `loaded` is called when the modules of the command are loaded, before it runs."""
    argv = sys.argv[1:] if argv is None else argv
    command = next((word for word in argv if not word.startswith("-")), None)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Names and payloads may hold characters that the terminal's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    try:
        parser = command_line()
        args = parser.parse_args(argv)
        if not hasattr(args, "run"):
            parser.print_help()
            return 2
        loaded()
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except UserError as e:
        print(f"roundelay {command}: {e}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader went away (`| head`). Keep the interpreter from printing an error as it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except ModuleNotFoundError as e:
        if (package := (e.name or "").partition(".")[0]) not in EXTRAS:
            raise
        print(f"roundelay {command}: {needs(package)}", file=sys.stderr)
        return 2
    except OSError as e:
        named = "" if e.filename is None else f"{e.filename}: "
        print(f"roundelay {command}: {named}{e.strerror or e}", file=sys.stderr)
        return 2
    except MemoryError:
        print(f"roundelay {command}: there is not enough memory for this", file=sys.stderr)
        return 2


def command_line() -> argparse.ArgumentParser:
    """The parser of all commands; each command declares its arguments when it is parsed."""
    parser = argparse.ArgumentParser(
        prog="roundelay", description="Totally ordered group communication."
    )
    parser.add_argument("--version", action="version", version=f"roundelay {__version__}")
    add_commands(parser, __name__, COMMANDS)
    return parser
