"""Event loops whose clocks jump: where one would wait for time, no time passes for the test."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class Jumping(selectors.DefaultSelector):
    """Where a loop would wait, its clock jumps: no test is too slow for its timers."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        self.now_s += timeout or 0.0
        return super().select(0)


def jump(story: Coroutine[Any, Any, R]) -> R:
    """Run this on such a loop."""
    clock = Jumping()
    loop = asyncio.SelectorEventLoop(clock)
    loop.time = lambda: clock.now_s  # type: ignore[method-assign]
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(story)
