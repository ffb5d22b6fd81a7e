"""`roundelay journal recover PATH --force --survivors a,b`: goes on after a majority was lost."""

import argparse
import sys

from roundelay.cli.connection import printable
from roundelay.cli.errors import UserError
from roundelay.cli.journal.common import add_path, one_journal, sentences
from roundelay.core.ids import ViewId, is_name
from roundelay.journal.inspect import Overview, overview


def configure(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument(
        "--force", action="store_true", help="required: what was confirmed may be lost by this"
    )
    parser.add_argument(
        "--survivors",
        metavar="NODES",
        required=True,
        help="the nodes that go on, with commas between them; they must all be stopped",
    )
    parser.add_argument(
        "--follow",
        metavar="VIEW",
        help="at all survivors but the first: the view that the command printed there",
    )
    parser.add_argument("--log", metavar="ID", help="the id of the log, instead of typing it in")


def run(args: argparse.Namespace) -> int:
    survivors = _survivors(args.survivors)
    follow = None if args.follow is None else _view(args.follow)
    with sentences():
        path = one_journal(args.path)
        view = overview(path)
        if view.running:
            raise UserError(f"{path} is in use by a running node; stop all nodes of the group")
        if not view.kept.log:
            raise UserError(f"{path} is empty; recover with the journal of another survivor")
        _explain(view, survivors, following=follow is not None)
        if not args.force:
            raise UserError("nothing was changed; if this is what you want, add --force")
        _confirm(args, view)
        from roundelay.journal.generation import begin
        from roundelay.journal.generation import follow as join

        if follow is not None:
            join(path, survivors, follow)
            print(
                f"{view.node} follows view {follow}; start it together with {follow.rep}, without "
                "which it does not go on"
            )
            return 0
        mark = begin(path, survivors)
    others = [node for node in survivors if node != view.node]
    print(f"generation {mark.generation} begins at {mark.base} with view {mark.term}")
    for node in others:
        print(
            f"now run at {node}: roundelay journal recover PATH --force "
            f"--survivors {','.join(survivors)} --follow {mark.term}"
        )
    print(f"then start the survivors; the others do not go on before they have met {view.node}")
    return 0


def _survivors(text: str) -> tuple[str, ...]:
    names = tuple(sorted({name.strip() for name in text.split(",")}))
    for name in names:
        if not is_name(name):
            raise UserError(f"--survivors {text!r}: {name!r} is no name of a node")
    return names


def _view(text: str) -> ViewId:
    seq, _, rep = text.partition(".")
    if not seq.isdecimal() or not is_name(rep):
        raise UserError(f"--follow {text!r} is no view; copy it from the first survivor's output")
    return ViewId(int(seq), rep)


def _explain(view: Overview, survivors: tuple[str, ...], *, following: bool) -> None:
    """Say what cannot be known."""
    voters = view.kept.marks[-1].voters
    gone = [node for node in voters if node not in survivors]
    known = f"its log ends at {view.place.length} in term {view.place.term}"
    print(printable(f"{view.path}: node {view.node}; {known}"))
    if not following:
        print(
            "this must be the best log of the survivors: the one of the greatest generation, then "
            "term, then length, as `roundelay journal ls` tells at each"
        )
    print(f"entries that were confirmed from index {view.place.length} on may be gone")
    if gone:
        print(
            printable(
                f"nodes {', '.join(gone)} must never be started with their old journals except to "
                "fetch them anew"
            )
        )


def _confirm(args: argparse.Namespace, view: Overview) -> None:
    expected = view.kept.log.hex()
    typed = args.log
    if typed is None:
        if not sys.stdin.isatty():
            raise UserError(
                f"nothing was changed: there is no terminal to ask at; add --log {expected} if "
                "this is what you want"
            )
        typed = input(f"type the id of the log, {expected}, to go on: ")
    if typed.strip().lower() != expected:
        raise UserError(f"nothing was changed: the id of the log is {expected}")
