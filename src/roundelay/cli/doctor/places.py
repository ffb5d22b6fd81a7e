"""Looks at the directories and files of a node. What is written there has no name, and is gone."""

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from roundelay.cli.doctor.facts import Control, Disk, Key
from roundelay.runtime.client import ClientError, control_directory, control_path, own_directory
from roundelay.runtime.control import PATH_BYTES_MAX, check_place
from roundelay.runtime.errors import RoundelayError
from roundelay.runtime.settings import Settings

SYNCS = 20
"""How many syncs are timed. Fewer: one slow sync counts much; more: a slow disk takes seconds."""
SYNC_BYTES = 200
"""Bytes before each sync: a small packet with its head."""
ROOM_BYTES = 1 << 20
MOUNTS = Path("/proc/mounts")


def disks(told: Settings) -> tuple[Disk, ...]:
    """The disk of every directory that the settings name."""
    named = [(name, getattr(told, name)) for name in ("journal", "state", "trace", "record")]
    return tuple(disk(name, path) for name, path in named if path is not None)


def disk(purpose: str, path: Path) -> Disk:
    """The disk that holds a directory, or that would hold it once it is made."""
    place = existing(path)
    failure = _failure(place)
    times: list[float] = []
    if not failure and purpose in ("journal", "state"):
        try:
            times = _sync_times_s(place)
        except OSError as e:
            failure = f"nothing can be written below {place} ({e.strerror or e})"
    return Disk(
        purpose,
        path,
        failure,
        filesystem(place.resolve(), _mounts()),
        shutil.disk_usage(place).free,
        median(times) * 1e3 if times else None,
        max(times) * 1e3 if times else None,
    )


def existing(path: Path) -> Path:
    """The path, or the nearest of its parents that there is."""
    place = path.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return place


def _failure(place: Path) -> str:
    if not place.is_dir():
        return f"{place} is not a directory"
    if not os.access(place, os.W_OK | os.X_OK):
        return f"this user may not write to {place}"
    return ""


def _sync_times_s(place: Path) -> list[float]:
    """The times of single syncs in a file whose blocks are there, as those of a journal are."""
    times = []
    with tempfile.TemporaryFile(dir=place, buffering=0) as file:
        file.write(os.urandom(ROOM_BYTES))
        os.fsync(file.fileno())
        for i in range(SYNCS):
            os.pwrite(file.fileno(), os.urandom(SYNC_BYTES), i * SYNC_BYTES)
            before = time.monotonic()
            os.fdatasync(file.fileno())
            times.append(time.monotonic() - before)
    return times


def _mounts() -> str:
    with contextlib.suppress(OSError):
        return MOUNTS.read_text(errors="replace")
    return ""


def filesystem(place: Path, mounts: str) -> str | None:
    """The kind of file system that holds a directory, by the kernel's table of mounts."""
    best, kind = "", None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3:
            continue
        at = fields[1].replace("\\040", " ")
        if len(at) >= len(best) and place.is_relative_to(at):
            best, kind = at, fields[2]
    return kind


def control(told: Settings | None) -> Control:
    """The place of the control socket: of the settings, or that which commands look into."""
    if told is None:
        failure = ""
        try:
            own_directory()
        except ClientError as e:
            failure = str(e)
        return Control(str(control_directory()), failure)
    path = told.control or control_path(told.group, told.node)
    if len(os.fsencode(path)) > PATH_BYTES_MAX:
        return Control(
            str(path),
            f"the path has more than {PATH_BYTES_MAX} bytes; name a shorter one with --control",
        )
    place = existing(path.parent)
    failure = _failure(place)
    if not failure and place == path.parent.absolute():
        try:
            check_place(path)
        except RoundelayError as e:
            failure = str(e)
        except OSError as e:
            failure = f"cannot look into {place} ({e.strerror or e})"
    return Control(str(path), failure)


def key(told: Settings) -> Key | None:
    if told.key is None:
        return None
    try:
        from roundelay.runtime.key_files import read_keys  # Needs the extra `sealed`.
    except ModuleNotFoundError:
        return None  # The finding about that extra says so.
    try:
        read_keys(told.key)
    except RoundelayError as e:
        return Key(told.key, str(e))
    return Key(told.key, "")
