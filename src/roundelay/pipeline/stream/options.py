"""The options of `format("roundelay")`: words that users give, as values.

Paths are made absolute where the query begins: executors may run in another directory.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from roundelay.core.value import value
from roundelay.pipeline.errors import PipelineError

PAYLOADS = ("binary", "utf8", "json", "arrow")
"""How payloads may be read and written."""

PARTITION_ENTRIES = 1_000_000
"""Entries of one task at most, by default. More: a task that fails has more to do again; fewer: the
start of tasks takes longer than their work."""
PARTITION_ENTRIES_MIN = 16_384
"""No range is divided into smaller parts only so that all cores have something to do."""
PATIENCE_S = 30.0
"""How long a query waits, in seconds, for journals that are behind what it has read. Too short: it
fails while a node catches up; too long: it hides that a journal was put back to an older state."""
APPEND_S = 60.0
"""How long the sink tries to append, in seconds. Too short: a view change makes the query fail; too
long: a query hangs on a group that has lost its majority for good."""
ROWS_PER_ENTRY = 1000
"""Rows in an entry that the sink writes as Arrow. More: entries become large; fewer: the schema,
which is in each, takes more room than the rows."""


@value
class SourceOptions:
    """What a source is told."""

    paths: tuple[Path, ...]
    """Journals of nodes of one group, any of which will do."""
    starting: int | None
    """None: the first entry there is; -1: what is committed from now on."""
    ending: int | None
    """None: for ever, or what is committed when a batch query begins."""
    max_per_trigger: int | None
    fail_on_data_loss: bool
    payload: str
    payload_schema: str
    """As DDL; empty if none was given."""
    permissive: bool
    """Whether a payload that cannot be decoded is null."""
    min_partitions: int
    max_per_partition: int
    patience_s: float


def source_options(given: Mapping[str, str]) -> SourceOptions:
    """PipelineError if an option makes no sense, or the journal is missing."""
    payload = _one_of(given, "payload", PAYLOADS)
    schema = given.get("payloadSchema") or ""
    if schema and payload not in ("json", "arrow"):
        raise PipelineError("payloadSchema is for payloads that are json or arrow; give payload")
    return SourceOptions(
        paths=_paths(given),
        starting=_starting(given),
        ending=_ending(given),
        max_per_trigger=_number(given, "maxEntriesPerTrigger", None, 1),
        fail_on_data_loss=_one_of(given, "failOnDataLoss", ("true", "false")) == "true",
        payload=payload,
        payload_schema=schema,
        permissive=_one_of(given, "payloadMode", ("failfast", "permissive")) == "permissive",
        min_partitions=_number(given, "minPartitions", None, 1) or os.cpu_count() or 1,
        max_per_partition=_number(given, "maxEntriesPerPartition", None, 1) or PARTITION_ENTRIES,
        patience_s=_seconds(given, "patienceSeconds", PATIENCE_S),
    )


@value
class SinkOptions:
    """What a sink is told."""

    controls: tuple[Path, ...]
    """Control sockets of nodes on the driver's machine, any of which will do."""
    group: str | None
    node: str | None
    """Which node to look for, if no control socket is named."""
    staging: Path
    checkpoint: Path | None
    """Of the query; None if it is not told, or not on a file system that this machine has."""
    session: str
    """Empty: the id of the query."""
    payload: str
    rows_per_entry: int
    append_s: float


def sink_options(given: Mapping[str, str]) -> SinkOptions:
    """PipelineError if an option makes no sense, or the staging directory is missing."""
    staging = given.get("staging")
    if not staging:
        raise PipelineError(
            "the sink needs the option staging: a directory that the driver and all executors "
            "share, where rows wait to be appended"
        )
    return SinkOptions(
        controls=tuple(map(Path.absolute, map(Path, _list(given.get("control") or "")))),
        group=given.get("group"),
        node=given.get("node"),
        staging=Path(staging).absolute(),
        checkpoint=_local(given.get("checkpointLocation") or ""),
        session=given.get("session") or "",
        payload=_one_of(given, "payload", PAYLOADS),
        rows_per_entry=_number(given, "rowsPerEntry", None, 1) or ROWS_PER_ENTRY,
        append_s=_seconds(given, "timeoutSeconds", APPEND_S),
    )


def _paths(given: Mapping[str, str]) -> tuple[Path, ...]:
    try:
        names = json.loads(given["paths"]) if given.get("paths") else _list(given.get("path") or "")
    except ValueError:
        names = []
    if not names:
        raise PipelineError(
            "no journal is named; load() the directory of a node's journal, or several with commas "
            "in between: any of them is read"
        )
    return tuple(Path(name).absolute() for name in names)


def _local(place: str) -> Path | None:
    """The directory that a path or a URI of Spark names."""
    found = re.fullmatch(r"(?:(\w[\w+.-]*):)?(.+)", place)
    return Path(found[2]).absolute() if found and found[1] in (None, "file") else None


def _list(text: str) -> list[str]:
    return [word for part in text.split(",") if (word := part.strip())]


def _starting(given: Mapping[str, str]) -> int | None:
    text = given.get("startingIndex") or "earliest"
    if text == "latest":
        return -1
    return None if text == "earliest" else _whole("startingIndex", text, "earliest, latest or ")


def _ending(given: Mapping[str, str]) -> int | None:
    text = given.get("endingIndex") or "latest"
    return None if text == "latest" else _whole("endingIndex", text, "latest or ")


def _number(given: Mapping[str, str], name: str, default: int | None, least: int) -> int | None:
    text = given.get(name)
    return default if not text else _whole(name, text, "", least)


def _whole(name: str, text: str, words: str, least: int = 0) -> int:
    if not text.isascii() or not text.isdecimal() or not least <= int(text) < 1 << 63:
        raise PipelineError(f"{name} is {words}a number from {least} on, not {text!r}")
    return int(text)


def _seconds(given: Mapping[str, str], name: str, default: float) -> float:
    text = given.get(name)
    if not text:
        return default
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise PipelineError(f"{name} is a number of seconds, not {text!r}")
    return found


def _one_of(given: Mapping[str, str], name: str, words: tuple[str, ...]) -> str:
    """The first word is the default."""
    found = (given.get(name) or words[0]).lower()
    if found not in words:
        raise PipelineError(f"{name} is {' or '.join(words)}, not {found!r}")
    return found
