"""The engine under membership: what it may still do, and which timers are its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.core.contract import Conclusion, Engine, Item, burst_engine
from roundelay.core.effects import CancelTimer, Effect, Record, Refuse, Send, SetTimer, Suspect
from roundelay.core.ids import NodeId, View
from roundelay.membership.phase import FROZEN, LIVE, SEALED


class Tenant:
    """One engine, from view to view.

    The view a node starts in is there only to be left: the engine does not run in it, has nothing
    to sum up, to offer or to take in, and ends it with nothing.
    """

    def __init__(self, engine: Engine[Any]) -> None:
        self.engine = engine
        self.burst_engine = burst_engine(engine)
        """The engine, if it handles bursts."""
        self.hold = SEALED
        self.timers: set[str] = set()
        self.spoke = False
        """It has told everybody something since this was last cleared."""
        self._began = False

    def begin(self, view: View) -> list[Effect[Any]]:
        assert self.hold is SEALED, "a view begins while the one before still runs"
        self.hold = LIVE
        self._began = True
        self.spoke = False
        return self.engine.start(view)

    def freeze(self) -> tuple[bytes, list[CancelTimer]]:
        """What it has to say of its view; and its timers, which are no more."""
        ended = [CancelTimer(timer) for timer in sorted(self.timers)]
        self.timers.clear()
        if self.hold is LIVE:
            self.hold = FROZEN
        return self.engine.freeze() if self._began else b"", ended

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        """What it offers to others; or WireError, and it goes on as it was."""
        items = self.engine.seal(summaries) if self._began else ()
        self.hold = SEALED
        return items

    def absorb(self, item: Item) -> list[Record]:
        return self.engine.absorb(item) if self._began else []

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        assert self.hold is SEALED, "a view ends that still runs"
        if not self._began:
            return Conclusion()
        return self.engine.conclude(summaries, transitional, obligations)

    def heed(self, effects: list[Effect[Any]]) -> list[Suspect]:
        """Keep account of what it wants done; the suspicions among it are for membership."""
        live = self.hold is LIVE
        suspicions: list[Suspect] = []
        for effect in effects:
            kind = type(effect)  # The most frequent first: every effect of every visit comes here.
            if kind is Record:
                continue
            assert live or kind is Refuse, f"{effect} in a view that is over"
            if kind is SetTimer:
                self.timers.add(effect.timer)  # type: ignore[union-attr]
            elif kind is Send:
                if effect.to is None:  # type: ignore[union-attr]
                    self.spoke = True
            elif kind is CancelTimer:
                self.timers.discard(effect.timer)  # type: ignore[union-attr]
            elif kind is Suspect:
                suspicions.append(effect)  # type: ignore[arg-type]
        return suspicions

    def owns(self, timer: str) -> bool:
        """Whether a timer that has just expired was the engine's."""
        if timer in self.timers:
            self.timers.discard(timer)
            return True
        return False
