"""The relays between nodes that run here, and which group each of them disturbs."""

import contextlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roundelay.runtime.client import Client, ClientError
from roundelay.runtime.relay_control import usual_paths

EVERY_S = 0.5
"""Seconds between two questions to all relays. Too small: they work for the page; too large: what
somebody else told them is seen late."""
ANSWER_S = 2.0
"""Seconds that a relay may take to answer, before it counts as gone."""

FAULTS = {"cuts", "loss", "duplicate", "reorder", "delay_s"}
"""What every relay tells besides its peers."""


class Relays:
    """Asks all relays of this user, or those of some sockets, what they do."""

    def __init__(self, paths: Sequence[Path] = ()) -> None:
        self._paths = tuple(paths)
        self._lock = threading.Lock()
        self._told: dict[Path, dict[str, Any]] = {}
        self._ended = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._ask_all, daemon=True).start()

    def stop(self) -> None:
        self._ended.set()

    def of(self, peers: Mapping[str, object]) -> tuple[Path, dict[str, Any]] | None:
        """The relay of a group whose nodes were started with these peers, by node; None if no
        relay is between them."""
        with self._lock:
            for path, told in self._told.items():
                if any(told["peers"].get(node) == table for node, table in peers.items()):
                    return path, told
        return None

    def command(self, path: Path, line: str) -> dict[str, Any]:
        """Tell a relay what to do; ClientError if it refuses, or is gone."""
        told = self._ask(path, do="command", line=line)
        with self._lock:
            self._told[path] = told
        return told

    def _ask(self, path: Path, **request: Any) -> dict[str, Any]:
        with Client(path) as client:
            client.tell(**request)
            told = client.answer(timeout_s=ANSWER_S)
            if not (isinstance(told.get("peers"), dict) and told.keys() >= FAULTS):
                raise client.foreign()
            return told

    def _ask_all(self) -> None:
        while True:
            told: dict[Path, dict[str, Any]] = {}
            for path in self._paths or self._found():
                with contextlib.suppress(ClientError):  # It has ended, or is none.
                    told[path] = self._ask(path, do="relay")
            with self._lock:
                self._told = told
            if self._ended.wait(EVERY_S):
                return

    def _found(self) -> list[Path]:
        try:
            return usual_paths()
        except ClientError:
            return []
