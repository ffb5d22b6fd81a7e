"""`roundelay claims P`: the claims of P's paper, next to what the simulator gives."""

import argparse
import importlib
import json
import sys
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress
from roundelay.experiments import claims


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("protocol", help=f"whose paper: {', '.join(claims.MODULES)}")
    parser.add_argument("--full", action="store_true", help="longer runs and more seeds")
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds of every run")
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write a CSV file there")


def run(args: argparse.Namespace) -> int:
    if args.protocol not in claims.MODULES:
        raise UserError(
            f"no claims are known of {args.protocol!r}; there are those of:"
            f" {', '.join(claims.MODULES)}"
        )
    if args.seeds is not None and args.seeds < 1:
        raise UserError(f"--seeds {args.seeds} measures nothing; give at least 1")
    paper = importlib.import_module(claims.MODULES[args.protocol])
    seeds = args.seeds or (paper.FULL if args.full else paper.QUICK).seeds
    progress = Progress(f"measuring {args.protocol}")
    found = paper.measure(full=args.full, seeds=seeds, report=progress.update)
    progress.close()
    if args.json:
        document = {
            "protocol": args.protocol,
            "full": args.full,
            "seeds": seeds,
            "claims": claims.documents(found),
        }
        print(json.dumps(document, indent=2))
    else:
        print(claims.table(found))
        print(f"\n{seeds} seeds; all figures are the simulator's, under the costs it assumes")
    if args.output is not None:
        _write(args.output / f"{args.protocol}-claims.csv", claims.to_csv(found))
    return 0


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as e:
        raise UserError(f"cannot write {path}: {e.strerror}") from None
    print(f"table: {path}", file=sys.stderr)
