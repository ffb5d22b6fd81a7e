"""The record of a node: every input of its core, and a digest of the effects that followed.

    line of JSON                how the core was made: see `CoreSetup`
    inputs, one after another:
        u8   kind               0 start, 1 accept, 2 flush, 3 receive, 4 expire, 5 leave, 6 burst;
                                with a log: 7 what the journal holds, 8 append, 9 open a session,
                                10 sync, 11 stored, 12 unstored, 13 loaded, 14 a part of a
                                snapshot, 15 held
        u32  size, bytes        accept: a line of JSON and the payload; receive: the datagram;
                                expire: the timer's name; burst: the datagrams that the core was
                                given in one call, each with its size, u32, before it; the
                                inputs of a log: see `log_inputs`
        u32  digest             CRC-32 over all effects from the beginning up to this input

A record that ends within an input, because the node was killed, is good up to the last whole input.
Every start of a node makes a file of its own.
"""

import contextlib
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from roundelay.core.checksum import crc32
from roundelay.core.contract import Codec
from roundelay.core.effects import Deliver, Effect, Record, Send, Store
from roundelay.core.ids import NodeId, Packet, Service
from roundelay.core.log import Entries, KeptLog
from roundelay.runtime.log_inputs import encode_append, encode_kept, encode_open_session

_HEAD = struct.Struct(">BI")
_SIZE = struct.Struct(">I")
_DIGEST = struct.Struct(">I")
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
HEADER_BYTES_MAX = 1 << 20
"""Longest first line that is read, in bytes. A node writes a few kilobytes, so a longer line is not
a header. Without a limit, any large file would be read into memory."""
INPUT_BYTES_MAX = 1 << 28
"""Largest input that is read, in bytes. No message and no burst is as large, so a greater size
means that the record is damaged. If this were too small, good records would be refused."""
SUFFIX = ".record"


def record_name(node: NodeId, incarnation: int) -> str:
    """The file name of the record of one life."""
    return f"{node}-{incarnation}{SUFFIX}"


def records(path: Path) -> list[Path]:
    """The records at `path`: a file, or all of a directory; InputLogError if there are none."""
    if not path.is_dir():
        return [path]
    try:
        found = sorted(one for one in path.iterdir() if one.suffix == SUFFIX)
    except OSError as e:
        raise InputLogError(f"cannot read {path}: {e.strerror}; name a record of a node") from None
    if not found:
        raise InputLogError(f"{path} holds no record; name the directory that --record was given")
    return found


class Input(IntEnum):
    """The inputs of a core. Records contain these numbers: they never change."""

    START = 0
    ACCEPT = 1
    FLUSH = 2
    RECEIVE = 3
    EXPIRE = 4
    LEAVE = 5
    BURST = 6
    KEPT = 7
    APPEND = 8
    OPEN_SESSION = 9
    SYNC = 10
    STORED = 11
    UNSTORED = 12
    LOADED = 13
    SNAPSHOT_LOADED = 14
    HELD = 15


class InputLogError(Exception):
    """A record that cannot be read. Its message is a sentence for the user."""


