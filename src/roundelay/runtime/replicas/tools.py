"""The machines of a node that was started with `--tools`, and the requests of `roundelay kv` and
`roundelay lock` to it.

Requests come to the control socket, and each answer is a line of JSON.

    {"do": "kv", "op": "get", "key": ..}            {"value": .., "version": ..}, null if there is
                                                    none; with "stale" of the state here and now
    {"do": "kv", "op": "set", "key": ..,            {"version": ..}; null if the condition "if", a
     "value": .., "ttl_s": .., "if": ..}            version or "absent", did not hold
    {"do": "kv", "op": "delete", "key": ..}         {"deleted": ..}
    {"do": "kv", "op": "list", "prefix": ..}        a line for every key, then {"end": ..}
    {"do": "kv", "op": "watch", "prefix": ..}       a line for every change from now on; with
                                                    "present" those that are there come first
    {"do": "lock", "name": .., "timeout_s": ..}     {"token": ..} once the lock is held. It is held
                                                    until a line comes, which is answered with
                                                    {"released": ..}, or until the connection ends;
                                                    {"lost": ..} comes when it may be lost
"""

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

from roundelay.runtime.errors import ConfigError, NotPrimaryError
from roundelay.runtime.replicas.replicate import Replicas
from roundelay.structures.many_locks import Locks
from roundelay.structures.maps import Map
from roundelay.structures.turns import Hold

R = TypeVar("R")

TRY_S = 10.0
"""How long a lock that is not waited for may take to answer, in seconds. Too small: a free lock is
not got while a view changes; too large: who wants it at once or not at all waits."""


class Tools:
    """A map `kv` and locks `locks` of a group, for shells and timers."""

    def __init__(self, replicas: Replicas) -> None:
        self._map = replicas.add("kv", Map[str])
        self._locks = replicas.add("locks", Locks)
        replicas.group.requests |= {"kv": self._kv, "lock": self._lock}

    async def _kv(
        self,
        request: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        timeout_s = _seconds(request.get("timeout_s"))
        match request["op"]:
            case "get":
                slot = await self._read(
                    self._map.slot, bool(request.get("stale")), timeout_s, str(request["key"])
                )
                value, version = (None, None) if slot is None else slot[:2]
                _reply(writer, {"value": value, "version": version, **self._age()})
            case "set":
                version = await self._set(request, timeout_s)
                _reply(writer, {"version": version})
            case "delete":
                delete = _within(self._map.delete, timeout_s)
                _reply(writer, {"deleted": await delete(str(request["key"]))})
            case "list":
                prefix = str(request.get("prefix", ""))
                stale = bool(request.get("stale"))
                items = await self._read(self._map.items, stale, timeout_s, prefix)
                for key, value in items.items():
                    _reply(writer, {"key": key, "value": value})
                    await writer.drain()
                _reply(writer, {"end": len(items), **self._age()})
            case "watch":
                await _until_gone(self._watch(request, writer), reader)
            case unknown:
                raise ConfigError(f"there is nothing like {unknown!r} to do with a map")

    async def _set(self, request: dict[str, Any], timeout_s: float | None) -> int | None:
        key, value, condition = str(request["key"]), str(request["value"]), request.get("if")
        ttl_s = _seconds(request.get("ttl_s"))
        if condition is None:
            version: int = await _within(self._map.set, timeout_s)(key, value, ttl_s)
            return version
        expected = None if condition == "absent" else int(condition)
        found: int | None = await _within(self._map.set_if, timeout_s)(key, value, expected, ttl_s)
        return found

    async def _read(self, read: Any, stale: bool, timeout_s: float | None, *args: str) -> Any:
        return read.stale(*args) if stale else await _within(read, timeout_s)(*args)

    def _age(self) -> dict[str, object]:
        """As of when an answer is, and whether others may have written since."""
        return {"index": self._map.index, "primary": self._map.primary}

    async def _watch(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        prefix = str(request.get("prefix", ""))
        changes = self._map.watch(prefix)
        try:
            if request.get("present"):
                for change in self._map.present.stale(prefix):
                    _reply(writer, change._asdict())
                    await writer.drain()
            async for change in changes:
                _reply(writer, change._asdict())
                await writer.drain()
        finally:
            changes.close()

    async def _lock(
        self,
        request: dict[str, Any],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        name, label = str(request["name"]), str(request.get("label", ""))
        timeout_s = _seconds(request.get("timeout_s"))
        hold = await _until_gone(self._acquire(name, label, timeout_s), reader)
        if hold is None:
            return
        lost = asyncio.ensure_future(hold.until_lost())
        over = asyncio.ensure_future(reader.readline())
        try:
            _reply(writer, {"token": hold.token})
            await asyncio.wait((lost, over), return_when=asyncio.FIRST_COMPLETED)
            if not over.done():
                lost.result()  # Raises why the node has ended.
                why = "this node is cut off, so others may get it"
                _reply(writer, {"lost": why if not self._locks.primary else "others have it"})
            if await over:
                _reply(writer, {"released": await hold.release()})
            else:
                self._locks.port.background(hold.release)
        except BaseException:
            self._locks.port.background(hold.release)
            raise
        finally:
            lost.cancel()
            over.cancel()
            await asyncio.gather(lost, over, return_exceptions=True)

    async def _acquire(self, name: str, label: str, timeout_s: float | None) -> Hold:
        try:
            if timeout_s is None or timeout_s > 0:
                return await self._locks.acquire(name, label, timeout_s=timeout_s)
            trying = self._locks.try_acquire(name, label)
            hold = await self._locks.port.limited(trying, TRY_S)
        except TimeoutError:
            hold = None
        if hold is None:
            if not self._locks.primary:
                raise NotPrimaryError("no majority is here, so nobody can get a lock")
            raise TimeoutError(f"{self._locks.holder.stale(name) or 'somebody'} holds the lock")
        return hold


async def _until_gone(work: Coroutine[Any, Any, R], reader: asyncio.StreamReader) -> R | None:
    """What `work` returns; None, and the end of `work`, if the client goes away, or says
    anything, before."""
    working = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


def _within(call: Any, timeout_s: float | None) -> Any:
    return call if timeout_s is None else call.within(timeout_s)


def _seconds(given: object) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError("not a number of seconds")
    return float(given)


def _reply(writer: asyncio.StreamWriter, document: dict[str, Any]) -> None:
    writer.write(json.dumps(document).encode() + b"\n")
