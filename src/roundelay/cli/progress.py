"""Progress on standard error, for anything that takes longer than two seconds."""

import sys
import time

QUIET_S = 2.0
"""Short work shows nothing."""
STEP_S = 5.0
"""Between lines where there is no terminal to redraw one on."""
BAR_CHARS = 20


class Progress:
    """`update(done, total)` as often as you like; `close()` leaves the line clean.

    What is left is estimated from how long the part that is done took. Work whose parts nobody can
    compare is told in words, with `say` and `step`."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = time.monotonic()
        self._shown = self._start
        self._drawn = False
        self._terminal = sys.stderr.isatty()

    def update(self, done: int, total: int, detail: str = "") -> None:
        now = time.monotonic()
        elapsed = now - self._start
        step = 0.2 if self._terminal else STEP_S
        if elapsed < QUIET_S or now - self._shown < step or not total:
            return
        self._shown = now
        left = f"about {elapsed * (total - done) / done:.0f} s to go" if done else "no estimate yet"
        more = f", {detail}" if detail else ""
        bar = f" {_bar(done / total)}" if self._terminal else ""
        self._show(f"{self._label}:{bar} {done * 100 // total}%, {elapsed:.0f} s, {left}{more}")

    def step(self, done: int, total: int) -> None:
        """As `update`, for a few steps of unequal length, of which no share can be told."""
        if done < total:
            self.say(f"step {done + 1} of {total}")

    def say(self, what: str) -> None:
        """What is being done now; nobody knows for how long."""
        elapsed = time.monotonic() - self._start
        if self._terminal or elapsed >= QUIET_S:
            self._show(f"{self._label}: {what}, {elapsed:.0f} s")

    def _show(self, line: str) -> None:
        if self._terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            self._drawn = True
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _bar(share: float) -> str:
    full = round(share * BAR_CHARS)
    return "[" + "#" * full + "." * (BAR_CHARS - full) + "]"
