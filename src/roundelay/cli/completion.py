"""`roundelay completion SHELL`: the script that makes a shell complete this command.

The script is made of the parsers of all commands, so it knows the commands and flags of this
version; a shell that runs it never starts Python. `shtab` knows how each shell wants it.
"""

import argparse
from pathlib import Path

from roundelay.cli.subcommands import every_parser

SHELLS = ("bash", "zsh", "fish")
FILES = ("FILE", "OUT", "PATH", "PLAN", "RECORD", "RECORDING", "SCENARIO", "STORY", "SVG", "TRACE")
DIRECTORIES = ("DIR",)
"""Words for the value of an argument that say that it is a file, or a directory."""
EXAMPLES = """
  bash  roundelay completion bash > ~/.local/share/bash-completion/completions/roundelay
  zsh   roundelay completion zsh > ~/.zfunc/_roundelay
        with `fpath+=(~/.zfunc)` before `compinit` in ~/.zshrc
  fish  roundelay completion fish > ~/.config/fish/completions/roundelay.fish
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help=", ".join(SHELLS))
    parser.epilog = f"A new shell reads it from where it is put:\n{EXAMPLES}"
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def run(args: argparse.Namespace) -> int:
    import shtab

    from roundelay.cli import command_line

    parser = command_line()
    for command in every_parser(parser):
        for action in command._actions:
            if action.metavar in DIRECTORIES:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]
            elif action.metavar in FILES or action.type is Path:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, args.shell), end="")
    return 0
