"""Values that commands, replies and snapshots may hold, as text of JSON.

A *value* is None, a bool, an int, a finite float, a str, bytes, a list of values, or a dict of
values with str keys. JSON has no bytes: they are written as `{"=b": "base64"}`, and a dict that
looks like that is written as `{"=d": [[key, value], ...]}`.

The same value has the same text at every node, and comes back equal and of the same type. Limits on
depth and on the size of ints are the same on both ways, so that a text that one node can read can
be read by all.
"""

import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

Value: TypeAlias = (
    bool | int | float | str | bytes | Sequence["Value"] | Mapping[str, "Value"] | None
)
"""What any machine may be given and may answer. Lists come back as list, mappings as dict."""

DEPTH_MAX = 64
"""Lists and dicts within each other. A greater limit risks Python's limit on recursion."""
INT_BITS_MAX = 4096
"""Bits of an int. Python refuses to read or write a decimal number of more than 4300 digits."""

_BYTES, _DICT = "=b", "=d"
_ENCODER = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
)
_DECODER = json.JSONDecoder()
scan: Callable[[str, int], tuple[Any, int]] = getattr(_DECODER, "scan_once")  # noqa: B009  # As below.
"""What is in a text from this place on, and where it ends; StopIteration if it is no JSON."""
SHORT_TEXT = 1000
"""A text of so many bytes holds no int of more than `INT_BITS_MAX`, and without a backslash no half
of a surrogate."""
_I64 = 2**63
I64_MIN, I64_MAX = -_I64, _I64 - 1
_INFINITE = (float("inf"), float("-inf"))


def _encoder() -> Callable[[object], str]:
    """What `_ENCODER.encode` does, without making an encoder in C for each call."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # Another Python than CPython.
        return _ENCODER.encode
    text = getattr(json.encoder, "encode_basestring")  # noqa: B009  # mypy knows nothing of it.
    encode = make(None, _ENCODER.default, text, None, ":", ",", False, False, False)
    return lambda packed: "".join(encode(packed, 0))


encode = _encoder()
"""The text of a list or of another value that JSON has, as a str: see `dumps`."""


def dumps(packed: object) -> bytes:
    """The text of what `pack_value`, or a kind, made. ValueError if it holds something that has
    none."""
    return b"%d" % packed if type(packed) is int else encode(packed).encode()


def loads(text: bytes) -> object:
    """What `dumps` was given; ValueError if this is no JSON, or has spaces around it."""
    whole = text.decode()
    found, end = _DECODER.raw_decode(whole)
    if end != len(whole):
        raise ValueError("something stands behind the JSON")
    return found


def pack_value(value: object, depth: int = 0) -> object:
    """The value as JSON has it. TypeError or ValueError if it is no value."""
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return checked_text(value)
    if isinstance(value, int):
        return checked_int(value)
    if isinstance(value, float):
        return checked_float(value)
    if isinstance(value, bytes):
        return {_BYTES: pack_bytes(value)}
    if depth >= DEPTH_MAX:
        raise ValueError(f"more than {DEPTH_MAX} lists and dicts within each other")
    if isinstance(value, list):
        return [pack_value(item, depth + 1) for item in value]
    if isinstance(value, dict):
        packed = {_key(key): pack_value(item, depth + 1) for key, item in value.items()}
        looks_special = len(packed) == 1 and (_BYTES in packed or _DICT in packed)
        return {_DICT: [list(pair) for pair in packed.items()]} if looks_special else packed
    raise TypeError(
        f"{type(value).__name__} is no value: use None, bool, int, float, str, bytes, list or dict"
    )


def unpack_value(packed: object, depth: int = 0) -> object:
    """The value that was packed; ValueError if none was."""
    if packed is None or packed is True or packed is False:
        return packed
    if isinstance(packed, str):
        return checked_text(packed)
    if isinstance(packed, int):
        return checked_int(packed)
    if isinstance(packed, float):
        return checked_float(packed)
    if depth >= DEPTH_MAX:
        raise ValueError(f"more than {DEPTH_MAX} lists and dicts within each other")
    if isinstance(packed, list):
        return [unpack_value(item, depth + 1) for item in packed]
    assert isinstance(packed, dict)
    if len(packed) == 1:
        if _BYTES in packed:
            return unpack_bytes(packed[_BYTES])
        if _DICT in packed:
            packed = unpack_pairs(packed[_DICT])
    return {checked_text(key): unpack_value(item, depth + 1) for key, item in packed.items()}


def copy_value(value: object) -> object:
    """The value without the lists and dicts that somebody else may change."""
    if isinstance(value, list):
        return [copy_value(item) for item in value]
    if isinstance(value, dict):
        return {key: copy_value(item) for key, item in value.items()}
    return value


def pack_bytes(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def unpack_bytes(text: object) -> bytes:
    if not isinstance(text, str):
        raise ValueError("bytes that are no text")
    return binascii.a2b_base64(text, strict_mode=True)


def unpack_pairs(packed: object) -> dict[str, object]:
    """The dict whose items these are."""
    if not isinstance(packed, list):
        raise ValueError("the items of a dict are no list")
    pairs: dict[str, object] = {}
    for item in packed:
        if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], str):
            raise ValueError("an item of a dict is no pair")
        pairs[item[0]] = item[1]
    return pairs


def checked_text(text: str) -> str:
    """The text as a plain str. UnicodeEncodeError, a ValueError, if it has half a surrogate."""
    if not text.isascii():
        text.encode()
    return text if type(text) is str else str.__str__(text)


def checked_int(number: int) -> int:
    """The number as a plain int."""
    if not -_I64 <= number < _I64 and number.bit_length() > INT_BITS_MAX:
        raise ValueError(f"an int of more than {INT_BITS_MAX} bits")
    return int(number)


def checked_float(number: float) -> float:
    """The number as a plain float."""
    if number != number or number in _INFINITE:
        raise ValueError(f"{number} is no finite number")
    return float(number)


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"{type(key).__name__} is no key of a dict: use str")
    return checked_text(key)
