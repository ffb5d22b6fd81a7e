"""A record run through a fresh core: what the node did is what the core does."""

from collections.abc import Callable
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any

from roundelay.core.contract import Origin
from roundelay.core.effects import Effect
from roundelay.core.ids import Service
from roundelay.group.stack import Stack
from roundelay.runtime.plan import Plan
from roundelay.runtime.tape import Entry, Input, TapeError, digest, read, split_run
from roundelay.wire.frame import Frame, decode
from roundelay.wire.primitives import WireError

Progress = Callable[[int, int], None]
"""Told how much of the file is done, and its size; in bytes."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How far a record agrees with a fresh core."""

    node: str
    engine: str
    inputs: int
    effects: int
    differs_at: int | None
    """The first input after which the effects were others; None if there is none."""
    differs_in: str = ""
    """What that input was."""


def replay(path: Path, progress: Progress | None = None) -> Replay:
    """Run a record through a fresh core, or raise TapeError."""
    header, entries = read(path)
    try:
        plan = Plan.from_json(header)
        stack = plan.stack()
    except Exception as e:  # Whatever a header says that no node of ours has written.
        raise TapeError(
            f"{path} is damaged, or was made by another version of Roundelay "
            f"({type(e).__name__}: {e}); copy it again, or replay it with that version"
        ) from None
    origins: dict[bytes, Origin] = {}
    size = _size(path)
    seen = count = effect_count = done = 0
    for entry in entries:
        try:
            effects = _apply(stack, entry, origins)
            seen = digest(effects, stack.codec, seen)
        except TapeError:
            raise
        except Exception as e:  # A node ends with such an input and does not record it.
            raise TapeError(
                f"{path} is damaged: input {count} ({_told(entry)}) breaks the core "
                f"({type(e).__name__}: {e}); copy it again; what came before is the same"
            ) from None
        effect_count += len(effects)
        if seen != entry.digest:
            return Replay(plan.boot.node, plan.engine, count, effect_count, count, _told(entry))
        count += 1
        done += len(entry.data)
        if progress is not None:
            progress(done, size)
    return Replay(plan.boot.node, plan.engine, count, effect_count, None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as e:
        raise TapeError(f"cannot read {path}: {e.strerror}; name a file written by --record") from e


def _apply(stack: Stack, entry: Entry, origins: dict[bytes, Origin]) -> list[Effect[Any]]:
    match entry.kind:
        case Input.START:
            return stack.start()
        case Input.ACCEPT:
            head, _, payload = entry.data.partition(b"\n")
            service, destinations = loads(head)
            to = None if destinations is None else tuple(destinations)
            stack.accept(payload, Service(service), to)
            return []
        case Input.FLUSH:
            return stack.flush()
        case Input.RECEIVE:
            frame = _frame(entry.data, stack, origins)
            return stack.receive(frame.origin, frame.message)
        case Input.RUN:
            run = [_frame(data, stack, origins) for data in split_run(entry.data)]
            return stack.receive_many(run[0].origin, [frame.message for frame in run])
        case Input.EXPIRE:
            return stack.expire(entry.data.decode())
        case Input.LEAVE:
            return stack.leave()


def _frame(data: bytes, stack: Stack, origins: dict[bytes, Origin]) -> Frame[Any]:
    try:
        return decode(data, stack.codec, origins)
    except WireError as e:
        raise TapeError(f"the record holds a damaged datagram ({e}); copy it again") from e


def _told(entry: Entry) -> str:
    """An input for people; its bytes may be damaged."""
    shown = f"{len(entry.data)} bytes"
    if entry.kind is Input.EXPIRE:
        name = entry.data.decode(errors="replace")
        shown = name if name.isprintable() and len(name) < 40 else shown
    return f"{entry.kind.name.lower()} {shown}"
