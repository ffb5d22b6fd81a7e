"""How a run got where it is, and what may still be done to it."""

from dataclasses import dataclass, replace

from roundelay.core.ids import NodeId
from roundelay.sim.explore.deviations import Deviation
from roundelay.sim.explore.stage import Label, content
from roundelay.sim.explore.states import word
from roundelay.sim.host import Transmission


@dataclass(frozen=True, slots=True)
class Withheld:
    """A copy of a frame that did not arrive, and may yet."""

    transmission: Transmission
    receiver: NodeId
    time: int
    """When it should have arrived."""
    step: int
    """Its place among the deviations of the route."""
    seen: tuple[Label, ...]
    """What the receiver has been doing since: in each it may arrive once, at its beginning."""
    overtaken: bool = False
    """Whether another frame has reached the receiver since."""

    @property
    def key(self) -> int:
        what = (content(self.transmission), word(self.receiver), self.overtaken)
        return hash((*what, *(word(repr(label)) for label in self.seen)))


@dataclass(frozen=True, slots=True)
class Down:
    """A node that stopped, and may yet start again."""

    node: NodeId
    time: int
    seen: tuple[Label, ...]
    """What the others have been doing since: in each it may start once, at its beginning."""
    fresh: bool = True
    """Whether it may still start at once."""

    @property
    def key(self) -> int:
        return hash((word(self.node), self.fresh, *(word(repr(label)) for label in self.seen)))


@dataclass(frozen=True, slots=True)
class Route:
    """The deviations of a run so far, and the choices that are open because of them."""

    left: int
    """Deviations that may still be made."""
    since: int
    """When the last one took effect."""
    steps: tuple[Deviation, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    down: tuple[Down, ...] = ()

    @property
    def offset(self) -> int:
        """By how many nanoseconds an effect follows its occasion: another number for every
        deviation, so that no two fall on one moment."""
        return len(self.steps) + 1

    def deviate(self, deviation: Deviation) -> "Route":
        """The route with one deviation more."""
        steps = (*self.steps, deviation)
        return replace(self, left=self.left - 1, since=deviation.time, steps=steps)

    def withhold(self, held: Withheld) -> "Route":
        return replace(self, withheld=(*self.withheld, held))

    def release(self, held: Withheld, deviation: Deviation, time: int) -> "Route":
        """The route on which a withheld copy arrives after all, at `time`."""
        steps = (*self.steps[: held.step], deviation, *self.steps[held.step + 1 :])
        withheld = tuple(other for other in self.withheld if other is not held)
        return replace(self, since=time, steps=steps, withheld=withheld)

    def stop(self, down: Down) -> "Route":
        return replace(self, down=(*self.down, down))

    def start(self, down: Down) -> "Route":
        return replace(self, down=tuple(other for other in self.down if other is not down))

    def stale(self) -> "Route":
        """The route on which nobody who stopped can start at once any more."""
        if not any(down.fresh for down in self.down):
            return self
        return replace(self, down=tuple(replace(down, fresh=False) for down in self.down))

    def fated(self, copy: str) -> bool:
        """Whether a deviation is about this copy: a scenario can say one thing about each."""
        return any(step.fate.startswith(f'fate "{copy}" ') for step in self.steps)

    @property
    def key(self) -> int:
        """Of the choices that are open; how many deviations are left is compared on its own."""
        return hash((*(held.key for held in self.withheld), *(down.key for down in self.down)))
