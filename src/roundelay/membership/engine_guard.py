"""The engine under membership: what it may still do in its view, and which timers are its own."""

from collections.abc import Mapping, Sequence
from typing import Any

from roundelay.core.contract import Conclusion, Engine, Item, burst_engine
from roundelay.core.effects import (
    CancelTimer,
    Deliver,
    Effect,
    Record,
    Refuse,
    Send,
    SetTimer,
    Suspect,
)
from roundelay.core.ids import NodeId, View
from roundelay.membership.phase import FROZEN, LIVE, SEALED

_AFTER_VIEW = frozenset({Record, Refuse})
"""The effects that an engine may have once its view is over."""


class EngineGuard:
    """One engine, from view to view, and the rules of the contract that membership answers for.

    The view a node starts in is there only to be left: the engine does not run in it, has nothing
    to sum up, to offer or to absorb, and ends it with an empty conclusion.
    """

    def __init__(self, engine: Engine[Any]) -> None:
        self.engine = engine
        self.burst_engine = burst_engine(engine)
        """The engine, if it handles bursts."""
        self.hold = SEALED
        self.timers: set[str] = set()
        """Timers of the engine that are armed."""
        self.multicast = False
        """The engine has sent a frame to everyone since this was last cleared."""
        self._started = False

    def start(self, view: View) -> list[Effect[Any]]:
        """Start the engine in a view. The effects have yet to go through `note_effects`."""
        assert self.hold is SEALED, "a view begins while the one before still runs"
        self.hold = LIVE
        self._started = True
        self.multicast = False
        return self.engine.start(view)

    def freeze(self) -> tuple[bytes, list[CancelTimer]]:
        """The engine's summary of its view; and the end of its timers."""
        cancelled = [CancelTimer(timer) for timer in sorted(self.timers)]
        self.timers.clear()
        if self.hold is LIVE:
            self.hold = FROZEN
        return self.engine.freeze() if self._started else b"", cancelled

    def seal(self, summaries: Mapping[NodeId, bytes]) -> Sequence[Item]:
        """What the engine offers to others; or WireError, and it goes on as it was."""
        items = self.engine.seal(summaries) if self._started else ()
        self.hold = SEALED
        return items

    def absorb(self, item: Item) -> list[Record]:
        return self.engine.absorb(item) if self._started else []

    def conclude(
        self,
        summaries: Mapping[NodeId, bytes],
        transitional: View,
        obligations: tuple[NodeId, ...],
    ) -> Conclusion:
        assert self.hold is SEALED, "a view ends that still runs"
        if not self._started:
            return Conclusion()
        return self.engine.conclude(summaries, transitional, obligations)

    def note_effects(self, effects: list[Effect[Any]]) -> Suspect | None:
        """Keep account of the engine's timers and of what it sends; returns its first suspicion.

        Every effect of every engine comes here, so kinds that do not concern membership are passed
        over first.
        """
        if self.hold is not LIVE:
            for effect in effects:
                assert type(effect) in _AFTER_VIEW, f"{effect} in a view that is over"
            return None
        suspicion: Suspect | None = None
        for effect in effects:
            kind = type(effect)
            if kind is Deliver or kind is Record:
                continue
            if kind is SetTimer:
                self.timers.add(effect.timer)  # type: ignore[union-attr]
            elif kind is Send:
                if effect.to is None:  # type: ignore[union-attr]
                    self.multicast = True
            elif kind is CancelTimer:
                self.timers.discard(effect.timer)  # type: ignore[union-attr]
            elif kind is Suspect and suspicion is None:
                suspicion = effect  # type: ignore[assignment]
        return suspicion

    def pop_timer(self, timer: str) -> bool:
        """Whether a timer that has just expired was the engine's; it is armed no more."""
        if timer in self.timers:
            self.timers.discard(timer)
            return True
        return False
