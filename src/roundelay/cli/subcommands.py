"""Commands whose modules are imported when they are parsed, so that `--help` is quick.

A command is a module or a package with two functions: `configure(parser)` declares its arguments,
and `run(args)` does the work and returns the exit code. A package of further commands, such as
`bench`, has a table `COMMANDS` instead: the name and the summary of each of its modules.
"""

import argparse
import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any


class CommandParser(argparse.ArgumentParser):
    """The parser of one command; it has no arguments until it parses for the first time."""

    def __init__(self, *args: Any, module: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        self._module = module

    def parse_known_args(  # type: ignore[override]
        self, args: Iterable[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        self.load()
        found: tuple[argparse.Namespace, list[str]] = super().parse_known_args(args, namespace)
        return found

    def load(self) -> None:
        """Import the module of this command and declare its arguments, unless that is done."""
        if not self._module:
            return
        module = importlib.import_module(self._module)
        self._module = ""
        if hasattr(module, "COMMANDS"):
            add_commands(self, module.__name__, module.COMMANDS, required=True)
        else:
            module.configure(self)
            self.set_defaults(run=module.run)


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and all parsers below it, with the arguments of each."""
    if isinstance(parser, CommandParser):
        parser.load()
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from every_parser(below)


def add_commands(
    parser: argparse.ArgumentParser,
    package: str,
    commands: Mapping[str, str],
    *,
    required: bool = False,
) -> None:
    """Let `parser` take the name of a module of `package`, of those that `commands` lists.

    `args.run` is then the function that runs the command which the user named. It is missing if
    the user named none and none is required."""
    known = parser.add_subparsers(metavar="COMMAND", required=required, parser_class=CommandParser)
    for name, summary in commands.items():
        about = summary[0].upper() + summary[1:] + "."
        known.add_parser(name, help=summary, description=about, module=f"{package}.{name}")
