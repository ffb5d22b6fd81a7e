"""One segment file of a log: its header, its sparse index, and reading it.

The header is 64 bytes: magic `RDJ1`, u16 version, u16 0, log id, u32 generation, u64 first index,
u64 wall clock in microseconds, u64 place of the file's first byte, u64 0, u32 CRC-32. What follows
are frames, the first one a carry; zeros, or the end of the file, end them.
"""

import errno
import struct
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from roundelay.core.checksum import crc32
from roundelay.core.ids import ViewId
from roundelay.core.log import LOG_ID_BYTES, Checkpoint, Place
from roundelay.core.value import value
from roundelay.journal.errors import JournalError
from roundelay.journal.files import Files, replace_file
from roundelay.journal.frame import (
    CARRY,
    CHECKPOINT,
    END,
    OVERHEAD_BYTES,
    RECORD_BYTES_MAX,
    Bad,
    Carry,
    Found,
    carry_bytes,
    frame,
    place_past,
    read_carry,
    scan,
)
from roundelay.wire.log_record import encode_record
from roundelay.wire.primitives import I64_MAX, U32_MAX, Reader, WireError, Writer

MAGIC = b"RDJ1"
VERSION = 1
SUFFIX = ".log"
CHUNK_BYTES = 1 << 20
"""How much of a file is read at once."""
_FIRST_BYTES = 1 << 13
"""How much of a file is read at once to see how it begins: a start does this with all of them."""
SAMPLE_BYTES = 1 << 16
"""How far apart two points of the sparse index lie. More: a reader that begins in the middle of a
file reads more that it does not need. Less: more memory for journals that are read."""

_HEADER = struct.Struct(f">4sHH{LOG_ID_BYTES}sIQQQQ")
HEADER_BYTES = _HEADER.size + 4


@value
class Header:
    """How a segment file begins."""

    log: bytes
    generation: int
    """Of the log where this segment begins."""
    first: int
    """The index of the first entry, if there is any."""
    wall_us: int
    start: int
    """The place of the file's first byte among all bytes of the log."""
    nonce: int = 0
    """The CRC-32 of the header, with which the checksums of its frames begin."""


def encode_header(header: Header) -> bytes:
    rest = _HEADER.pack(
        *(MAGIC, VERSION, 0, header.log, header.generation),
        *(header.first, header.wall_us, header.start, 0),
    )
    return rest + crc32(rest).to_bytes(4)


def decode_header(data: bytes, path: Path) -> Header | None:
    """The header in the first bytes of a file; None if it is damaged, or no header at all.
    JournalError if it is whole and of another version: what is in the file is not damaged."""
    rest, crc = data[: _HEADER.size], data[_HEADER.size : HEADER_BYTES]
    if len(data) < HEADER_BYTES or crc32(rest).to_bytes(4) != crc:
        return None
    magic, version, _, log, generation, first, wall_us, start, _ = _HEADER.unpack(rest)
    if magic != MAGIC:
        return None
    if version != VERSION:
        raise JournalError(
            f"{path} has format {version}, and this release of Roundelay reads format {VERSION}: "
            "run the release that wrote it"
        )
    return Header(log, generation, first, wall_us, start, int.from_bytes(crc))


def file_name(first: int) -> str:
    return f"{first:020}{SUFFIX}"


def first_of(path: Path) -> int | None:
    """The index in the name of a segment file; None if it is another file."""
    digits = path.name.removesuffix(SUFFIX)
    if path.suffix != SUFFIX or len(digits) != 20 or not digits.isdecimal():
        return None
    return int(digits)


def segment_files(directory: Path) -> list[Path]:
    """The segment files of a directory, the first one first."""
    return sorted(path for path in directory.iterdir() if first_of(path) is not None)


