"""Key files on disk: only their owner may read them."""

import contextlib
import os
import stat
from pathlib import Path

from roundelay.runtime.errors import ConfigError, StartError
from roundelay.sealing.keys import KeyFileError, KeyRing, key_file, parse_key_file

KEY_FILE_BYTES_MAX = 4096
"""Most bytes of a key file that are read. A larger file holds no key."""


def read_keys(path: Path) -> KeyRing:
    """The keys of a file, or a StartError or ConfigError."""
    try:
        # Without waiting: a pipe has no writer, say.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as e:
        raise StartError(
            f"cannot read the key file {path} ({e.strerror}); make one with: roundelay keygen -o "
            f"{path}"
        ) from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is not a file; name a key file")
        if found.st_uid not in (os.geteuid(), 0):
            raise StartError(
                f"the key file {path} belongs to another user, who could change it; copy it, or "
                "run this node as its owner"
            )
        if found.st_mode & 0o077:
            raise StartError(
                f"others can read the key file {path}; take that away with: chmod 600 {path}; and "
                "if they may have read it, change the key"
            )
        raw = os.read(handle, KEY_FILE_BYTES_MAX + 1)
    except OSError as e:
        raise StartError(f"cannot read the key file {path} ({e.strerror})") from None
    finally:
        os.close(handle)
    try:
        if len(raw) > KEY_FILE_BYTES_MAX:
            raise KeyFileError("it is too large")
        return parse_key_file(raw.decode("ascii"))
    except (KeyFileError, UnicodeDecodeError) as e:
        why = e if isinstance(e, KeyFileError) else "it is not text"
        raise ConfigError(
            f"{path} is no key file: {why}; make one with: roundelay keygen -o {path}"
        ) from None


def write_keys(path: Path, keys: KeyRing, *, replace: bool) -> None:
    """Write a key file, whole or not at all; OSError if that fails, FileExistsError if there is one
    already that is not to be replaced. One that is replaced stays its owner's, also if root does
    this."""
    if not replace:
        _write(path, keys, None)
        return
    place = path.resolve()  # A link stays one.
    beside = place.with_name(f".{place.name}.new")
    beside.unlink(missing_ok=True)  # Somebody was interrupted; or has put a link there.
    _write(beside, keys, place.stat())
    try:
        os.replace(beside, place)
    except OSError:
        beside.unlink()
        raise


def _write(path: Path, keys: KeyRing, owner: os.stat_result | None) -> None:
    """Write a file that did not exist before; none is left behind if that fails."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(handle, "wb") as file:
            os.fchmod(handle, 0o600)
            if owner is not None and owner.st_uid != os.geteuid():
                os.fchown(handle, owner.st_uid, owner.st_gid)
            file.write(key_file(keys).encode("ascii"))
            file.flush()
            os.fsync(handle)
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink()
        raise
