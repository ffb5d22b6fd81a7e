"""How the process of a node and the leader talk: one JSON document per line.

A node says `joining` when it joins, `ready` when all nodes are in one view, `view` (with the time
of the view and the pauses in deliveries before it) or `beat` if its job asks for them, and `result`
at the end. Instead of a result it says `split` if nodes suspected
each other, or `failure`. The leader says `start`, with the time to begin, and `leave`.
"""

import json
import os
import queue
import sys
import threading
from typing import Any


def say(**words: Any) -> None:
    """Say this to the leader."""
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


class Orders:
    """What the leader says. The process ends if the leader is gone."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait(self, word: str) -> Any:
        """Block until the leader says `word`, and return what goes with it."""
        while True:
            words = self._lines.get()
            if word in words:
                return words[word]

    def poll(self, word: str) -> Any:
        """What the leader said with `word`; None if it has not said it yet."""
        while not self._lines.empty():
            words = self._lines.get()
            if word in words:
                return words[word]
        return None

    def _listen(self) -> None:
        for line in sys.stdin:
            self._lines.put(json.loads(line))
        os._exit(1)
