"""The page of commands, made of the parser: what `--help` says of each, on one page."""

import argparse
import html
import re
from collections.abc import Iterator
from typing import Any

from roundelay.cli import command_line
from roundelay.cli.subcommands import every_parser

MARK = "<!-- every command -->"
USAGE_COLUMNS = 96


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put all commands where a page has the mark."""
    if MARK not in markdown:
        return markdown
    return markdown.replace(MARK, "\n".join(map(_section, commands())))


def commands() -> Iterator[argparse.ArgumentParser]:
    """The commands that do something, in the order of `--help`."""
    for parser in every_parser(command_line()):
        if not any(isinstance(a, argparse._SubParsersAction) for a in parser._actions):
            yield parser


def _section(parser: argparse.ArgumentParser) -> str:
    formatter = argparse.HelpFormatter(parser.prog, width=USAGE_COLUMNS)
    formatter.add_usage(parser.usage, parser._actions, parser._mutually_exclusive_groups, "")
    arguments = [_argument(formatter, a) for a in parser._actions[1:] if a.help]  # Not --help.
    return "\n\n".join(
        [
            f"## {parser.prog}",
            _text(parser.description or ""),
            f"``` {{.text .usage}}\n{formatter.format_help().strip()}\n```",
            *arguments,
            _epilog(parser),
            "",
        ]
    )


def _argument(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    """One argument as a term of a list, and what it means."""
    names = formatter._format_action_invocation(action)
    return f"<code>{html.escape(names)}</code>\n:   {_text(formatter._expand_help(action))}"


def _epilog(parser: argparse.ArgumentParser) -> str:
    """What is said at the end; lines stay as they are."""
    text = parser.epilog or ""
    return f"```text\n{text.strip()}\n```" if "\n" in text else _text(text)


def _text(text: str) -> str:
    """Help as Markdown: what is between backquotes is code, and nothing else is special."""
    pieces = re.split(r"(`[^`]+`)", " ".join(text.split()))
    return "".join(
        piece if piece.startswith("`") else re.sub(r"([\\*_\[\]<>|#])", r"\\\1", piece)
        for piece in pieces
    )
