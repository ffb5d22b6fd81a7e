"""How a node's process and the one that leads it talk: one JSON document per line.

A node says `joining` as it joins, `ready` when all nodes see each other, `view` or `beat` now and
then where its job asks for them, and `result` at the end; or, instead, `split` if it lost sight of
others, or `failure`. It is told `start`, the time to begin at, and `leave`.
"""

import json
import os
import queue
import sys
import threading
from typing import Any


def say(**words: Any) -> None:
    """To the leader."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Orders:
    """What the leader says. If it is gone, so is this process."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self, word: str) -> Any:
        """Block until the leader says this, and return what goes with it."""
        while True:
            words = self._lines.get()
            if word in words:
                return words[word]

    def poll(self, word: str) -> Any:
        """What the leader said with this word, if it did; None if it did not."""
        while not self._lines.empty():
            words = self._lines.get()
            if word in words:
                return words[word]
        return None

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(json.loads(line))
        os._exit(1)
