"""A state that all nodes of a group share, also through partitions and crashes: not a program, but
what `counter.py`, `kv.py` and `work_queue.py` have in common. Take it as it is, or copy it.

All nodes begin with the same state and apply the same commands in the same order. Four rules keep
a node that is cut off from going its own way.

1. Commands count only in *primary* views. There is never more than one of these at a time.
2. All messages are *safe*. What one node delivers in a primary view, every member of that view
   delivers before it goes to another view, unless it crashes. So what a node delivers there is
   *certain*: wherever members agree later, by the next two rules, one of them applied it too.
3. When a primary view begins, its members tell each other what they have, and all take over what
   is newest: that of a node which was in the last primary view. Now they agree, and go on.
4. A node that has just started and remembers nothing has a vote once it is in a primary view, maybe
   before it was told anything. So members agree only if those that do remember are a majority of
   the voters of the newest view that any of them agreed in. Where nobody remembers anything, the
   group is new if all peers are there; if not, they wait for the others.

What is delivered in the transitional view after a primary one is promised to the members of the
transitional view only. It must be applied, because a node that is not here may have delivered it
in the primary view, where it was certain. But it is not certain here: the next primary view may go
on with the state of a node that has not got it. So nobody is told of it before then.

A node submits its commands again in every new primary view until they are certain. They carry
numbers, and the state comes with the number of the last command of each node, so each counts once.

Without `state`, all of this is in memory. When a majority has crashed before anybody could tell
them what they forgot, it is gone: all nodes have to be restarted, and begin anew.

With `state`, a node keeps its vote through a restart, and keeps what it has as well: without that
its vote would be worth nothing here. So each node writes its copy to that directory and tells the
others, and a change is certain only when every member that has such a directory has it on disk.
What is certain then outlives the crash of all nodes at one time.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import roundelay


class Replica:
    """One node's copy of the state. Derive from it and say what commands do, in `apply`."""

    def __init__(self, group: roundelay.Group, state: Any) -> None:
        """`state` and all commands must be such that JSON can carry them. Where the group keeps its
        own state in a directory, this object keeps its copy there too, and begins with that."""
        self.group = group
        self.node = group.settings.node
        self.keeps = group.settings.state is not None
        """Whether this node's copy is on disk."""
        kept = self.load() if self.keeps else None
        self.state = state if kept is None else kept["state"]
        self.members: tuple[str, ...] = ()
        """Of the primary view that this node is in, or was in last."""
        self.certain = False
        """Whether `state` is what the primary component has; if not, wait for the next change."""
        self._counts: dict[str, int] = {} if kept is None else kept["counts"]
        """How many commands of each node are in the state."""
        self._agreed: list[Any] = [0, ""] if kept is None else kept["agreed"]
        """The last primary view whose members agreed on a state, as far as this node knows."""
        self._voters: list[str] = [] if kept is None else kept["voters"]
        """Those of that view; none: this node remembers nothing."""
        self._view: roundelay.View | None = None
        """The primary view this node is in; None outside."""
        self._open = False
        """Whether its members agreed on a state."""
        self._offers: dict[str, dict[str, Any]] = {}
        """What each member of that view brought along."""
        self._steps = 0
        """How often the state was changed in that view, the agreement on it included."""
        self._saved = 0
        """How many of these steps are on this node's disk."""
        self._kept: dict[str, int] = {}
        """How many of them each member that keeps its copy has on disk."""
        self._own: list[Any] = []
        """Commands of this node that are not certain yet."""
        self._sent = 0
        """How many of these were sent in this view."""
        self._sending = asyncio.Lock()
        self._done: int | None = None
        """How many commands of this node are certain, those of its earlier lives included."""

    def apply(self, sender: str, command: Any) -> None:
        """Change the state. It must depend on nothing but the state, the members, and this."""
        raise NotImplementedError

    def begin(self) -> None:
        """The members of a new primary view agreed on the state; the same holds as for `apply`."""

    @property
    def waiting(self) -> int:
        """How many commands of this node are not certain yet."""
        return len(self._own)

    async def submit(self, command: Any) -> None:
        """Have a command applied once by everybody: now, or when this node is with the others."""
        self._own.append(command)
        await self._send_own()

    async def changes(self) -> AsyncIterator[None]:
        """Go on with the group until it is left. Yields when the state became certain, after every
        change of it, and when this node is in a view that is not primary, where nothing is."""
        async for event in self.group:
            if isinstance(event, roundelay.View):
                self.certain = False
                if not event.transitional:
                    await self._enter(event)
                    if not event.primary:
                        yield
            elif self._view is not None:
                self._hear(event.sender, json.loads(event.payload))
                # The view of a message is the transitional one if it was delivered in that.
                if event.view.primary and self._open:
                    await self._keep()
                    self.certain = all(steps == self._steps for steps in self._kept.values())
                    if self.certain:
                        await self._ascertain()
                        yield
                elif len(self._offers) == len(self.members):
                    yield  # They cannot agree.

    async def _enter(self, view: roundelay.View) -> None:
        self._view = None
        self._open = False
        self._sent = 0
        if view.primary:
            self._view = view
            self.members = view.members
            self._offers = {}
            offer = {**self._copy(), "keeps": self.keeps}
            await self._send(view=view.id, offer=offer)

    def _hear(self, sender: str, message: dict[str, Any]) -> None:
        assert self._view is not None
        if "view" in message and message["view"] != list(self._view.id):
            return  # It came too late for its own view.
        if "offer" in message:
            self._offers[sender] = message["offer"]
            if len(self._offers) == len(self.members):
                self._agree(self._view)
        elif "kept" in message:
            self._kept[sender] = message["kept"]
        elif self._open:  # Before that: its sender will repeat it.
            self._count(sender, message)

    def _agree(self, view: roundelay.View) -> None:
        """Take over the newest state. Where several are of one view, any of them has everything
        that was certain in it; all members choose the same."""
        offers = sorted(self._offers.items())
        newest = max((offer for _, offer in offers), key=lambda offer: offer["agreed"])
        if not self._enough(newest["voters"]):
            return
        self._open = True
        self.state, self._counts = newest["state"], dict(newest["counts"])
        self._agreed, self._voters = list(view.id), list(view.voters)
        self._steps, self._saved = 1, 0
        self._kept = {node: 0 for node, offer in offers if offer["keeps"]}
        self.begin()

    def _enough(self, voters: list[str]) -> bool:
        """Whether no later state than the newest that is here can be elsewhere."""
        if not voters:
            return set(self.members) >= set(self.group.settings.peers)
        present = [v for v in voters if v in self._offers and self._offers[v]["voters"]]
        return 2 * len(present) > len(voters)

    def _count(self, sender: str, message: dict[str, Any]) -> None:
        """Apply the next command of a node. Others are copies, or will be sent again in order."""
        if message["number"] == self._counts.get(sender, 0) + 1:
            self._counts[sender] = message["number"]
            self._steps += 1
            self.apply(sender, message["command"])

    async def _keep(self) -> None:
        """Have what is new on disk, and tell the others."""
        if self.keeps and self._saved < self._steps:
            self.save(self._copy())
            self._saved = self._steps
            await self._send(view=self._agreed, kept=self._saved)

    def _copy(self) -> dict[str, Any]:
        return {
            "state": self.state,
            "counts": self._counts,
            "agreed": self._agreed,
            "voters": self._voters,
        }

    async def _ascertain(self) -> None:
        """The state is what everybody has: send what waited for that."""
        count = self._counts.get(self.node, 0)
        new = 0 if self._done is None else count - self._done
        self._done = count
        del self._own[:new]
        self._sent = max(0, self._sent - new)
        await self._send_own()

    async def _send_own(self) -> None:
        async with self._sending:  # In the order of their numbers, whoever waits here.
            while self.certain and self._sent < len(self._own):
                assert self._done is not None
                self._sent += 1
                command = self._own[self._sent - 1]
                await self._send(number=self._done + self._sent, command=command)

    async def _send(self, **message: Any) -> None:
        await self.group.send(json.dumps(message).encode(), safe=True)

    # The copy on disk

    def load(self) -> dict[str, Any] | None:
        """What an earlier life of this node saved, or None if there was none."""
        try:
            kept: dict[str, Any] = json.loads(self._path().read_bytes())
        except FileNotFoundError:
            return None
        return kept

    def save(self, copy: dict[str, Any]) -> None:
        """Replace what was saved before; on disk when this returns."""
        path = self._path()
        beside = path.with_suffix(".new")
        with beside.open("w") as file:
            json.dump(copy, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def _path(self) -> Path:
        settings = self.group.settings
        assert settings.state is not None
        return settings.state / f"{quote(settings.group, safe='')}.json"
