"""`--against DIR` of measurements: the same one in another checkout of the project, in turn."""

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundelay.cli.bench.ring_tables import in_words
from roundelay.cli.errors import UserError
from roundelay.cli.progress import Progress

if TYPE_CHECKING:
    from roundelay.bench.against import Comparison, Figures, Outcome, Troubles


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against",
        type=Path,
        metavar="DIR",
        help="another checkout of this project, measured in turn with this one; ratios are taken"
        " within a round of four runs",
    )


def measure(
    args: argparse.Namespace,
    command: str,
    options: Mapping[str, str],
    figures: "Figures",
    troubles: "Troubles" = lambda document: {},
) -> int:
    """Compare both checkouts by `bench COMMAND`; `options` gives the word of each argument that is
    passed on, by its name in `args`. Returns the exit code."""
    from roundelay.bench import against

    arguments = ["bench", command, *words(args, options), "--rounds", "1", "--json"]
    progress = Progress(f"measuring here and in {args.against}")
    try:
        found = against.compare(
            args.against, arguments, figures, args.rounds, progress.update, troubles
        )
    except against.AgainstError as e:
        raise UserError(str(e)) from None
    finally:
        progress.close()
    if args.json:
        document = {
            "against": str(args.against),
            "command": arguments,
            "rounds": args.rounds,
            **dataclasses.asdict(found),
        }
        print(json.dumps(document, indent=2))
    else:
        print(f"here, and in {args.against}: medians of {args.rounds} rounds of four runs")
        print("ratio: what is measured here divided by that, within a round")
        print_figures(found.figures)
        print_sides(found)
    return 0


def words(args: argparse.Namespace, options: Mapping[str, str]) -> list[str]:
    """The command line of the arguments that were given."""
    line: list[str] = []
    for name, option in options.items():
        given: Any = getattr(args, name)
        if given is None or given is False:
            continue
        values: list[Any] = given if isinstance(given, list) else [given]
        sets = values if isinstance(values[0], list) else [values]
        for one in sets:  # An option that may be given several times has several.
            line.append(option)
            if given is not True:
                line += map(str, one)
    return line


def print_figures(found: "Sequence[Comparison]") -> None:
    width = max(len(f.name) for f in found)
    for f in found:
        print(
            f"  {f.name:<{width}}  {_short(f.here):>10}  {_short(f.there):>10}"
            f"  ratio {f.ratio:.2f} ({f.lowest:.2f} to {f.highest:.2f})"
        )


def print_sides(found: "Outcome") -> None:
    """How the runs of each checkout went, and its settings."""
    for name, side in found.sides.items():
        counts = {"runs": side.runs, "failed": len(side.failures), **side.troubles}
        print(f"  {name + ':':<7}{', '.join(f'{count} {what}' for what, count in counts.items())}")
        for words in dict.fromkeys(side.failures):
            print(f"         {words}")
        for system, told in side.settings.items():
            print(f"         settings that are not {system}'s defaults: {in_words(told)}")


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
