"""Parquet: the format for traces of any size. The only module of the trace that needs pyarrow."""

from array import array
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from roundelay.trace import arrays
from roundelay.trace.compact import NONE, NUMBERS, Batch
from roundelay.trace.intake import (
    CONVERT,
    EMPTY,
    MISFIT,
    REQUIRED,
    Findings,
    UnreadableError,
    fault,
    listed,
)
from roundelay.trace.manifest import TraceError, check_schema_version
from roundelay.trace.schema import ADDED, COLUMNS, NULLABLE, SCHEMA_VERSION, Row

UNFIT = (pa.ArrowException, OverflowError, ValueError, TypeError)
"""What is raised for a value that its column cannot hold."""

_NONE = arrays.integers(array("q", [NONE]))[0]

SCHEMA_KEY = b"roundelay.schema"
"""The key of a file's metadata for the version of its schema."""

SHA256_KEY = b"roundelay.sha256"
"""The key of a file's metadata for the sha256 of its rows."""


class Encoder:
    """Writes rows to a file: one row group per batch, with zstd, dictionaries for words, and
    checksums."""

    suffix = ".parquet"
    divisible = False
    """Whether the file can be cut after any batch and still be read."""
    checked = True
    """Whether the file has checksums of its own."""

    def __init__(self, file: BinaryIO, run: str) -> None:
        self._run = run
        self._schema = arrow_schema()
        self._writer = pq.ParquetWriter(
            file,
            self._schema,
            compression="zstd",
            use_dictionary=["run", *(n for n, type_ in COLUMNS.items() if type_ == "word")],
            write_page_checksum=True,
        )

    def write(self, rows: list[Row]) -> None:
        columns = [arrays.column([self._run] * len(rows), "word")]
        for place, field in enumerate(list(self._schema)[1:]):
            columns.append(_column(field, list(map(itemgetter(place), rows))))
        self._write(columns)

    def write_batch(self, batch: Batch) -> None:
        """The same for rows in compact form, without a look at any single one."""
        ids, *numbers = batch.columns()
        places = arrays.integers(ids)
        packed = dict(zip(NUMBERS, numbers, strict=True))
        columns = [_spread([self._run] * len(batch.patterns), "word", places)]
        for place, (name, type) in enumerate(COLUMNS.items()):
            common = [pattern[place] for pattern in batch.patterns]
            try:
                if name in packed:
                    columns.append(_numbers(packed[name], common, type, places))
                else:
                    columns.append(_spread(common, type, places))
            except UNFIT as e:
                raise _unfit(name, e) from None
        self._write(columns)

    def _write(self, columns: list[Any]) -> None:
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def write_end(self, sha256: str) -> None:
        """Write the end of the file, with the sha256 of its rows. Since pages have checksums, a
        reader need not compute the sha256 to know that the rows are those of the manifest."""
        if sha256:
            self._writer.add_key_value_metadata({SHA256_KEY: sha256})
        try:
            self._writer.close()
        finally:
            # Else, on a full disk, its destructor would try again and print an error.
            self._writer.is_open = False


def _column(field: Any, values: list[Any]) -> Any:
    if values.count(None) == len(values):
        return pa.nulls(len(values), field.type)
    if COLUMNS[field.name] == "view":
        names = ("seq", "rep", "kind")
        values = [v and dict(zip(names, v, strict=True)) for v in values]
    try:
        return pa.array(values, field.type)
    except UNFIT as e:
        raise _unfit(field.name, e) from None


def _unfit(name: str, error: Exception) -> TraceError:
    return TraceError(f"a row does not fit the column {name} of the trace: {error}")


def _spread(common: list[Any], type: str, places: Any) -> Any:
    """A column of what the patterns have, each row's at its place."""
    if common.count(None) == len(common):
        return pa.nulls(len(places), arrays.ARROW[type])
    if type == "word":  # The words stay few: `take` would make as many as there are patterns.
        words, codes = arrays.word_codes(common)
        return pa.DictionaryArray.from_arrays(codes.take(places), words)
    return arrays.column(common, type).take(places)


def _numbers(values: "array[int]", common: list[Any], type: str, places: Any) -> Any:
    """A column of numbers that rows have of their own."""
    bare = arrays.integers(values)
    own = pc.not_equal(bare, _NONE)
    if own.true_count == len(own):
        return bare.cast(arrays.ARROW[type])
    numbers = arrays.integers(values, own.buffers()[1]).cast(arrays.ARROW[type])
    if common.count(None) == len(common):
        return numbers
    return pc.coalesce(numbers, _spread(common, type, places))


def arrow_schema() -> Any:
    """The columns of a Parquet trace, as a pyarrow schema."""
    types = arrays.ARROW
    fields = [pa.field("run", types["word"], nullable=False)]
    for name, type_ in COLUMNS.items():
        fields.append(pa.field(name, types[type_], nullable=name in NULLABLE))
    return pa.schema(fields, metadata={SCHEMA_KEY: str(SCHEMA_VERSION)})


