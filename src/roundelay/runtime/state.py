"""The state directory of a node: what must survive a crash.

    lock          held while the node runs
    identity      whose it is: the group and the node, a line of JSON
    incarnation   starts of this node, counted from 0; written before a start
    core          what the core asked to keep

A file is replaced as a whole: written beside, synced, renamed, and the directory synced. Whoever
finds `identity` and no readable `incarnation` has started before and lost count: then the clock
counts, as it does for a node that keeps nothing.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from roundelay.runtime.errors import StateError


class Storage(Protocol):
    """Where a node keeps what its core asks to keep."""

    @property
    def incarnation(self) -> int: ...

    @property
    def stored(self) -> bytes | None: ...

    def save(self, state: bytes) -> None: ...

    def close(self) -> None: ...


class NoStorage:
    """Keeps nothing: the node is a new one at every start, and the clock numbers its lives."""

    stored: bytes | None = None

    def __init__(self) -> None:
        self.incarnation = clock_incarnation()

    def save(self, state: bytes) -> None:
        """Nothing: the clock makes ring numbers unique."""

    def close(self) -> None:
        """Nothing."""


def clock_incarnation() -> int:
    """A number greater than every one that was counted or taken from the clock before."""
    return int(time.time()) & 0xFFFF_FFFF


class StateDirectory:
    """One node's place on disk, its own as long as it is open."""

    def __init__(self, directory: Path, group: str, node: str) -> None:
        """Lock it and begin the next incarnation, or raise StateError."""
        self.path = directory / quote(group, safe="")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise self._unusable(e) from None
        try:
            self._take_lock()
            self._check_identity(group, node)
            self.stored: bytes | None = self._read("core")
            self.incarnation = self._next_incarnation()
            self._replace("identity", _identity(group, node))
            self._replace("incarnation", f"{self.incarnation}\n".encode())
        except OSError as e:
            os.close(self._lock)
            raise self._unusable(e) from None
        except StateError:
            os.close(self._lock)
            raise

    def save(self, state: bytes) -> None:
        """Durable when this returns."""
        try:
            self._replace("core", state)
        except OSError as e:
            raise self._unusable(e) from None

    def close(self) -> None:
        os.close(self._lock)

    def _take_lock(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StateError(
                f"the state directory {self.path} is in use by a running node; stop that one, or "
                "give this node a directory of its own"
            ) from None

    def _check_identity(self, group: str, node: str) -> None:
        found = self._read("identity")
        if found is None or found == _identity(group, node):
            return
        with contextlib.suppress(ValueError, TypeError, KeyError):
            whose = json.loads(found)
            raise StateError(
                f"the state directory {self.path} belongs to node {whose['node']!r} of group "
                f"{whose['group']!r}; give {node!r} a directory of its own"
            )
        raise StateError(
            f"{self.path / 'identity'} is damaged; if the directory is this node's, delete that "
            "file and start again"
        )

    def _next_incarnation(self) -> int:
        known = self._read("identity") is not None
        raw = self._read("incarnation")
        if raw is None:
            return clock_incarnation() if known or self.stored is not None else 0
        try:
            return int(raw.decode("ascii")) + 1
        except ValueError:
            return clock_incarnation()

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def _replace(self, name: str, data: bytes) -> None:
        beside = self.path / f"{name}.new"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, data)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(beside, self.path / name)
        directory = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _unusable(self, error: OSError) -> StateError:
        read_only = error.errno in (errno.EACCES, errno.EROFS, errno.EPERM)
        why = "cannot be written" if read_only else f"cannot be used ({error.strerror})"
        return StateError(
            f"the state directory {self.path} {why}; make it writable for this user, or name "
            "another one"
        )


def _identity(group: str, node: str) -> bytes:
    return json.dumps({"group": group, "node": node}, sort_keys=True).encode() + b"\n"
