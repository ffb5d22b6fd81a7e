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
    except (KeyError, TypeError, ValueError) as e:
        raise TapeError(
            f"{path} was made by another version of Roundelay ({e}); replay it with that one"
        ) from None
    origins: dict[bytes, Origin] = {}
    size = path.stat().st_size
    seen = count = effect_count = done = 0
    for entry in entries:
        effects = _apply(stack, entry, origins)
        seen = digest(effects, stack.codec, seen)
        effect_count += len(effects)
        if seen != entry.digest:
            what = f"{entry.kind.name.lower()} {_shown(entry)}".strip()
            return Replay(plan.boot.node, plan.engine, count, effect_count, count, what)
        count += 1
        done += len(entry.data)
        if progress is not None:
            progress(done, size)
    return Replay(plan.boot.node, plan.engine, count, effect_count, None)


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
            return stack.receive_run(run[0].origin, [frame.message for frame in run])
        case Input.EXPIRE:
            return stack.expire(entry.data.decode())
        case Input.LEAVE:
            return stack.leave()


def _frame(data: bytes, stack: Stack, origins: dict[bytes, Origin]) -> Frame[Any]:
    try:
        return decode(data, stack.codec, origins)
    except WireError as e:
        raise TapeError(f"the record holds a damaged datagram ({e}); copy it again") from e


def _shown(entry: Entry) -> str:
    return entry.data.decode() if entry.kind is Input.EXPIRE else f"{len(entry.data)} bytes"
