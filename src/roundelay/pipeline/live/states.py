"""What `watch` knows after each batch, on disk: a directory for each of the latest batches.

    STATE/NUMBER/state.json        what is known
    STATE/NUMBER/PLACE.arrow       rows of the run at that place of the list that wait for others

Spark may do the last batch again after a crash, so the state before it is kept too.
"""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from roundelay.pipeline.errors import PipelineError

KEPT = 3
"""States that are kept. Fewer than two, and a batch that is done again could not be."""


def save(home: Path, number: int, document: Mapping[str, Any], waiting: list[Any]) -> None:
    """Write the state after a batch, with a table or None for each run."""
    place, beside = home / str(number), home / f"{number}.new"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    (beside / "state.json").write_text(json.dumps(document))
    for index, table in enumerate(waiting):
        if table is not None:
            path = str(beside / f"{index}.arrow")
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    shutil.rmtree(place, ignore_errors=True)  # Of the same batch, done before.
    beside.rename(place)
    for old in home.iterdir():
        if old.name.isdecimal() and int(old.name) <= number - KEPT:
            shutil.rmtree(old, ignore_errors=True)


def load(home: Path, number: int) -> tuple[dict[str, Any], list[Any]]:
    """The state after a batch; PipelineError if it is not there."""
    place = home / str(number)
    try:
        document: dict[str, Any] = json.loads((place / "state.json").read_text())
        return document, [_waiting(place / f"{i}.arrow") for i in range(len(document["runs"]))]
    except (OSError, ValueError, KeyError, pa.ArrowException):
        raise PipelineError(
            f"the state after batch {number} is not in {home}, and the checkpoint goes on from "
            "there; begin again with a new output directory"
        ) from None


def _waiting(path: Path) -> Any:
    if not path.is_file():
        return None
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()
