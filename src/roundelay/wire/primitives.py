"""Checked reading and writing of binary fields, for the frame header and every protocol's messages.

All numbers are big-endian and unsigned. A reader never trusts a length or a count: the caller gives
a limit for each, which is checked before anything is allocated.
"""

import struct
from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from roundelay.core.ids import is_name

T = TypeVar("T")

_U8 = struct.Struct(">B")
_U16 = struct.Struct(">H")
_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")

U8_MAX = 0xFF
U16_MAX = 0xFFFF
U32_MAX = 0xFFFF_FFFF
U64_MAX = 0xFFFF_FFFF_FFFF_FFFF
I64_MAX = 0x7FFF_FFFF_FFFF_FFFF
"""The largest number that a column of a trace, which is signed, can hold."""


class Reason(StrEnum):
    """Why a datagram was dropped. Counters, traces and `status` show these names."""

    FOREIGN = "foreign"
    """The bytes are not a frame of Roundelay."""
    VERSION = "version"
    """The frame has a version that this one does not read."""
    TRUNCATED = "truncated"
    """The frame is shorter than its header says."""
    OVERSIZED = "oversized"
    """The frame is longer than its header says, or than a datagram may be."""
    CHECKSUM = "checksum"
    """The checksum is wrong: the frame was damaged on its way."""
    GROUP = "group"
    """The frame belongs to another group."""
    OWN = "own"
    """The frame was sent by this node itself and came back."""
    MALFORMED = "malformed"
    """The frame is undamaged, but its fields make no sense."""
    IMPLAUSIBLE = "implausible"
    """The frame is well-formed, but its receiver knows that it cannot be true."""
    SETTINGS = "settings"
    """The frame comes from a peer whose settings differ from those of this node."""
    PROBE = "probe"
    """The frame is a probe, which the driver handles: nodes that lost contact look for each other
    with probes."""
    PLAIN = "plain"
    """The frame is not sealed, and this node has a key."""
    SEALED = "sealed"
    """The datagram is sealed, and this node has no key."""
    KEY = "key"
    """The datagram is sealed with a key that this node does not have."""
    SEAL = "seal"
    """The seal is broken: the datagram was damaged or forged."""
    REPLAY = "replay"
    """The datagram came before, or is too old to tell."""
    UNPROVEN = "unproven"
    """Its sender has not proven yet that it is alive: the datagram may be an old one."""
    STRANGER = "stranger"
    """Its sender is not among the peers."""
    IMPOSTOR = "impostor"
    """Its sender has proven to be another node than the frame names."""
    OWN_NAME = "own name"
    """The frame names this node as its sender, but another one sent it, or an earlier life."""


