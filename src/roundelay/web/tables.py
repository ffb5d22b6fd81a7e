"""The part Table: verdicts and measures that the pipeline wrote into directories.

`roundelay check` and `measure` write them beside an ingested table, and `roundelay watch` anew
every two seconds while nodes run. Only pyarrow is needed to read them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from roundelay.check import PROPERTIES
from roundelay.web.asked import AskedWrongError, number

VERDICTS, MEASURES = "verdicts.parquet", "measures.parquet"
ROWS_MAX = 4000
"""Rows of one file that the page gets. Of verdicts, what is broken comes first; of measures, the
last ones are kept. Fewer: large sweeps are cut; more: the browser takes seconds to show them."""
FILE_BYTES_MAX = 64 * 1024 * 1024
"""The largest file that is read. Larger: reading takes the memory of the command."""
ORDER = ("violated", "outside-envelope", "inconclusive", "vacuous", "ok")
ABOUT: Mapping[str, str] = {
    "delivery": "from the moment a message is submitted until a node delivers it; a value for "
    "each node",
    "own": "from the moment a message is submitted until its own sender delivers it",
    "order": "from the moment a message is sent until its place in the order is known",
    "stability": "from the moment a message is submitted until the last node knows that all "
    "have it",
    "outage": "from a node's last delivery in a view until its first in the next one",
    "view change": "from the first crash, fault or suspicion until a node's next view",
    "recovery": "from the moment a node recovers until its first view",
    "frames": "frames sent for each message delivered",
    "bytes": "bytes sent for each byte delivered",
    "fairness of ordering": "1 if all nodes order the same amount, 1/n if one orders everything",
    "fairness of sending": "1 if all nodes send the same amount, 1/n if one sends everything",
}
"""What each measure is."""


class Tables:
    """The directories that the command was given."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = tuple(directories)

    def routes(self) -> list[Route]:
        return [Route("/api/tables", self._all), Route("/api/table", self._one)]

    async def _all(self, request: Request) -> Response:
        return JSONResponse({"tables": [str(directory) for directory in self._directories]})

    async def _one(self, request: Request) -> Response:
        asked = number(request, "number", 0)
        if asked >= len(self._directories):
            raise AskedWrongError("there is no such table")
        directory = self._directories[asked]
        version = await run_in_threadpool(_version, directory)
        if request.query_params.get("seen") == version:
            return JSONResponse({"version": version})
        told = await run_in_threadpool(read, directory)
        return JSONResponse({"version": version, **told})


def read(directory: Path) -> dict[str, Any]:
    """What the page shows of a directory."""
    verdicts, measures = _rows(directory / VERDICTS), _rows(directory / MEASURES)
    verdicts.sort(key=lambda row: (_rank(row), str(row.get("run")), str(row.get("property"))))
    counts = dict.fromkeys(ORDER, 0)
    for row in verdicts:
        counts[str(row.get("verdict"))] = counts.get(str(row.get("verdict")), 0) + 1
    live = bool(measures) and "batch" in measures[0]
    return {
        "counts": counts,
        "left_out": max(0, len(verdicts) - ROWS_MAX),
        "verdicts": [_verdict(row) for row in verdicts[:ROWS_MAX]],
        "measures": [_measure(row, live=live) for row in measures[-ROWS_MAX:]],
        "live": live,
    }


def _verdict(row: Mapping[str, Any]) -> dict[str, Any]:
    known = PROPERTIES.get(str(row.get("property")))
    return {
        "run": row.get("run"),
        "property": row.get("property"),
        "title": "" if known is None else known.title,
        "verdict": row.get("verdict"),
        "standing": row.get("standing"),
        "instances": row.get("instances"),
        "reason": row.get("reason") or "",
        "witness": list(row.get("witness") or ())[:20],
    }


def _measure(row: Mapping[str, Any], *, live: bool) -> dict[str, Any]:
    told = {key: value for key, value in row.items() if value == value}  # No NaN in JSON.
    return told if live else told | {"about": ABOUT.get(str(row.get("measure")), "")}


def _rank(row: Mapping[str, Any]) -> int:
    verdict = str(row.get("verdict"))
    return ORDER.index(verdict) if verdict in ORDER else 0


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; none if it is not there. A file that is being replaced is whole: writers
    move it into place."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        if not path.is_file():
            return []
        if path.stat().st_size > FILE_BYTES_MAX:
            raise AskedWrongError(f"{path.name} is larger than {FILE_BYTES_MAX >> 20} MB")
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    except (OSError, pa.ArrowException) as e:
        said = str(e).partition("\n")[0][:160]
        raise AskedWrongError(f"{path.name} cannot be read ({said}); write it anew") from None


def _version(directory: Path) -> str:
    """Changes when a file does."""
    times = []
    for name in (VERDICTS, MEASURES):
        try:
            found = (directory / name).stat()
            times.append(f"{found.st_mtime_ns}-{found.st_size}")
        except OSError:
            times.append("none")
    return ".".join(times)
