"""One Spark session for the tests of this directory, and traces to put into tables."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.live_traces import LiveNodes

from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row
from roundelay.trace.writer import Format, Writer


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    pytest.importorskip("pyspark")
    from roundelay.pipeline import scratch, session

    spark = session.start("local[2]", memory="1g", short=True)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark
    session.stop(spark)
    scratch.clear()  # A worker of a test run may end without its last rites.


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Callable[..., LiveNodes]]:
    """Makes nodes that write their traces while a test runs."""
    made: list[LiveNodes] = []

    def make(*args: Any) -> LiveNodes:
        made.append(LiveNodes(*args))
        return made[-1]

    yield make
    for nodes in made:
        nodes.close()


def write(
    directory: Path, manifest: Manifest, rows: list[Row], format: Format = "auto"
) -> Manifest:
    """A trace on disk."""
    with Writer(directory, manifest, format=format) as writer:
        for row in rows:
            writer.append(row)
    return writer.manifest


def write_text(directory: Path, text: str, run: str, **fields: object) -> Manifest:
    """A trace in the mini-language, as files."""
    manifest, rows = mini.parse(text, run)
    return write(directory, replace(manifest, **fields), rows)  # type: ignore[arg-type]
