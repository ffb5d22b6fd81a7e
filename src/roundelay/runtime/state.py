"""The state directory of a node: what must survive a crash.

    lock          held while the node runs
    identity      the group and the node that it belongs to, a line of JSON
    incarnation   the number of the last life that began here; replaced at every start
    core          the last state that the core asked to store

A file is replaced as a whole: see `replace_file`. If `identity` is damaged or missing, nobody knows
to which node the other files belong: they are not used, and the node is a new one.
"""

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from roundelay.journal.files import NO_ROOM, Files, OsFiles, replace_file
from roundelay.runtime.descriptors import exhausted, exhausted_error
from roundelay.runtime.errors import StartError, StateError
from roundelay.runtime.incarnation import next_incarnation, parse_incarnation
from roundelay.runtime.machine import Machine
from roundelay.runtime.node_log import log


class Storage(Protocol):
    """Where a node stores the state of its core."""

    @property
    def incarnation(self) -> int: ...

    @property
    def stored(self) -> bytes | None: ...

    def save(self, state: bytes) -> None: ...

    def close(self) -> None: ...


class NoStorage:
    """Stores nothing: the node is a new one at every start."""

    stored: bytes | None = None

    def __init__(self, machine: Machine) -> None:
        self.incarnation = next_incarnation(machine)

    def save(self, state: bytes) -> None:
        """Does nothing: without storage, the clock makes view numbers unique."""

    def close(self) -> None:
        """Does nothing."""


class StateDirectory:
    """The directory of one node; locked while it is open."""

    def __init__(
        self,
        directory: Path,
        group: str,
        node: str,
        machine: Machine,
        *,
        kind: str = "state directory",
        error: type[StartError] = StateError,
        files: Files | None = None,
        make_room: Callable[[], bool] = lambda: False,
    ) -> None:
        """Lock it and begin the next life, or raise a StartError: `error`, if the directory is at
        fault, which is called a `kind` there. `make_room` is called when the disk is full, and
        says whether there is room now."""
        self._kind = kind
        self._error = error
        self.path = directory / quote(group, safe="")
        self._files = files or OsFiles()
        self._make_room = make_room
        self._lock: int | None = None
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as e:
            raise self._unusable(e) from None
        try:
            self._acquire_lock()
            self.ours = self._is_ours(group, node)
            """Whether an earlier life of this node wrote the files that were found."""
            self.stored: bytes | None = self._read("core") if self.ours else None
            last = self._read("incarnation") or b""
            self.incarnation = next_incarnation(machine, parse_incarnation(last))
            if not self.ours:
                self._remove("core")
                self._replace("identity", _identity(group, node))
            self._replace("incarnation", f"{self.incarnation}\n".encode())
        except OSError as e:
            self.close()
            raise self._unusable(e) from None
        except StartError:
            self.close()
            raise

    def save(self, state: bytes) -> None:
        """Durable when this returns."""
        try:
            self._replace("core", state)
        except OSError as e:
            raise self._unusable(e) from None

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _acquire_lock(self) -> None:
        assert self._lock is not None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._error(
                f"the {self._kind} {self.path} is in use by a running node; stop that one, or "
                "give this node a directory of its own"
            ) from None

    def _is_ours(self, group: str, node: str) -> bool:
        """Whether this node was here before; StateError if another one was."""
        found = self._read("identity")
        if found is None or found == _identity(group, node):
            return found is not None
        with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
            whose = json.loads(found)
            raise self._error(
                f"the {self._kind} {self.path} belongs to node {whose['node']!r} of group "
                f"{whose['group']!r}; give {node!r} a directory of its own"
            )
        log.warning(
            "%s/%s: %s is damaged, so nothing in that directory is used and the node is a new one; "
            "check the disk",
            *(group, node, self.path / "identity"),
        )
        return False

    def _read(self, name: str) -> bytes | None:
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._files.unlink(self.path / name)

    def _replace(self, name: str, data: bytes) -> None:
        try:
            replace_file(self._files, self.path / name, data)
        except OSError as e:
            if e.errno not in NO_ROOM or not self._make_room():
                raise
            replace_file(self._files, self.path / name, data)

    def _unusable(self, error: OSError) -> StartError:
        if exhausted(error):
            return exhausted_error()
        if error.errno in NO_ROOM:
            return self._error(
                f"the {self._kind} {self.path} cannot be written, since its disk is full "
                f"({error.strerror}); free some space, or name another one"
            )
        read_only = error.errno in (errno.EACCES, errno.EROFS, errno.EPERM)
        why = "cannot be written" if read_only else f"cannot be used ({error.strerror})"
        return self._error(
            f"the {self._kind} {self.path} {why}; make it writable for this user, or name "
            "another one"
        )


def _identity(group: str, node: str) -> bytes:
    return json.dumps({"group": group, "node": node}, sort_keys=True).encode() + b"\n"
