"""Replay of a record: a fresh core gets the recorded inputs, and must give the recorded effects."""

from collections.abc import Callable
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import Any, cast

from roundelay.core.contract import Core, LogCore, Origin
from roundelay.core.effects import Effect
from roundelay.core.ids import Service
from roundelay.runtime.core_setup import CoreSetup
from roundelay.runtime.input_log import Input, InputLogError, LoggedInput, digest, read, split_burst
from roundelay.runtime.log_inputs import (
    decode_append,
    decode_kept,
    decode_loaded,
    decode_numbers,
    decode_open_session,
    decode_snapshot_part,
)
from roundelay.wire.frame import Frame, decode
from roundelay.wire.primitives import WireError

Progress = Callable[[int, int], None]
"""Called with the bytes of the file that are done, and with its size in bytes."""


@dataclass(frozen=True, slots=True)
class Replay:
    """How far a record agrees with a fresh core."""

    node: str
    engine: str
    inputs: int
    effects: int
    differs_at: int | None
    """The number of the first input whose effects were others, from 0; None if there is none."""
    differs_in: str = ""
    """That input, in words."""


def replay(path: Path, progress: Progress | None = None) -> Replay:
    """Give the inputs of a record to a fresh core, or raise InputLogError."""
    header, inputs = read(path)
    try:
        setup = CoreSetup.from_json(header)
        if setup.journal:
            first = next(inputs, None)
            if first is None or first.kind is not Input.KEPT:
                raise ValueError("it does not tell what the journal held")
            setup = setup.with_journal(decode_kept(first.data))
        core = setup.make_core()
    except Exception as e:  # A damaged header can make anything fail.
        raise InputLogError(
            f"{path} is damaged, or was made by another version of Roundelay "
            f"({type(e).__name__}: {e}); copy it again, or replay it with that version"
        ) from None
    origins: dict[bytes, Origin] = {}
    size = _size(path)
    seen = count = effect_count = done = 0
    for logged in inputs:
        try:
            effects = _apply(core, logged, origins, sealed=setup.sealed)
            seen = digest(effects, core.codec, seen)
        except InputLogError:
            raise
        except Exception as e:  # A node fails on such an input before it writes it to its record.
            raise InputLogError(
                f"{path} is damaged: input {count} ({_description(logged)}) breaks the core "
                f"({type(e).__name__}: {e}); copy it again; what came before is the same"
            ) from None
        effect_count += len(effects)
        if seen != logged.digest:
            return Replay(
                setup.boot.node, setup.engine, count, effect_count, count, _description(logged)
            )
        count += 1
        done += len(logged.data)
        if progress is not None:
            progress(done, size)
    return Replay(setup.boot.node, setup.engine, count, effect_count, None)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as e:
        raise InputLogError(
            f"cannot read {path}: {e.strerror}; name a file written by --record"
        ) from e


def _apply(
    core: Core[Any], logged: LoggedInput, origins: dict[bytes, Origin], *, sealed: bool
) -> list[Effect[Any]]:
    match logged.kind:
        case Input.START:
            return core.start()
        case Input.ACCEPT:
            head, _, payload = logged.data.partition(b"\n")
            service, destinations = loads(head)
            to = None if destinations is None else tuple(destinations)
            core.accept(payload, Service(service), to)
            return []
        case Input.FLUSH:
            return core.flush()
        case Input.RECEIVE:
            frame = _frame(logged.data, core, origins, sealed=sealed)
            return core.receive(frame.origin, frame.message)
        case Input.BURST:
            datagrams = split_burst(logged.data)
            frames = [_frame(data, core, origins, sealed=sealed) for data in datagrams]
            return core.receive_many(frames[0].origin, [frame.message for frame in frames])
        case Input.EXPIRE:
            return core.expire(logged.data.decode())
        case Input.LEAVE:
            return core.leave()
        case _:
            return _apply_to_log(cast("LogCore[Any]", core), logged)


def _apply_to_log(core: LogCore[Any], logged: LoggedInput) -> list[Effect[Any]]:
    data = logged.data
    match logged.kind:
        case Input.APPEND:
            core.append(*decode_append(data))
            return []
        case Input.OPEN_SESSION:
            core.open_session(*decode_open_session(data))
            return []
        case Input.SYNC:
            return core.sync(*decode_numbers(data, 1))
        case Input.STORED:
            return core.stored(*decode_numbers(data, 1))
        case Input.UNSTORED:
            return core.unstored(*decode_numbers(data, 1))
        case Input.LOADED:
            return core.loaded(*decode_loaded(data))
        case Input.SNAPSHOT_LOADED:
            return core.snapshot_loaded(*decode_snapshot_part(data))
        case Input.HELD:
            first, snapshot = decode_numbers(data, 2)
            return core.held(first, None if snapshot < 0 else snapshot)
        case kind:
            raise InputLogError(f"the record is damaged: {kind.name.lower()} in the middle")


def _frame(
    data: bytes, core: Core[Any], origins: dict[bytes, Origin], *, sealed: bool
) -> Frame[Any]:
    try:
        return decode(data, core.codec, origins, sealed=sealed)
    except WireError as e:
        raise InputLogError(f"the record holds a damaged datagram ({e}); copy it again") from e


def _description(logged: LoggedInput) -> str:
    """An input in words. Its bytes may be damaged."""
    shown = f"{len(logged.data)} bytes"
    if logged.kind is Input.EXPIRE:
        name = logged.data.decode(errors="replace")
        shown = name if name.isprintable() and len(name) < 40 else shown
    return f"{logged.kind.name.lower()} {shown}"