class Walk:
    """Reads the frames of an open file one after the other.

    After the iteration `offset` is where it ended, and `bad` tells why, unless the frames ended
    there. Of a frame only `data[found.at : found.end + 1]` may be used, and before the next one is
    asked for."""

    def __init__(
        self,
        files: Files,
        fd: int,
        header: Header,
        offset: int,
        end: int,
        chunk_bytes: int = CHUNK_BYTES,
    ) -> None:
        self._files = files
        self._chunk_bytes = chunk_bytes
        self._fd = fd
        self._header = header
        self.end = end
        self.offset = offset
        self.bad: Bad | None = None
        self.data = b""

    def __iter__(self) -> Iterator[Found]:
        size = self._chunk_bytes
        while self.offset < self.end:
            start = self.offset
            size = min(size, self.end - start)
            self.data = self._files.pread(self._fd, size, start)
            last = len(self.data) < size or start + size == self.end
            bad: Bad | None = None
            for item in scan(self.data, 0, self._header.start + start, self._header.nonce):
                if type(item) is Bad:
                    bad = item
                    break
                assert isinstance(item, Found)
                yield item
                self.offset = start + item.end + 1
            if bad is None and self.offset < start + len(self.data):
                return
            if last:
                if bad is not None and any(self.data[bad.at :]):
                    self.bad = bad
                return
            size = self._chunk_bytes
            if self.offset == start:
                if bad is not None and not bad.short:
                    self.bad = bad
                    return
                size = max(size, self._wanted()) * 2
                if size > 4 * (RECORD_BYTES_MAX + OVERHEAD_BYTES):
                    self.bad = bad
                    return

    def _wanted(self) -> int:
        """The size that the record at the beginning of the data claims, or that of the data."""
        claimed = int.from_bytes(self.data[:4]) + OVERHEAD_BYTES
        return max(len(self.data), min(claimed, RECORD_BYTES_MAX))


@value
class Sample:
    """A point of the sparse index."""

    place: Place
    """Where the record begins in the log."""
    offset: int
    """Where its frame begins in the file."""


class Segment:
    """A segment file that has been opened."""

    def __init__(
        self, files: Files, path: Path, header: Header, carry: Carry, carry_end: int
    ) -> None:
        self._files = files
        self.path = path
        self.header = header
        self.carry = carry
        self.carry_end = carry_end
        """Where the first frame behind the carry begins."""
        self.end = carry_end
        """Where the frames end."""
        self.committed = 0
        """So many entries were known to be committed when it was begun."""
        self.checkpoint = False
        """Whether the first record is a checkpoint of the place where the segment begins: then the
        segments before it may be removed."""
        self.samples: list[Sample] = []
        """Of a segment that is being written: all. Of another one: read when they are needed."""
        self._fd: int | None = None
        self._opening = threading.Lock()
        """The writer and a thread that reads may want the descriptor at the same time."""

    @property
    def place(self) -> Place:
        """Where in the log it begins."""
        return self.carry.place

    @property
    def start(self) -> int:
        return self.header.start

    def fd(self) -> int:
        with self._opening:
            if self._fd is None:
                self._fd = self._files.open(self.path)
            return self._fd

    def close(self) -> None:
        if self._fd is not None:
            self._files.close(self._fd)
            self._fd = None

    def sample(self, place: Place, offset: int) -> None:
        """Remember where a record begins, if it is far enough from the last one remembered."""
        if not self.samples or offset - self.samples[-1].offset >= SAMPLE_BYTES:
            self.samples.append(Sample(place, offset))

    def forget_behind(self, offset: int) -> None:
        """The frames now end here."""
        self.end = offset
        while self.samples and self.samples[-1].offset >= offset:
            self.samples.pop()
        if offset <= self.carry_end:
            self.checkpoint = False

    def walk(self, offset: int | None = None) -> Walk:
        begin = self.carry_end if offset is None else offset
        return Walk(self._files, self.fd(), self.header, begin, self.end)

    def near(self, place: Place) -> Sample:
        """The last remembered point that is not behind `place`."""
        if not self.samples:
            self.samples = read_index(self.path, self.header, self.end) or self._sampled()
        at = bisect_right(self.samples, place, key=lambda sample: sample.place)
        return self.samples[at - 1] if at else Sample(self.place, self.carry_end)

    def _sampled(self) -> list[Sample]:
        place = self.place
        walk = self.walk()
        for found in walk:
            self.sample(place, walk.offset)
            place = place_past(place, walk.data, found)
        return self.samples