class InputLog:
    """Writes a record. If the disk fails, the record ends there, and `trouble` is called."""

    def __init__(self, path: Path, header: dict[str, Any], codec: Codec[Any]) -> None:
        """Open the file, or raise OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        # It holds frames in plain, also those that came under a seal: only its owner may read it.
        self._file: BinaryIO = os.fdopen(os.open(path, _FLAGS, 0o600), "wb")
        self._file.write(json.dumps(header, sort_keys=True).encode() + b"\n")
        self._file.flush()  # A node that is killed at once leaves a header, not an empty file.
        self.trouble: Callable[[str], None] = lambda sentence: None
        """Called with a sentence when the record ends early."""
        self._codec = codec
        self._digest = 0
        self._ended = False

    def accept(
        self, payload: bytes, service: Service, destinations: tuple[NodeId, ...] | None
    ) -> None:
        head = json.dumps([int(service), destinations]).encode() + b"\n"
        self.write(Input.ACCEPT, head + payload, ())

    def kept(self, kept: KeptLog) -> None:
        """What the journal holds; before everything else."""
        self.write(Input.KEPT, encode_kept(kept), ())
        self.flush()  # As with the header: without it the rest is worth nothing.

    def append(
        self, payload: bytes, stamp_us: int, session: int | None, number: int | None
    ) -> None:
        self.write(Input.APPEND, encode_append(payload, stamp_us, session, number), ())

    def open_session(self, name: str, stamp_us: int) -> None:
        self.write(Input.OPEN_SESSION, encode_open_session(name, stamp_us), ())

    def write(self, kind: Input, data: bytes, effects: Iterable[Effect[Any]]) -> None:
        if self._ended:
            return
        self._digest = digest(effects, self._codec, self._digest)
        try:
            self._file.write(_HEAD.pack(kind, len(data)) + data + _DIGEST.pack(self._digest))
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
        with contextlib.suppress(OSError):  # `close` tries once more to write what is buffered.
            self._file.close()
        if error is not None:
            self.trouble(f"the record ends here: {error.strerror}; free some space")


def join_burst(datagrams: Iterable[bytes]) -> bytes:
    """Datagrams as the data of one input."""
    return b"".join(part for data in datagrams for part in (_SIZE.pack(len(data)), data))


def split_burst(data: bytes) -> Iterator[bytes]:
    """The datagrams of a burst, at least one; InputLogError if the last one is cut short."""
    at = 0
    while at < len(data) or not data:
        try:
            (size,) = _SIZE.unpack_from(data, at)
        except struct.error:
            raise InputLogError("the record holds half a datagram; copy it again") from None
        at += _SIZE.size + size
        if at > len(data):
            raise InputLogError("the record holds half a datagram; copy it again")
        yield data[at - size : at]


class LoggedInput(NamedTuple):
    """One input of a record."""

    kind: Input
    data: bytes
    digest: int
    """Of all effects from the beginning up to this input."""


def read(path: Path) -> tuple[dict[str, Any], Iterator[LoggedInput]]:
    """The header and the inputs of a record, or InputLogError."""
    try:
        with path.open("rb") as file:
            line = file.readline(HEADER_BYTES_MAX)
    except OSError as e:
        raise InputLogError(
            f"cannot read {path}: {e.strerror or e}; name a file written by --record"
        ) from None
    except ValueError as e:
        raise InputLogError(f"{str(path)!r} is no name of a file ({e})") from None
    try:
        header = json.loads(line)
        if not isinstance(header, dict) or "record" not in header:
            raise ValueError("not a header")
    except (ValueError, RecursionError):
        raise InputLogError(
            f"{path} is no record of a node; name a file written by --record"
        ) from None
    return header, _inputs(path, len(line))


def _inputs(path: Path, start: int) -> Iterator[LoggedInput]:
    with path.open("rb") as file:
        file.seek(start)
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            kind, size = _HEAD.unpack(head)
            if kind > max(Input) or size > INPUT_BYTES_MAX:
                raise InputLogError("the record is damaged in the middle; what came before is good")
            data, tail = file.read(size), file.read(_DIGEST.size)
            if len(data) < size or len(tail) < _DIGEST.size:
                return  # The node was killed while it wrote this input.
            yield LoggedInput(Input(kind), data, _DIGEST.unpack(tail)[0])


def digest(effects: Iterable[Effect[Any]], codec: Codec[Any], seed: int) -> int:
    """A number that differs if any effect differs; messages count as their bytes."""
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
                if (effect.index, effect.head, effect.members) != (None, None, None):
                    log = (effect.index, effect.head, effect.members)
                    seed = crc32(repr(log).encode(), seed)
            case Store():
                seed = crc32(repr(effect.number).encode(), seed)
                for record in effect.records:  # The head of entries has a checksum of their body.
                    known = record.head if isinstance(record, Entries) else record
                    seed = crc32(repr(known).encode(), seed)
            case _:
                seed = crc32(repr(effect).encode(), seed)
    return seed
