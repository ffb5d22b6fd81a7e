"""Quantities with units, as scenario files and plans write them."""

import re

_TIME_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "min": 60_000_000_000}
_BITS = {"bit": 1, "kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
_BYTES = {"B": 1, "kB": 1_000, "KB": 1_024, "MB": 1_048_576}


def duration_ns(text: str) -> int:
    """`100us`, `1.5ms`, `2s` in nanoseconds."""
    return round(_scaled(text, _TIME_NS, "a time like 100us, 1.5ms or 2s"))


def rate_bps(text: str) -> int:
    """`10Mbit` in bits per second."""
    return round(_scaled(text, _BITS, "a rate like 10Mbit or 1Gbit"))


def size_bytes(text: str) -> int:
    """`1024`, `500B`, `1KB` in bytes."""
    if text.isdecimal():
        return int(text)
    return round(_scaled(text, _BYTES, "a size like 500B or 1KB"))


def share(text: str) -> float:
    """`5%` or `0.05` as a probability."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"{text!r} is not a share; write one like 5% or 0.05")
    return value


def per_second(text: str) -> float:
    """`1000/s` as a frequency."""
    try:
        value = float(text.removesuffix("/s"))
    except ValueError:
        value = 0.0
    if value <= 0 or not text.endswith("/s"):
        raise ValueError(f"{text!r} is not a frequency; write one like 1000/s")
    return value


def show_ns(ns: int) -> str:
    """An exact time, in the largest unit that needs at most three decimals."""
    for unit, scale in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= scale and ns * 1000 % scale == 0:
            return f"{ns / scale:.3f}".rstrip("0").rstrip(".") + unit
    return f"{ns}ns" if ns else "0s"


def _scaled(text: str, units: dict[str, int], example: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]+)", text)
    if match is None or match[2] not in units:
        raise ValueError(f"{text!r} is not {example}")
    return float(match[1]) * units[match[2]]
