"""A new generation of a log, begun by an operator after a majority was lost for good.

No group ever does this by itself. At the survivor with the best log, `begin` appends a mark of the
next generation and makes it the voter of an imaginary view of the survivors; at every other one
`follow` only does the latter, and the node fetches the best log when they meet. Logs of a greater
generation are better, so what the others have beyond it is cut off; who knew some of that to be
committed stops with a `ForkError`.
"""

import time
from pathlib import Path

from roundelay.core.ids import NodeId, ViewId
from roundelay.core.log import Mark
from roundelay.group.log.generation import beginning, later_view, standing_of
from roundelay.journal.directory import owner, read_life
from roundelay.journal.errors import JournalError
from roundelay.journal.files import Files, OsFiles, replace_file
from roundelay.journal.journal import Journal
from roundelay.journal.policy import Policy, parse_policy


def begin(path: Path, survivors: tuple[NodeId, ...], files: Files | None = None) -> Mark:
    """Begin the next generation with the log in `path`, the directory of a stopped node in its
    group; the mark. JournalError if the node runs, is no survivor, or has no log."""
    files = files or OsFiles()
    journal, node = _opened(path, survivors, files)
    try:
        if not journal.log:
            raise JournalError(f"the journal {path} is empty; begin with another survivor's")
        stored = _stored(path)
        wall_us = time.time_ns() // 1000
        view = later_view(node, journal.place, stored, wall_us)
        mark = beginning(journal.kept, journal.place, view, survivors)
        journal.snapshots.drop_behind(mark.base)
        journal.append([mark])
        journal.sync()
        noted = journal.set_able()
    finally:
        in_order = journal.close()
    _demand(path, noted and in_order)
    _write_standing(path, view, files)
    return mark


def follow(
    path: Path, survivors: tuple[NodeId, ...], view: ViewId, files: Files | None = None
) -> None:
    """Let the node of another survivor join the generation that `begin` began with a mark of the
    term `view`. Its log stays as it is. JournalError as in `begin`."""
    files = files or OsFiles()
    journal, _ = _opened(path, survivors, files)
    try:
        if journal.place.term >= view:
            raise JournalError(
                f"the journal {path} is past view {view}; begin the generation with this one"
            )
        journal.snapshots.drop_behind(journal.place.length)
        noted = journal.set_able()
    finally:
        in_order = journal.close()
    _demand(path, noted and in_order)
    _write_standing(path, view, files)


def _demand(path: Path, noted: bool) -> None:
    """JournalError unless it was noted that the journal may be trusted."""
    if not noted:
        raise JournalError(f"the disk that {path} is on is full; make room, and run this again")


def _opened(path: Path, survivors: tuple[NodeId, ...], files: Files) -> tuple[Journal, NodeId]:
    whose = owner(path)
    if whose is None:
        raise JournalError(f"{path / 'identity'} is missing or damaged: whose journal is it?")
    group, node = whose
    if node not in survivors:
        raise JournalError(
            f"the journal {path} is that of {node!r}, which is none of the survivors "
            f"{', '.join(survivors)}"
        )
    life = read_life(path)
    try:
        policy = parse_policy(life.policy if life is not None else "always")
    except ValueError:
        policy = Policy("always")
    return Journal(path, group, node, policy, files=files), node


def _stored(path: Path) -> bytes | None:
    try:
        return (path / "core").read_bytes()
    except OSError:
        return None


def _write_standing(path: Path, view: ViewId, files: Files) -> None:
    replace_file(files, path / "core", standing_of(_stored(path), view))
