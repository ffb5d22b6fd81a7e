"""`roundelay completion`: real shells read the script and are asked for candidates."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.patience import LIMIT_S

from roundelay.cli import COMMANDS, bench, main
from roundelay.cli.completion import SHELLS

pytestmark = pytest.mark.process

BASH = r"""
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(( $# - 1 ))
_shtab_roundelay roundelay "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}" 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
"""

FISH = """
source $argv[1]
complete -C "$argv[2..]"
"""

ZSH = r"""
zmodload zsh/zpty
directory=$1; shift
zpty shell zsh -f -i
zpty -w shell "PS1='go> '; stty -echo columns 200; fpath+=($directory)"
zpty -w shell 'autoload -Uz compinit; compinit -D -u; zstyle ":completion:*" verbose no'
zpty -w shell 'bindkey "^X" list-choices; print be""gin'
zpty -r -m shell said '*begin*go> *'
zpty -w -n shell "$*"$'\x18'
zpty -r -m shell said "*$**$**"
print -r -- "$said"
"""
"""Types words into a zsh that talks with a terminal, and lets it list what could follow: below
what was typed, which it then shows again."""


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys) -> Path:
    shell = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    assert main(["completion", shell]) == 0
    path = tmp_path / f"completion.{shell}"
    path.write_text(capsys.readouterr().out)
    return path


def ask(script: Path, program: str, *words: str) -> list[str]:
    """What the shell of this script would offer for the last of these words."""
    shell = script.suffix[1:]
    command = [shell, "-c", program, *(["-"] if shell != "fish" else []), str(script), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, cwd=script.parent
    )
    assert done.returncode == 0, done.stderr
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("script", SHELLS, indirect=True)
def test_the_shell_understands_the_script(script):
    shell = script.suffix[1:]
    done = subprocess.run(
        [shell, "-n", script], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("script", "program"), [("bash", BASH), ("fish", FISH)], indirect=["script"]
)
def test_commands_flags_choices_and_files_are_offered(script, program):
    assert set(ask(script, program, "roundelay", "")) >= set(COMMANDS)
    assert set(ask(script, program, "roundelay", "bench", "")) >= set(bench.COMMANDS)
    assert ask(script, program, "roundelay", "do") == ["doctor"]
    assert "--profile" in ask(script, program, "roundelay", "bench", "ring", "--")
    services = ask(script, program, "roundelay", "bench", "ring", "--service", "")
    assert set(services) >= {"agreed", "safe"}
    (script.parent / "a.toml").touch()
    assert "a.toml" in ask(script, program, "roundelay", "node", "a.")


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_commands_and_flags_are_offered_on_a_terminal(script):
    shutil.copy(script, script.parent / "_roundelay")

    def offered(*words: str) -> list[str]:
        done = subprocess.run(
            ["zsh", "-f", "-c", ZSH, "-", str(script.parent), *words],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", done.stdout)
        typed = " ".join(words)
        return re.findall(r"[\w-]+", shown.partition(typed)[2].partition(typed)[0])

    assert offered("roundelay", "do") == ["doctor"]
    assert offered("roundelay", "bench", "ring", "--se") == [
        "--sealed",
        "--seconds",
        "--senders",
        "--service",
    ]


def test_the_script_needs_no_python_that_is_started_for_it(capsys):
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        assert sys.executable not in capsys.readouterr().out
