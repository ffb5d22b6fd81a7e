"""Progress on standard error, for anything that takes longer than two seconds."""

import sys
import time

QUIET_S = 2.0
"""How many seconds a command runs before it shows progress; a shorter command shows none."""
STEP_S = 5.0
"""How many seconds pass between two lines of progress if standard error is no terminal."""
REDRAW_S = 0.2
"""How many seconds pass between two updates of the line on a terminal."""
BAR_CHARS = 20
"""The width of the progress bar, in characters."""


class Progress:
    """`update(done, total)` as often as you like; `close()` leaves the line clean.

    The time left is estimated from the time that the finished part took. `say` and `step` are for
    work whose parts cannot be compared."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._start = time.monotonic()
        self._shown = self._start
        self._drawn = False
        self._terminal = sys.stderr.isatty()

    def update(self, done: int, total: int, detail: str = "") -> None:
        now = time.monotonic()
        elapsed = now - self._start
        step = REDRAW_S if self._terminal else STEP_S
        if elapsed < QUIET_S or now - self._shown < step or not total:
            return
        self._shown = now
        left = f"about {elapsed * (total - done) / done:.0f} s to go" if done else "no estimate yet"
        more = f", {detail}" if detail else ""
        bar = f" {_bar(done / total)}" if self._terminal else ""
        self._show(f"{self._label}:{bar} {done * 100 // total}%, {elapsed:.0f} s, {left}{more}")

    def forecast(self, share: float, left_s: float, detail: str = "") -> None:
        """Show which share of the time is over and how much is left, where the caller knows."""
        elapsed = time.monotonic() - self._start
        step = REDRAW_S if self._terminal else STEP_S
        if elapsed < QUIET_S or time.monotonic() - self._shown < step:
            return
        self._shown = time.monotonic()
        more = f", {detail}" if detail else ""
        bar = f" {_bar(share)}" if self._terminal else ""
        self._show(
            f"{self._label}:{bar} {share:.0%}, {elapsed:.0f} s, about {left_s:.0f} s to go{more}"
        )

    def step(self, done: int, total: int) -> None:
        """Show that `done` of `total` steps of unequal length are done."""
        if done < total:
            self.say(f"step {done + 1} of {total}")

    def say(self, what: str) -> None:
        """Show what is being done now, without an estimate."""
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
            self._drawn = False


def _bar(share: float) -> str:
    full = round(share * BAR_CHARS)
    return "[" + "#" * full + "." * (BAR_CHARS - full) + "]"
