"""What happened to a node lately, in the words of its log, for those who watch it."""

import time
from collections import deque
from typing import Any

HAPPENED_MAX = 500
"""Sentences that are kept. Too small: a watcher that looks in seldom misses some; too large:
memory."""


class Happened:
    """What happened to a node, newest last."""

    def __init__(self) -> None:
        self.number = 0
        """How many there were."""
        self._kept: deque[dict[str, Any]] = deque(maxlen=HAPPENED_MAX)

    def add(self, kind: str, sentence: str, **more: Any) -> None:
        told = {"kind": kind, "sentence": sentence, "t_ns": time.monotonic_ns(), **more}
        self._kept.append({"number": self.number, **told})
        self.number += 1

    def since(self, number: int) -> list[dict[str, Any]]:
        """Those from this number on that are still kept."""
        return [one for one in self._kept if one["number"] >= number]
