"""A state that all nodes of a group share, through partitions and crashes.

This module is not a program: `counter.py`, `kv.py` and `work_queue.py` use it. Import it, or copy
it.

All nodes begin with the same state and apply the same commands in the same order. Four rules keep
the copies equal when nodes are cut off.

1. Commands count only in *primary* views. There is never more than one primary view at a time.
2. All messages are *safe*. If one node delivers a message in a primary view, every member of that
   view delivers it before it goes to another view, unless it crashes. So a command that a node
   delivers there is *certain*: whenever members agree on a state later, by the next two rules, the
   command is in that state.
3. When a primary view begins, its members send each other their states, and all take over the
   newest one: that of a node which was in the last primary view. Then they agree, and go on.
4. A node that has just started and remembers nothing gets a vote in its first primary view, perhaps
   before the others told it anything. So members agree only if those that do remember are a
   majority of the voters of the newest view in which any of them agreed. If no member remembers
   anything, the group is new if all peers are present; if not, the members wait for the missing
   peers.

A message that is delivered in the transitional view after a primary view is promised to the members
of the transitional view only. It must be applied, because a node that is missing here may have
delivered it in the primary view, where it was certain. But it is not certain here: the next primary
view may go on with the state of a node that lacks it. So this module reports it only after the next
primary view has agreed.

A node submits its commands again in every new primary view until they are certain. Commands are
numbered, and the state contains the number of the last command of each node, so each command counts
once.

Without `state`, all of this is in memory. If a majority crashes before the other nodes could pass
the state on, the state is lost: all nodes have to be restarted, and begin anew.

With `state`, a node keeps its vote through a restart. To make this vote useful, it must also keep
its copy of the state. So each node writes its copy to that directory and tells the others, and a
change is certain only when every member that has such a directory has written it to disk. Then
everything that is certain survives the crash of all nodes at one time.
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
    """One node's copy of the state. A subclass says in `apply` what commands do."""

    def __init__(self, group: roundelay.Group, state: Any) -> None:
        """`state` is the state at the first start; JSON must be able to represent it, and all
        commands. If the group has a state directory, this object keeps its copy there too, and
        begins with the copy that it finds."""
        self.group = group
        self.node = group.settings.node
        self.keeps = group.settings.state is not None
        """Whether this node's copy is on disk."""
        kept = self.load() if self.keeps else None
        self.state = state if kept is None else kept["state"]
        self.members: tuple[str, ...] = ()
        """The members of the primary view that this node is in, or was in last."""
        self.certain = False
        """Whether everything in `state` is certain; if not, wait for the next of `changes`."""
        self._counts: dict[str, int] = {} if kept is None else kept["counts"]
        """How many commands of each node are in the state."""
        self._agreed: list[Any] = [0, ""] if kept is None else kept["agreed"]
        """The last primary view whose members agreed on a state, as far as this node knows."""
        self._voters: list[str] = [] if kept is None else kept["voters"]
        """The voters of that view; empty if this node remembers nothing."""
        self._view: roundelay.View | None = None
        """The primary view that this node is in, or None if it is in none."""
        self._open = False
        """Whether the members of that view have agreed on a state."""
        self._offers: dict[str, dict[str, Any]] = {}
        """The copy that each member of that view brought along."""
        self._steps = 0
        """How often the state changed in that view; the agreement on it is the first change."""
        self._saved = 0
        """How many of these changes are on this node's disk."""
        self._kept: dict[str, int] = {}
        """For each member that keeps its copy: how many of these changes are on its disk."""
        self._own: list[Any] = []
        """Commands of this node that are not certain yet."""
        self._sent = 0
        """How many of those were sent in this view."""
        self._sending = asyncio.Lock()
        self._done: int | None = None
        """How many commands of this node are certain, including those before a restart."""

    def apply(self, sender: str, command: Any) -> None:
        """Change the state. The result may depend only on `state`, `members` and the arguments."""
        raise NotImplementedError

    def on_agreement(self) -> None:
        """Called when the members of a new primary view have agreed on the state. It may change the
        state, under the same rule as `apply`."""

    @property
    def waiting(self) -> int:
        """How many commands of this node are not certain yet."""
        return len(self._own)

    async def submit(self, command: Any) -> None:
        """Have all nodes apply a command once: now, or when this node is with the others again."""
        self._own.append(command)
        await self._send_own()

    async def changes(self) -> AsyncIterator[None]:
        """Handle the events of the group until it is left. Yields whenever the state becomes
        certain, and when this node is in a view in which it cannot become certain."""
        async for event in self.group:
            if isinstance(event, roundelay.View):
                self.certain = False
                if not event.transitional:
                    await self._enter(event)
                    if not event.primary:
                        yield
            elif self._view is not None:
                self._handle(event.sender, json.loads(event.payload))
                # If the message was delivered in a transitional view, its view is not primary.
                if event.view.primary and self._open:
                    await self._keep()
                    self.certain = all(steps == self._steps for steps in self._kept.values())
                    if self.certain:
                        await self._confirm_own()
                        yield
                elif len(self._offers) == len(self.members):
                    yield  # All offers are here, and the members cannot agree.

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

    def _handle(self, sender: str, message: dict[str, Any]) -> None:
        assert self._view is not None
        if "view" in message and message["view"] != list(self._view.id):
            return  # It was sent in an earlier view.
        if "offer" in message:
            self._offers[sender] = message["offer"]
            if len(self._offers) == len(self.members):
                self._agree(self._view)
        elif "kept" in message:
            self._kept[sender] = message["kept"]
        elif self._open:  # Otherwise its sender sends it again after the agreement.
            self._apply_next(sender, message)

    def _agree(self, view: roundelay.View) -> None:
        """Take over the newest state. If several states are of the same view, each of them has
        everything that was certain in it, and all members choose the same one."""
        offers = sorted(self._offers.items())
        newest = max((offer for _, offer in offers), key=lambda offer: offer["agreed"])
        if not self._enough(newest["voters"]):
            return
        self._open = True
        self.state, self._counts = newest["state"], dict(newest["counts"])
        self._agreed, self._voters = list(view.id), list(view.voters)
        self._steps, self._saved = 1, 0
        self._kept = {node: 0 for node, offer in offers if offer["keeps"]}
        self.on_agreement()

    def _enough(self, voters: list[str]) -> bool:
        """Whether no node that is missing here can have a newer state; `voters` are those of the
        newest state that is here."""
        if not voters:
            return set(self.members) >= set(self.group.settings.peers)
        present = [v for v in voters if v in self._offers and self._offers[v]["voters"]]
        return 2 * len(present) > len(voters)

    def _apply_next(self, sender: str, message: dict[str, Any]) -> None:
        """Apply the next command of a node. Any other command is a copy, or will be sent again."""
        if message["number"] == self._counts.get(sender, 0) + 1:
            self._counts[sender] = message["number"]
            self._steps += 1
            self.apply(sender, message["command"])

    async def _keep(self) -> None:
        """Write new changes to disk, and tell the others."""
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

    async def _confirm_own(self) -> None:
        """Forget own commands that became certain, and send those that waited for this."""
        count = self._counts.get(self.node, 0)
        new = 0 if self._done is None else count - self._done
        self._done = count
        del self._own[:new]
        self._sent = max(0, self._sent - new)
        await self._send_own()

    async def _send_own(self) -> None:
        async with self._sending:  # Several tasks may send; numbers must stay in order.
            while self.certain and self._sent < len(self._own):
                assert self._done is not None
                self._sent += 1
                command = self._own[self._sent - 1]
                await self._send(number=self._done + self._sent, command=command)

    async def _send(self, **message: Any) -> None:
        await self.group.send(json.dumps(message).encode(), safe=True)

    # The copy on disk

    def load(self) -> dict[str, Any] | None:
        """The copy that this node saved before it restarted, or None if it saved none."""
        try:
            kept: dict[str, Any] = json.loads(self._path().read_bytes())
        except FileNotFoundError:
            return None
        return kept

    def save(self, copy: dict[str, Any]) -> None:
        """Replace the saved copy; the new one is on disk when this returns."""
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