def make_segment(
    files: Files,
    path: Path,
    header: Header,
    carry: Carry,
    committed: int,
    checkpoint: Checkpoint | None = None,
) -> Segment:
    """Begin a segment file; it is whole, and on disk, before it has its name."""
    data = bytearray(encode_header(header))
    nonce = int.from_bytes(data[-4:])
    contents = [carry_bytes(carry)]
    if checkpoint is not None:
        contents.append(encode_record(checkpoint))
    for content in contents:
        at = header.start + len(data)
        data += frame(content, len(content), at, nonce, at, committed) + content + END
    beside = path.with_name(path.name + ".new")
    fd = files.open(beside, create=True)
    try:
        files.fallocate(fd, 0, len(data))
        files.pwritev(fd, [bytes(data)], 0)
        files.fdatasync(fd)
    except OSError:
        with suppress(OSError):
            files.unlink(beside)
        raise
    finally:
        files.close(fd)
    files.rename(beside, path)
    files.sync_directory(path.parent)
    return opened_segment(files, path)


def opened_segment(files: Files, path: Path) -> Segment:
    """A segment that this process has written; OSError if it cannot be read."""
    segment = open_segment(files, path)
    if segment is None:
        raise OSError(errno.EIO, "what was written is not there")
    return segment


def open_segment(files: Files, path: Path) -> Segment | None:
    """The segment in a file, up to the end of the file; None if its header or its carry is
    damaged."""
    fd = files.open(path)
    try:
        header = decode_header(files.pread(fd, HEADER_BYTES, 0), path)
        size = files.size(fd)
        if header is None:
            return None
        walk = Walk(files, fd, header, HEADER_BYTES, size, _FIRST_BYTES)
        carry, checkpoint = None, False
        for found in walk:
            if carry is not None:
                checkpoint = found.kind == CHECKPOINT
                break
            if found.kind != CARRY:
                return None
            with suppress(WireError):
                carry = read_carry(walk.data[found.start : found.end])
            if carry is None:
                return None
            carry_end = HEADER_BYTES + found.end + 1
            committed = found.committed
    finally:
        files.close(fd)
    if carry is None:
        return None
    segment = Segment(files, path, header, carry, carry_end)
    segment.end = size
    segment.committed = committed
    segment.checkpoint = checkpoint
    return segment


def index_path(path: Path) -> Path:
    return path.with_suffix(".idx")


def write_index(files: Files, segment: Segment) -> None:
    """Keep the sparse index of a segment that is finished. It may be lost: it can be made again."""
    w = Writer()
    w.u32(segment.header.nonce)
    w.u64(segment.end)
    for sample in segment.samples:
        w.u64(sample.place.term.seq)
        w.text(sample.place.term.rep)
        w.u64(sample.place.length)
        w.u32(sample.place.opened)
        w.u64(sample.offset)
    data = w.done()
    with suppress(OSError):
        replace_file(files, index_path(segment.path), data + crc32(data).to_bytes(4))


def read_index(path: Path, header: Header, end: int) -> list[Sample] | None:
    """The sparse index beside a segment file; None if it is missing, damaged or another's."""
    try:
        found = index_path(path).read_bytes()
    except OSError:
        return None
    data, crc = found[:-4], found[-4:]
    if crc32(data).to_bytes(4) != crc:
        return None
    r = Reader(data)
    samples: list[Sample] = []
    try:
        if r.u32() != header.nonce or r.u64() != end:
            return None
        while r.more:
            term = ViewId(r.u64(I64_MAX), r.name(may_be_empty=True))
            place = Place(term, r.u64(I64_MAX), r.u32(U32_MAX))
            samples.append(Sample(place, r.u64(end)))
    except WireError:
        return None
    ordered = all(a.offset < b.offset for a, b in pairwise(samples))
    return samples if samples and ordered else None
