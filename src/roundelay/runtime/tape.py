"""A record of every input of a core, and of what came of it.

    line of JSON                what the core was: its boot, its founders, its configuration
    entries, one after another:
        u8   kind               0 start, 1 accept, 2 flush, 3 receive, 4 expire, 5 leave, 6 run
        u32  size, bytes        accept: a line of JSON and the payload; receive: the datagram;
                                expire: the timer's name; run: datagrams that were handed over at
                                once, each with its size, u32, before it
        u32  digest             CRC-32 over the effects, running from the beginning

A record that was cut short, by `kill -9` say, is good up to its last whole entry. Every start of a
node makes a file of its own.
"""

import contextlib
import json
import struct
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from roundelay.core.checksum import crc32
from roundelay.core.contract import Codec
from roundelay.core.effects import Deliver, Effect, Record, Send
from roundelay.core.ids import NodeId, Packet, Service

_ENTRY = struct.Struct(">BI")
_SIZE = struct.Struct(">I")
_DIGEST = struct.Struct(">I")
ENTRY_BYTES_MAX = 1 << 28
"""More than any message may have: a longer entry is damage."""


SUFFIX = ".record"


def record_name(node: NodeId, incarnation: int) -> str:
    """The file name of the record of one life."""
    return f"{node}-{incarnation}{SUFFIX}"


def records(path: Path) -> list[Path]:
    """The records at `path`: a file, or all of a directory; TapeError if there are none."""
    if not path.is_dir():
        return [path]
    try:
        found = sorted(one for one in path.iterdir() if one.suffix == SUFFIX)
    except OSError as e:
        raise TapeError(f"cannot read {path}: {e.strerror}; name a record of a node") from None
    if not found:
        raise TapeError(f"{path} holds no record; name the directory that --record was given")
    return found


class Input(IntEnum):
    """Which input of the core an entry is."""

    START = 0
    ACCEPT = 1
    FLUSH = 2
    RECEIVE = 3
    EXPIRE = 4
    LEAVE = 5
    RUN = 6


class TapeError(Exception):
    """A record that cannot be read. Its message is a sentence for the user."""


class Tape:
    """Writes a record. If the disk fails, the record ends there, and `trouble` says so."""

    def __init__(self, path: Path, header: dict[str, Any], codec: Codec[Any]) -> None:
        """Open the file, or raise OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = path.open("wb")
        self._file.write(json.dumps(header, sort_keys=True).encode() + b"\n")
        self._file.flush()  # Whoever is killed at once has a record too, if an empty one.
        self.trouble: Callable[[str], None] = lambda sentence: None
        self._codec = codec
        self._digest = 0
        self._ended = False

    def accept(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> None:
        head = json.dumps([int(service), destinations]).encode() + b"\n"
        self.write(Input.ACCEPT, head + payload, ())

    def write(self, kind: Input, data: bytes, effects: Iterable[Effect[Any]]) -> None:
        if self._ended:
            return
        self._digest = digest(effects, self._codec, self._digest)
        try:
            self._file.write(_ENTRY.pack(kind, len(data)) + data + _DIGEST.pack(self._digest))
        except OSError as e:
            self._end(e)

    def flush(self) -> None:
        if not self._ended:
            try:
                self._file.flush()
            except OSError as e:
                self._end(e)

    def close(self) -> None:
        self.flush()
        self._end(None)

    def _end(self, error: OSError | None) -> None:
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(OSError):  # What could not be written is tried once more.
            self._file.close()
        if error is not None:
            self.trouble(f"the record ends here: {error.strerror}; free some space")


def join_run(datagrams: Iterable[bytes]) -> bytes:
    """As one entry holds them."""
    return b"".join(part for data in datagrams for part in (_SIZE.pack(len(data)), data))


def split_run(data: bytes) -> Iterator[bytes]:
    """The datagrams in an entry, one at least; TapeError if they do not add up."""
    at = 0
    while at < len(data) or not data:
        try:
            (size,) = _SIZE.unpack_from(data, at)
        except struct.error:
            raise TapeError("the record holds half a datagram; copy it again") from None
        at += _SIZE.size + size
        if at > len(data):
            raise TapeError("the record holds half a datagram; copy it again")
        yield data[at - size : at]


class Entry(NamedTuple):
    """One input, and the digest of all effects up to it."""

    kind: Input
    data: bytes
    digest: int


def read(path: Path) -> tuple[dict[str, Any], Iterator[Entry]]:
    """The header and the entries of a record, or TapeError."""
    try:
        with path.open("rb") as file:
            line = file.readline(1 << 20)
    except OSError as e:
        raise TapeError(
            f"cannot read {path}: {e.strerror or e}; name a file written by --record"
        ) from None
    except ValueError as e:
        raise TapeError(f"{str(path)!r} is no name of a file ({e})") from None
    try:
        header = json.loads(line)
        if not isinstance(header, dict) or "record" not in header:
            raise ValueError("not a header")
    except (ValueError, RecursionError):
        raise TapeError(f"{path} is no record of a node; name a file written by --record") from None
    return header, _entries(path, len(line))


def _entries(path: Path, start: int) -> Iterator[Entry]:
    with path.open("rb") as file:
        file.seek(start)
        while len(head := file.read(_ENTRY.size)) == _ENTRY.size:
            kind, size = _ENTRY.unpack(head)
            if kind > max(Input) or size > ENTRY_BYTES_MAX:
                raise TapeError("the record is damaged in the middle; what came before is good")
            data, tail = file.read(size), file.read(_DIGEST.size)
            if len(data) < size or len(tail) < _DIGEST.size:
                return  # Cut short.
            yield Entry(Input(kind), data, _DIGEST.unpack(tail)[0])


def digest(effects: Iterable[Effect[Any]], codec: Codec[Any], seed: int) -> int:
    """A number that differs if any effect does: messages as their bytes, payloads too."""
    for effect in effects:
        match effect:
            case Send():
                tag, body = codec.encode(effect.message)
                seed = crc32(body, crc32(repr((tag, effect.view, effect.to)).encode(), seed))
            case Deliver():
                place = (effect.packet.span, effect.packet.service, effect.view, effect.key)
                seed = crc32(repr((*place, effect.index)).encode(), seed)
                for payload in effect.payloads:
                    seed = crc32(payload, seed)
            case Record():
                subject = effect.subject
                span = subject.span if isinstance(subject, Packet) else subject
                fact = (effect.kind, span, effect.view, effect.key, effect.level, effect.tag)
                seed = crc32(repr((*fact, effect.stable_seq)).encode(), seed)
            case _:
                seed = crc32(repr(effect).encode(), seed)
    return seed
