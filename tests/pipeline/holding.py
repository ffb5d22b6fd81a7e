"""A program that keeps Spark busy until it is killed: `python -m tests.pipeline.holding MASTER`."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOLD_S = 600
"""Longer than any test waits."""


def hold(spark: Any, started: Path) -> None:
    """A job of two tasks; each makes a file below `started` and sleeps."""

    def sleep(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            (started / str(batch.column(0)[0].as_py())).touch()
            time.sleep(HOLD_S)
            yield batch

    spark.range(0, 2, 1, 2).mapInArrow(sleep, "id bigint").count()


if __name__ == "__main__":
    from roundelay.pipeline.session import open_session

    with open_session(sys.argv[1], short=True) as session:
        hold(session, Path(sys.argv[2]))
