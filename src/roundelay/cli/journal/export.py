"""`roundelay journal export PATH -o DIR`: committed entries as a file for other programs."""

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from roundelay.cli.errors import UserError
from roundelay.cli.journal.common import (
    add_path,
    add_range,
    documents,
    items,
    last_index,
    one_journal,
    sentences,
)
from roundelay.cli.progress import Progress
from roundelay.journal.reader import Batch, Item, Reader
from roundelay.trace.extras import needs

ROWS_PER_GROUP = 65_536
"""Rows that are held in memory, and that lie together in a Parquet file."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_path(parser)
    parser.add_argument(
        "-o", "--output", metavar="DIR", type=Path, required=True, help="made if it is missing"
    )
    parser.add_argument(
        "--format", choices=("parquet", "jsonl"), default="parquet", help="default: parquet"
    )
    add_range(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document, nothing else")


def run(args: argparse.Namespace) -> int:
    output: Path = args.output
    target = output / f"entries.{args.format}"
    beside = output / f".entries.{args.format}.new"
    progress = Progress("exporting")
    try:
        with sentences():
            reader = Reader(one_journal(args.path))
            found = _watched(items(args, reader), reader, args, progress)
            output.mkdir(parents=True, exist_ok=True)
            rows = _jsonl(beside, found) if args.format == "jsonl" else _parquet(beside, found)
            os.replace(beside, target)
    except ImportError as e:
        raise UserError(f"{needs(str(e.name))}; or write text with --format jsonl") from None
    finally:
        progress.close()
        beside.unlink(missing_ok=True)
    if args.json:
        print(json.dumps({"file": str(target), "entries": rows, "log": reader.log.hex()}))
    else:
        print(f"{target} holds {rows} entries")
    return 0


def _watched(
    found: Iterator[Item], reader: Reader, args: argparse.Namespace, progress: Progress
) -> Iterator[Item]:
    start = reader.first if args.start is None else args.start
    end = reader.committed if args.to is None else min(args.to + 1, reader.committed)
    for n, item in enumerate(found):
        yield item
        if not n % 1024:
            progress.update(last_index(item) + 1 - start, end - start)


def _jsonl(path: Path, found: Iterator[Item]) -> int:
    rows = 0
    with path.open("w") as file:
        for item in found:
            for document in documents(item):
                file.write(json.dumps(document) + "\n")
                rows += "index" in document
    return rows


def _parquet(path: Path, found: Iterator[Item]) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema(
        [
            ("index", pa.int64()),
            ("term", pa.string()),
            ("sender", pa.string()),
            ("incarnation", pa.int64()),
            ("session", pa.string()),
            ("number", pa.int64()),
            ("stamp_us", pa.int64()),
            ("payload", pa.binary()),
        ]
    )
    rows = 0
    columns: list[list[Any]] = [[] for _ in schema]
    with pq.ParquetWriter(path, schema) as writer:
        for item in found:
            if isinstance(item, Batch):
                _add(columns, item)
            if len(columns[0]) >= ROWS_PER_GROUP:
                rows += len(columns[0])
                writer.write_table(pa.table(columns, schema=schema))
                columns = [[] for _ in schema]
        rows += len(columns[0])
        writer.write_table(pa.table(columns, schema=schema))
    return rows


def _add(columns: list[list[Any]], batch: Batch) -> None:
    count = len(batch.payloads)
    columns[0].extend(range(batch.index, batch.index + count))
    columns[1].extend([str(batch.term)] * count)
    columns[2].extend([batch.sender] * count)
    columns[3].extend([batch.incarnation] * count)
    columns[4].extend([f"{batch.session:016x}"] * count)
    columns[5].extend(range(batch.number, batch.number + count))
    columns[6].extend([batch.stamp_us] * count)
    columns[7].extend(batch.payloads)
