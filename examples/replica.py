"""A state that all nodes of a group share, also through partitions and crashes: not a program, but
what `counter.py` and `work_queue.py` have in common. Take it as it is, or copy it.

All nodes begin with the same state and apply the same commands in the same order. Three rules keep
a node that is cut off from going its own way.

1. Commands count only in *primary* views. There is never more than one of these at a time.
2. All messages are *safe*. What one node delivers in a primary view, every member of that view
   delivers before it goes to another view, unless it crashes. So what a node delivers there is
   *certain*: a later primary view always has a member that applied it too.
3. When a primary view begins, its members tell each other what they have, and all take over what
   is newest: that of a node which was in the last primary view. Now they agree, and go on.

What is delivered in the transitional view after a primary one is promised to the members of the
transitional view only. It must be applied, because a node that is not here may have delivered it
in the primary view, where it was certain. But it is not certain here: the next primary view may go
on with the state of a node that has not got it. So nobody is told of it before then.

A node submits its commands again in every new primary view until they are certain. They carry
numbers, and the state comes with the number of the last command of each node, so each counts once.

The state is in memory. It lasts as long as one node of the last primary view goes on running; when
all of them crash, what they had is gone.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import roundelay


class Replica:
    """One node's copy of the state. Derive from it and say what commands do, in `apply`."""

    def __init__(self, group: roundelay.Group, state: Any) -> None:
        """`state` and all commands must be such that JSON can carry them."""
        self.group = group
        self.node = group.settings.node
        self.state = state
        self.members: tuple[str, ...] = ()
        """Of the primary view that this node is in, or was in last."""
        self.certain = False
        """Whether `state` is what the primary component has; if not, wait for the next change."""
        self._counts: dict[str, int] = {}
        """How many commands of each node are in the state."""
        self._agreed = [0, ""]
        """The last primary view whose members agreed on a state, as far as this node knows."""
        self._view: list[Any] | None = None
        """The primary view this node is in; None outside."""
        self._offers: dict[str, dict[str, Any]] = {}
        """What each member of that view brought along."""
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

    async def submit(self, command: Any) -> None:
        """Have a command applied once by everybody: now, or when this node is with the others."""
        self._own.append(command)
        await self._send_own()

    async def changes(self) -> AsyncIterator[None]:
        """Go on with the group until it is left; yields whenever `state` or `certain` changed."""
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
                if event.view.primary and len(self._offers) == len(self.members):
                    await self._ascertain()
                    yield

    async def _enter(self, view: roundelay.View) -> None:
        self._view = None
        if view.primary:
            self._view = list(view.id)
            self.members = view.members
            self._offers = {}
            offer = {"state": self.state, "counts": self._counts, "agreed": self._agreed}
            await self._send(view=self._view, offer=offer)

    def _hear(self, sender: str, message: dict[str, Any]) -> None:
        if "offer" in message:
            if message["view"] == self._view:  # And not one that came too late for its own view.
                self._offers[sender] = message["offer"]
                if len(self._offers) == len(self.members):
                    self._agree()
        elif len(self._offers) == len(self.members):  # Before that: its sender will repeat it.
            self._count(sender, message)

    def _agree(self) -> None:
        """Take over the newest state. Where several are of one view, any of them has everything
        that was certain in it; all members choose the same."""
        offers = sorted(self._offers.items())
        newest = max((offer for _, offer in offers), key=lambda offer: offer["agreed"])
        self.state, self._counts = newest["state"], dict(newest["counts"])
        assert self._view is not None
        self._agreed = self._view
        self.begin()

    def _count(self, sender: str, message: dict[str, Any]) -> None:
        """Apply the next command of a node. Others are copies, or will be sent again in order."""
        if message["number"] == self._counts.get(sender, 0) + 1:
            self._counts[sender] = message["number"]
            self.apply(sender, message["command"])

    async def _ascertain(self) -> None:
        """The state is what everybody has."""
        count = self._counts.get(self.node, 0)
        new = 0 if self._done is None else count - self._done
        self._done = count
        del self._own[:new]
        self._sent = max(0, self._sent - new) if self.certain else 0
        self.certain = True
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
