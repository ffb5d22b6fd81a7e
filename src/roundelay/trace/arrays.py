"""Arrow arrays from Python lists, of the types that a trace has, by way of their buffers.

`pyarrow.array` would do, but its first call imports pandas where that is installed: a node that is
busy by then cannot stop for half a second.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa

VIEW = pa.struct([("seq", pa.int64()), ("rep", pa.int16()), ("kind", pa.int8())])
"""The type of a view on disk."""

_CODES = {pa.int8(): "b", pa.int16(): "h", pa.int32(): "i", pa.int64(): "q"}


def column(values: Sequence[Any], type: str) -> Any:
    """The values as a column of this type of the schema; `OverflowError` or `TypeError` if one does
    not fit."""
    if values.count(None) == len(values):
        return pa.nulls(len(values), ARROW[type])
    return _MAKERS[type](values)


def integers(values: "array[int]", valid: Any = None) -> Any:
    """An array of 64-bit numbers; `valid` is a buffer with a bit for each that is not null."""
    return pa.Array.from_buffers(pa.int64(), len(values), [valid, pa.py_buffer(values)])


def word_codes(values: Sequence[str | None]) -> tuple[Any, Any]:
    """The different words, and the index of each value among them."""
    words = dict.fromkeys(value for value in values if value is not None)
    places = {word: place for place, word in enumerate(words)}
    codes = [None if value is None else places[value] for value in values]
    return _strings(list(words)), _fixed(pa.int32(), codes)


def _words(values: Sequence[Any]) -> Any:
    words, codes = word_codes(values)
    return pa.DictionaryArray.from_arrays(codes, words)


def _strings(values: Sequence[Any]) -> Any:
    data = [b"" if value is None else str(value).encode() for value in values]
    ends = array("i", accumulate(map(len, data), initial=0))
    buffers = [_valid(values), pa.py_buffer(ends), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def _fixed(type: Any, values: Sequence[Any]) -> Any:
    data = array(_CODES[type], [0 if value is None else value for value in values])
    return pa.Array.from_buffers(type, len(values), [_valid(values), pa.py_buffer(data)])


def _bools(values: Sequence[Any]) -> Any:
    bits = _bits([bool(value) for value in values])
    return pa.Array.from_buffers(pa.bool_(), len(values), [_valid(values), bits])


def _lists(values: Sequence[Any]) -> Any:
    ends = array("i", accumulate((len(value or ()) for value in values), initial=0))
    items = _fixed(pa.int16(), [item for value in values for item in value or ()])
    type = pa.list_(pa.int16())
    buffers = [_valid(values), pa.py_buffer(ends)]
    return pa.Array.from_buffers(type, len(values), buffers, children=[items])


def _views(values: Sequence[Any]) -> Any:
    fields = [
        _fixed(field.type, [None if value is None else value[i] for value in values])
        for i, field in enumerate(VIEW)
    ]
    return pa.Array.from_buffers(VIEW, len(values), [_valid(values)], children=fields)


def _valid(values: Sequence[Any]) -> Any:
    """The buffer with a bit for each value that is not null; None if none is."""
    if values.count(None) == 0:
        return None
    return _bits([value is not None for value in values])


def _bits(flags: Sequence[bool]) -> Any:
    whole = int("".join("1" if flag else "0" for flag in reversed(flags)) or "0", 2)
    return pa.py_buffer(whole.to_bytes((len(flags) + 7) // 8, "little"))


ARROW: Mapping[str, Any] = {
    "word": pa.dictionary(pa.int32(), pa.string()),
    "string": pa.string(),
    "bool": pa.bool_(),
    "list<int16>": pa.list_(pa.int16()),
    "view": VIEW,
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
}
"""By type of the schema."""

_MAKERS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "word": _words,
    "string": _strings,
    "bool": _bools,
    "list<int16>": _lists,
    "view": _views,
    "int8": lambda values: _fixed(pa.int8(), values),
    "int16": lambda values: _fixed(pa.int16(), values),
    "int32": lambda values: _fixed(pa.int32(), values),
    "int64": lambda values: _fixed(pa.int64(), values),
}
