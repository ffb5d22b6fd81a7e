"""Terminals in which a page of the documents is followed literally.

A block of a page names the file to be saved or the terminal to be used; without a name there is one
terminal. Lines after a prompt, `$` or `>`, are typed. The others must come back, character by
character, but for what differs from run to run: numbers of processes, ports, numbers of three
digits and more, and what is `...` on the page.
"""

import os
import re
import select
import subprocess
import sys
from pathlib import Path

from tests.patience import until
from tests.process.test_examples import base_port

ROOT = Path(__file__).parents[2]
KILLED = "Killed"
"""What the shell says after the prompt of a program that was killed: nobody types it."""
PROMPTS = ("$ ", "> ")
ERASED = re.compile(r"[^\n]*\x1b\[K")
"""A line that shows progress, and was wiped away."""


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Of each block that is to be followed: its kind, its file or terminal, and its text."""
    found = re.findall(
        r'^```(console|[a-z]+(?= title="))(?: title="([^"]+)")?\n(.*?)^```$',
        page.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    return [(kind, name, text) for kind, name, text in found]


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, environment: dict[str, str], home: Path) -> None:
        self._master, inner = os.openpty()
        self.screen = ""
        """All that it has ever shown."""
        self._unread = ""
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"],
            stdin=inner,
            stdout=inner,
            stderr=inner,
            cwd=home,
            env=environment,
        )
        os.close(inner)

    def shows(self, text: str) -> None:
        """Wait until this is what comes next on the screen."""
        until(lambda: len(self.unread()) >= len(text) or not text.startswith(self._unread), text)
        assert self._unread.startswith(text), f"instead of {text!r} there is {self._unread!r}"
        self._unread = self._unread.removeprefix(text)

    def skip_to(self, text: str) -> None:
        """Wait until something begins like this, and skip the lines before."""
        while not self._begins(text):
            self.line()

    def _begins(self, text: str) -> bool:
        """Whether the present line begins like this; waits until that can be told."""
        until(lambda: len(self.unread()) >= len(text) or "\n" in self._unread, text)
        return self._unread.startswith(text)

    def line(self) -> str:
        """The next line on the screen."""
        until(lambda: "\n" in self.unread(), "a line on the screen")
        line, _, self._unread = self._unread.partition("\n")
        return line

    def type(self, line: str) -> None:
        os.write(self._master, f"{line}\n".encode())
        self.shows(f"{line}\n")  # As the terminal echoes it.

    def asks(self) -> None:
        """Wait until it waits for somebody to type."""
        until(lambda: self.unread() in ("$ ", "> "), "a prompt")

    def unread(self) -> str:
        """What the screen shows after all that was expected so far."""
        ready = select.poll()  # `select` takes no numbers above 1023.
        ready.register(self._master, select.POLLIN)
        while any(event & select.POLLIN for _, event in ready.poll(0)):
            shown = os.read(self._master, 65536).decode().replace("\r", "")
            self.screen += shown
            self._unread = ERASED.sub("", self._unread + shown)
        return self._unread

    def close(self) -> None:
        """End the shell and all that it started."""
        os.close(self._master)
        self.process.wait()


class Terminals:
    """All terminals of a page, and what differs from it."""

    def __init__(self, home: Path, work: Path, environment: dict[str, str]) -> None:
        self._work = work
        self._open: dict[str, Terminal] = {}
        self._processes: dict[str, str] = {}
        """The numbers of processes on the page, and the real ones."""
        first = base_port()
        self._ports = {str(5401 + i): str(first + i) for i in range(3)}
        self._environment = {
            "HOME": str(home),
            "LC_ALL": "C",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PS1": "$ ",
            "TERM": "dumb",
            "XDG_RUNTIME_DIR": str(home),
            **environment,
        }

    def __enter__(self) -> "Terminals":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for name, terminal in self._open.items():
            if kind is not None:  # Shown with the failure.
                sys.stdout.write(f"{name or 'terminal'}:\n{terminal.screen}\n")
            terminal.close()

    def follow(self, page: Path, files: Path) -> None:
        """All blocks of a page; what is to be saved goes into `files`."""
        for kind, name, text in blocks(page):
            if kind == "console":
                self._type(name, text)
            else:
                (files / name).write_text(self._real(text))
        for terminal in self._open.values():
            terminal.shows("$ ")
            assert not terminal.unread(), "something is not on the page"

    def _type(self, name: str, block: str) -> None:
        """Type the lines after a prompt, and compare what comes back."""
        if name not in self._open:
            self._open[name] = Terminal(self._environment, self._work)
        terminal = self._open[name]
        lines = [f"{line} " if line == ">" else line for line in block.splitlines()]
        for line, following in zip(lines, [*lines[1:], "$ "], strict=True):
            if line.startswith(PROMPTS) and line[2:] != KILLED:
                terminal.shows(line[:2])
                if line.startswith("$ kill "):
                    self._wait_for_prompts(terminal)
                terminal.type(self._real(line[2:]))
            elif line == "...":
                begins = re.split(r"\d{3}|\.\.\.", following)[0]
                terminal.skip_to(begins[:2] if following.startswith(PROMPTS) else begins)
            else:
                self._compare(line, terminal.line())

    def _wait_for_prompts(self, typing: Terminal) -> None:
        """People kill nothing before the other terminals have said all."""
        for terminal in self._open.values():
            if terminal is not typing:
                terminal.asks()

    def _compare(self, line: str, shown: str) -> None:
        """Whether a line is that of the page; learns the numbers of processes."""
        if known := re.fullmatch(r"(process |\[\d\] )(\d+)", line):
            number = re.fullmatch(re.escape(known[1]) + r"(\d+)", shown)
            assert number, f"instead of {line!r} there is {shown!r}"
            assert known[2] not in self._processes, "two processes of the page have one number"
            self._processes[known[2]] = number[1]
        else:
            pieces = [usual(piece) for piece in line.split("...")]
            pattern = ".*".join(map(re.escape, pieces))
            assert re.fullmatch(pattern, usual(shown)), f"instead of {line!r} there is {shown!r}"

    def _real(self, text: str) -> str:
        """What is on the page, with the ports and processes of this run."""
        numbers = self._ports | self._processes
        return re.sub(r"\b\d{4}\b", lambda found: numbers.get(found[0], found[0]), text)


def usual(line: str) -> str:
    """A line without the numbers that differ from run to run."""
    return re.sub(r"\b[0-9a-f]{16}\b|\d{3,}", "0", line)
