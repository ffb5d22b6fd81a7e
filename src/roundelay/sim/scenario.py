"""Scenario files: commands, a line of dashes, and the output of the commands.

    # A comment says what happens in the block below it.
    submit b hello
    ----
    b -> * DATA b:0 'hello'

A block may hold several commands; its output ends at an empty line. `rewrite` replaces the output
by what really happens, and a reviewer reads the difference.
"""

from collections.abc import Callable
from dataclasses import dataclass

DASHES = "----"


@dataclass(frozen=True, slots=True)
class Block:
    """Some commands and the output that the file expects of them."""

    line: int
    """The line number of the first command."""
    commands: tuple[tuple[int, str], ...]
    """The commands, each with its line number."""
    expected: str


class ScenarioError(Exception):
    """A scenario cannot be run; the message says what to write instead."""

    def __init__(self, line: int, sentence: str) -> None:
        super().__init__(f"line {line}: {sentence}")
        self.line = line


def parse(text: str) -> list[Block]:
    """The blocks of a scenario file, without its comments."""
    return [part for part in _parts(text) if isinstance(part, Block)]


def rewrite(text: str, output: Callable[[Block], str]) -> str:
    """The same file with the output that each block really gives."""
    out: list[str] = []
    for part in _parts(text):
        if isinstance(part, Block):
            out += [command for _, command in part.commands]
            out += [DASHES, *output(part).splitlines(), ""]
        else:
            out.append(part)
    return "\n".join(out).rstrip("\n") + "\n"


def _parts(text: str) -> list[Block | str]:
    """The blocks, and the comments and empty lines between them unchanged."""
    parts: list[Block | str] = []
    commands: list[tuple[int, str]] = []
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        stripped = line.strip()
        if stripped == DASHES:
            if not commands:
                raise ScenarioError(number, "dashes without a command before them")
            expected = []
            for _, output in lines:
                if not output.strip():
                    break
                expected.append(output.rstrip())
            parts.append(Block(commands[0][0], tuple(commands), "\n".join(expected)))
            commands = []
        elif not stripped or stripped.startswith("#"):
            if commands:
                raise ScenarioError(
                    commands[-1][0], f"no {DASHES} after this command; put them on the next line"
                )
            parts.append(stripped)
        else:
            commands.append((number, stripped))
    if commands:
        raise ScenarioError(
            commands[-1][0], f"no {DASHES} after this command; put them on the next line"
        )
    return parts
