"""How long tests wait, and how they wait: in one place for the whole suite.

A limit of time only decides how late a test fails that fails anyway. So limits are generous, and
what ends a wait is the condition, not the clock. On a machine that is slower or busier still, set
ROUNDELAY_TEST_PATIENCE to a factor, like 4; all limits are multiplied by it, those of pytest too.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable

PATIENCE = float(os.environ.get("ROUNDELAY_TEST_PATIENCE", "1"))
"""By how much every limit of the suite is multiplied."""

LIMIT_S = 600 * PATIENCE
"""How long a test waits for one thing before it fails."""

STORY_S = 1200 * PATIENCE
"""How long a whole story may take that runs in one event loop; less than pytest waits for a test,
so that a test that hangs fails by itself and cleans up."""

TEST_S = 2400 * PATIENCE
"""How long pytest waits for one test before it ends the whole run."""


def until(condition: Callable[[], object], what: str, limit_s: float = LIMIT_S) -> None:
    """Poll until the condition holds; fail with `what` was waited for if it never does."""
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {limit_s:g} s"
        time.sleep(0.02)


async def holds(condition: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """The same in an event loop: poll until the condition holds, or raise TimeoutError."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110  # Nobody tells of it.
            await asyncio.sleep(0.005)


def play(story: Callable[[], Awaitable[None]]) -> None:
    """Run a story in an event loop of its own, within its limit."""

    async def limited() -> None:
        async with asyncio.timeout(STORY_S):
            await story()

    asyncio.run(limited())
