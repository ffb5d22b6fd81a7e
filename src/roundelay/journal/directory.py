"""The directory of one node: its lock, its owner, and what is known of the machine.

The file `machine` is replaced when a journal is opened and closed, and when it finds damage. It
holds one line of JSON: the boot id of the machine; whether the journal was closed in order, and
where the log ended then; the policy of that life; where the log begins; why the node is not able,
if it is not; and where a reader met damage.
"""

import contextlib
import fcntl
import json
import os
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

from roundelay.core.value import value
from roundelay.journal.errors import JournalError
from roundelay.journal.files import Files, replace_file

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def group_directory(path: Path, group: str) -> Path:
    """Where under `journal=PATH` the files of a group lie."""
    return path / quote(group, safe="")


def boot_id() -> str:
    """What changes whenever the machine starts; empty if the machine does not tell."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


@value
class Life:
    """What the file `machine` tells of the last life of the journal."""

    boot: str
    clean: bool
    policy: str
    start: int
    """The place where the log began."""
    end: int
    """If it was closed in order: the place where the log ended."""
    committed: int
    """The same: how many entries were known to be committed."""
    unable: str
    """Why the node is not able, until it is able again; empty if it is."""
    damaged: tuple[tuple[str, int], ...] = ()
    """Where damage was found since: name of the segment file, offset."""


def read_life(path: Path) -> Life | None:
    """None if the file is missing or makes no sense."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        found = json.loads((path / "machine").read_bytes())
        return Life(
            boot=str(found["boot"]),
            clean=found["clean"] is True,
            policy=str(found["policy"]),
            start=int(found["start"]),
            end=int(found["end"]),
            committed=int(found["committed"]),
            unable=str(found["unable"]),
            damaged=tuple((str(name), int(offset)) for name, offset in found["damaged"]),
        )
    return None


def write_life(files: Files, path: Path, life: Life) -> None:
    data = json.dumps(asdict(life), sort_keys=True).encode() + b"\n"
    replace_file(files, path / "machine", data)


class Lock:
    """Keeps other processes from writing to the directory of a node."""

    def __init__(self, path: Path) -> None:
        """JournalError if another process has it."""
        self._fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._fd)
            raise JournalError(
                f"the journal {path} is in use by a running node; stop that one, or give this node "
                "a directory of its own"
            ) from None

    def release(self) -> None:
        os.close(self._fd)


def owner(path: Path) -> tuple[str, str] | None:
    """Group and node that the directory belongs to; None if it does not say."""
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
        found = json.loads((path / "identity").read_bytes())
        return str(found["group"]), str(found["node"])
    return None


def check_owner(files: Files, path: Path, group: str, node: str) -> bool:
    """Make the directory this node's if it is nobody's. Whether it was this node's before;
    JournalError if it is another's."""
    found = owner(path)
    if found == (group, node):
        return True
    if found is not None:
        raise JournalError(
            f"the journal {path} belongs to node {found[1]!r} of group {found[0]!r}; give {node!r} "
            "a directory of its own"
        )
    data = json.dumps({"group": group, "node": node}, sort_keys=True).encode() + b"\n"
    replace_file(files, path / "identity", data)
    return False
