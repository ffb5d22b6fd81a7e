"""`roundelay chaos` as a process of its own, for programs that disturb the nodes they start."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from roundelay.core.ids import NodeId


class RelayError(Exception):
    """The relay refused a command, or is gone; its message is a sentence."""


class RelayProcess:
    """A relay between nodes at these addresses; it ends with `close`."""

    def __init__(self, addresses: Mapping[NodeId, str], control: Path | None = None) -> None:
        """`control` is its control socket, if not the usual one."""
        peers = [f"--peer={node}={address}" for node, address in addresses.items()]
        where = [] if control is None else [f"--control={control}"]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "roundelay", "chaos", *peers, *where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._tell, self._answers = self._process.stdin, self._process.stdout
        self.peers: dict[NodeId, dict[NodeId, str]] = json.loads(self._answers.readline())
        """The setting `peers` for each node."""

    def command(self, line: str) -> str:
        """Give a command and return the answer, or raise RelayError."""
        try:
            self._tell.write(line + "\n")
            self._tell.flush()
        except BrokenPipeError:
            raise RelayError(f"the relay is gone; it cannot do {line!r}") from None
        answer = self._answers.readline()
        if not answer or answer.startswith("error"):
            raise RelayError(f"the relay said {answer.strip()!r} to {line!r}")
        return answer.strip()

    def close(self) -> None:
        self._process.communicate()
