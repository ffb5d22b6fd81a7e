"""Receipts: the positions at which messages of this node were delivered."""

import asyncio
from collections.abc import Generator

from roundelay.core.ids import Span, View
from roundelay.runtime.errors import ClosedError
from roundelay.runtime.events import Position


class Receipt:
    """Stands for a message that was accepted. Awaiting it gives the message's position, once the
    message is delivered here; ClosedError if the group is left before."""

    __slots__ = ("_ledger", "number", "position", "view")

    def __init__(self, number: int, ledger: "Receipts") -> None:
        self.number = number
        """This node's messages counted from 0, per start."""
        self.position: Position | None = None
        """None until it is delivered."""
        self.view: View | None = None
        """The view it was delivered in. If it was sent as safe, every member of that view delivers
        it, or fails; a transitional view has fewer members than the one before it."""
        self._ledger = ledger

    def __repr__(self) -> str:
        if self.position is None:
            return f"<Receipt of message {self.number}: not delivered yet>"
        return f"<Receipt of message {self.number}: delivered at {self.position}>"

    def __await__(self) -> Generator[object, None, Position]:
        while self.position is None:
            yield from self._ledger.wait_for_change(self)
        return self.position


class Receipts:
    """The receipts of messages that were not delivered yet."""

    def __init__(self) -> None:
        self.awaited = 0
        """How many tasks wait for a receipt."""
        self.open: dict[int, Receipt] = {}
        """By message number. Receipts are given in the order of numbers, so the smallest is
        first."""
        self._futures: dict[int, list[asyncio.Future[None]]] = {}
        self._error: ClosedError | None = None

    def give(self, number: int) -> Receipt:
        """The receipt of a message that is not delivered yet."""
        receipt = self.open.get(number)
        if receipt is None:
            receipt = self.open[number] = Receipt(number, self)
        return receipt

    def may_concern(self, span: Span) -> bool:
        """Whether a receipt may be for one of these messages; a quick test for every packet."""
        return bool(self.open) and next(iter(self.open)) < span.first + span.count

    def resolve(self, span: Span, first: Position, view: View) -> None:
        """These messages were delivered in `view`, the first of them at the position `first`."""
        start, end = span.first, span.first + span.count
        if len(self.open) < span.count:
            numbers = [number for number in self.open if start <= number < end]
        else:
            numbers = [number for number in range(start, end) if number in self.open]
        for number in numbers:
            receipt = self.open.pop(number)
            receipt.position = Position(first.view, first.index + number - start)
            receipt.view = view
            self._wake(number)

    def fail(self, error: ClosedError) -> None:
        """No more messages will be delivered: every task that waits is told `error`."""
        self._error = error
        self.open.clear()
        for number in list(self._futures):
            self._wake(number)

    def wait_for_change(self, receipt: Receipt) -> Generator[object, None, None]:
        """Wait until this receipt is resolved, or raise what ended the node."""
        if self._error is not None:
            raise self._error
        future = asyncio.get_running_loop().create_future()
        self._futures.setdefault(receipt.number, []).append(future)
        self.awaited += 1
        try:
            yield from future
        finally:
            self.awaited -= 1

    def _wake(self, number: int) -> None:
        for future in self._futures.pop(number, ()):
            if not future.done():
                future.set_result(None)