def decode(path: Path, batch_rows: int, found: Findings) -> Iterator[list[Row]]:
    """The rows of a file in batches. Raises UnreadableError if reading fails before the end of the
    file."""
    check_ends(path)
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            check_columns(file.schema_arrow, found)
            found.sha256 = (file.metadata.metadata or {}).get(SHA256_KEY, b"").decode()
            first = 0
            names = [name for name in file.schema_arrow.names if name in COLUMNS or name == "run"]
            for batch in file.iter_batches(batch_rows, columns=names):
                batch.validate(full=True)  # A page header has no checksum.
                rows = rows_of(batch, first, found)
                first += batch.num_rows
                found.row_count += len(rows)
                yield rows
    except (pa.ArrowException, OSError, ValueError, OverflowError) as e:
        raise UnreadableError(
            f"is damaged ({str(e).partition(chr(10))[0][:120]}); copy it again or run again"
        ) from None


def check_ends(path: Path) -> None:
    """Tell a file that was cut short from one that never was Parquet: pyarrow's messages do not."""
    try:
        with path.open("rb") as file:
            head = file.read(4)
            size = file.seek(0, 2)
            file.seek(max(0, size - 4))
            tail = file.read(4)
    except OSError as e:
        raise UnreadableError(
            f"cannot be opened: {e.strerror or e}; check that it is yours"
        ) from None
    if not size:
        raise UnreadableError(EMPTY)
    if head != b"PAR1":
        raise UnreadableError("is not a Parquet file; name another one")
    if tail != b"PAR1" or size < 12:
        raise UnreadableError(
            "is cut short, and Parquet cannot be read without its end: copy it again, or run "
            "again and let it finish"
        )


def check_columns(schema: Any, found: Findings) -> None:
    version = (schema.metadata or {}).get(SCHEMA_KEY, b"1")
    if not version.isdigit():
        raise UnreadableError("names no number as the version of its schema; copy it again")
    check_schema_version(int(version))
    if lacking := [name for name in REQUIRED if name not in schema.names]:
        raise UnreadableError(
            f"lacks the columns {listed(lacking)}: it is no trace; name another one"
        )
    if len(set(schema.names)) < len(schema.names):
        raise UnreadableError("has two columns of one name: it is no trace; name another one")
    here = [name for name in COLUMNS if ADDED.get(name, 1) <= int(version)]
    if lacking := [name for name in here if name not in schema.names]:
        found.notes.append(f"it lacks the columns {listed(lacking)}, which properties may need")
    found.unknown.update(dict.fromkeys(n for n in schema.names if n not in COLUMNS and n != "run"))


def rows_of(batch: Any, first: int, found: Findings) -> list[Row]:
    """Rows of a batch, converted column by column."""
    count = batch.num_rows
    present = dict(zip(batch.schema.names, batch.columns, strict=True))
    if (runs := present.pop("run", None)) is not None:
        found.runs.update(dict.fromkeys(run for run in runs.unique().to_pylist() if run))
    bad: dict[int, str] = {}
    columns = []
    for name in COLUMNS:
        values = _values(name, present[name], bad) if name in present else [None] * count
        if name not in NULLABLE and None in values:
            if name in REQUIRED:
                for i, value in enumerate(values):
                    if value is None:
                        bad.setdefault(i, f"{name} is null")
            default = Row._field_defaults.get(name)
            values = [default if value is None else value for value in values]
        columns.append(values)
    rows = []
    for i, row in enumerate(map(Row._make, zip(*columns, strict=True))):
        reason = bad.get(i) or fault(row, found.node_count)
        if reason is None:
            rows.append(row)
        else:
            found.leave_out(f"row {first + i}", reason)
    return rows


def _values(name: str, array: Any, bad: dict[int, str]) -> list[Any]:
    """A column as Python values. Values that do not fit become None, and their places go to
    `bad`."""
    is_ = pa.types
    if array.null_count == len(array):
        return [None] * len(array)
    type_ = COLUMNS[name]
    if type_ in ("word", "string"):
        if is_.is_dictionary(array.type) and is_.is_string(array.type.value_type):
            words = array.dictionary.to_pylist()
            return [None if i is None else words[i] for i in array.indices.to_pylist()]
        fits = is_.is_string(array.type) or is_.is_large_string(array.type)
    elif type_ == "bool":
        fits = is_.is_boolean(array.type)
    elif type_ == "list<int16>":
        fits = is_.is_list(array.type) and is_.is_integer(array.type.value_type)
    elif type_ == "view":
        fits = is_.is_struct(array.type)
    else:
        # Tables that passed through pandas have whole numbers as floats where there are nulls.
        fits = is_.is_integer(array.type) or is_.is_floating(array.type)
    if not fits:
        raise UnreadableError(
            f"has {array.type} in the column {name}, not {type_}: it is no trace; name another one"
        )
    if is_.is_floating(array.type):
        array = array.cast(pa.int64())
    values: list[Any] = array.to_pylist()
    if str(array.type) == type_ or type_ in ("string", "bool"):
        return values
    convert = CONVERT[name]
    for i, value in enumerate(values):
        if value is not None:
            try:
                values[i] = convert(value)
            except MISFIT:
                bad[i] = f"{name} is {str(value)[:60]}, not {type_}"
                values[i] = None
    return values