class WireError(Exception):
    """Bytes make no sense. The driver counts the reason and drops them."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else str(reason))
        self.reason = reason


@lru_cache(maxsize=256)
def name_in(raw: bytes) -> str:
    """The name of a node or a group in these bytes, or WireError: a name that no node can have is
    refused here, before it reaches a log, a trace or a screen."""
    try:
        name = raw.decode()
    except UnicodeDecodeError:
        raise WireError(Reason.MALFORMED, "a name is not UTF-8") from None
    if not is_name(name):
        raise WireError(Reason.MALFORMED, "a name that no node can have")
    return name


class Writer:
    """Appends fields to a buffer. ValueError if a value is out of range, which is a bug of the
    caller."""

    __slots__ = ("_out",)

    def __init__(self) -> None:
        self._out = bytearray()

    def u8(self, n: int) -> None:
        self._pack(_U8, n)

    def u16(self, n: int) -> None:
        self._pack(_U16, n)

    def u32(self, n: int) -> None:
        self._pack(_U32, n)

    def u64(self, n: int) -> None:
        self._pack(_U64, n)

    def fields(self, form: struct.Struct, *numbers: int) -> None:
        """Several numbers at once."""
        try:
            self._out += form.pack(*numbers)
        except struct.error as e:
            raise ValueError(f"{numbers} do not fit {form.format}") from e

    def flag(self, yes: bool) -> None:
        self._out.append(1 if yes else 0)

    def text(self, s: str) -> None:
        """A short string: at most 255 bytes of UTF-8."""
        raw = s.encode()
        if len(raw) > U8_MAX:
            raise ValueError(f"{s[:20]!r}... is longer than {U8_MAX} bytes")
        self._out.append(len(raw))
        self._out += raw

    def blob(self, data: bytes) -> None:
        """Bytes with their length before them."""
        self.u32(len(data))
        self._out += data

    def rest(self, data: bytes) -> None:
        """Bytes up to the end of the message, without a length: the last field only."""
        self._out += data

    def done(self) -> bytes:
        return bytes(self._out)

    def _pack(self, form: struct.Struct, n: int) -> None:
        try:
            self._out += form.pack(n)
        except struct.error as e:
            raise ValueError(f"{n} does not fit {form.size} bytes") from e


class Reader:
    """Reads fields of `data`, beginning at `start`. WireError if one is missing or out of range."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes, start: int = 0) -> None:
        self._data = data
        self._at = start

    def u8(self, most: int = U8_MAX) -> int:
        return self._unpack(_U8, most)

    def u16(self, most: int = U16_MAX) -> int:
        return self._unpack(_U16, most)

    def u32(self, most: int = U32_MAX) -> int:
        return self._unpack(_U32, most)

    def u64(self, most: int = U64_MAX) -> int:
        return self._unpack(_U64, most)

    def fields(self, form: struct.Struct) -> tuple[int, ...]:
        """Several numbers at once; the caller checks their ranges."""
        try:
            fields = form.unpack_from(self._data, self._at)
        except struct.error:
            raise WireError(Reason.MALFORMED, "the message ends within a number") from None
        self._at += form.size
        return fields

    def flag(self) -> bool:
        return self.u8(1) == 1

    def text(self, most: int = U8_MAX) -> str:
        data, at = self._data, self._at
        size = data[at] if at < len(data) else U8_MAX + 1
        if size > most:
            raise WireError(Reason.MALFORMED, f"no name of at most {most} bytes")
        self._at = at + 1
        try:
            return self.take(size).decode()
        except UnicodeDecodeError:
            raise WireError(Reason.MALFORMED, "a name is not UTF-8") from None

    def name(self, *, may_be_empty: bool = False) -> str:
        """The name of a node or a group."""
        data, at = self._data, self._at
        size = data[at] if at < len(data) else U8_MAX
        self._at = at + 1
        return "" if may_be_empty and not size else name_in(self.take(size))

    def blob(self, most: int) -> bytes:
        return self.take(self.u32(most))

    def rest(self, most: int) -> bytes:
        """Everything that is left."""
        left = len(self._data) - self._at
        if left > most:
            raise WireError(Reason.MALFORMED, f"{left} bytes where at most {most} may be")
        return self.take(left)

    @property
    def more(self) -> bool:
        """Whether anything is left."""
        return self._at < len(self._data)

    def many(self, item: Callable[[], T], most: int) -> tuple[T, ...]:
        """A count of at most `most`, then as many items; `item` reads one."""
        return tuple(item() for _ in range(self.u16(most)))

    def done(self) -> None:
        """Raise WireError if bytes are left: a message that is too long is as wrong as one that is
        too short."""
        if self._at != len(self._data):
            raise WireError(Reason.MALFORMED, f"{len(self._data) - self._at} bytes too many")

    def take(self, size: int) -> bytes:
        """The next `size` bytes."""
        end = self._at + size
        if end > len(self._data):
            raise WireError(Reason.MALFORMED, f"{end - len(self._data)} bytes missing")
        data = self._data[self._at : end]
        self._at = end
        return data

    def _unpack(self, form: struct.Struct, most: int) -> int:
        try:
            (n,) = form.unpack_from(self._data, self._at)
        except struct.error:
            raise WireError(Reason.MALFORMED, "the message ends within a number") from None
        self._at += form.size
        if n > most:
            raise WireError(Reason.MALFORMED, f"{n} where at most {most} may be")
        return int(n)
