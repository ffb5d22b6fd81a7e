"""Routes: the deviations of a run so far, and those that are still possible because of them."""

from dataclasses import dataclass, replace

from roundelay.core.ids import NodeId
from roundelay.sim.explore.deviations import Deviation
from roundelay.sim.explore.states import word
from roundelay.sim.explore.stepped import Label, content
from roundelay.sim.transmission import Transmission


@dataclass(frozen=True, slots=True)
class Withheld:
    """A copy of a frame that did not arrive at its time, and may arrive later."""

    transmission: Transmission
    receiver: NodeId
    time: int
    """When it should have arrived."""
    step: int
    """Its place among the deviations of the route."""
    seen: tuple[Label, ...]
    """The labels of the receiver since then: the copy may arrive once in each, at its beginning."""
    overtaken: bool = False
    """Whether another frame has reached the receiver since."""

    @property
    def key(self) -> int:
        what = (content(self.transmission), word(self.receiver), self.overtaken)
        return hash((*what, *(word(repr(label)) for label in self.seen)))


@dataclass(frozen=True, slots=True)
class Down:
    """A node that crashed, and may start again later."""

    node: NodeId
    time: int
    seen: tuple[Label, ...]
    """The labels of the other nodes since then: the node may start once in each, at its
    beginning."""
    fresh: bool = True
    """Whether it may still start `AT_ONCE_NS` after the crash."""

    @property
    def key(self) -> int:
        return hash((word(self.node), self.fresh, *(word(repr(label)) for label in self.seen)))


@dataclass(frozen=True, slots=True)
class Route:
    """The deviations of a run so far, and the choices that are open because of them."""

    left: int
    """How many deviations may still be made."""
    since: int
    """When the last one took effect."""
    steps: tuple[Deviation, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    down: tuple[Down, ...] = ()

    @property
    def offset(self) -> int:
        """How many nanoseconds after its cause a deviation takes effect: a different number for
        every deviation of a run, so that no two happen at the same time."""
        return len(self.steps) + 1

    def deviate(self, deviation: Deviation) -> "Route":
        """The route after one more deviation."""
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
        """The route after the moment at which crashed nodes could start at once has passed."""
        if not any(down.fresh for down in self.down):
            return self
        return replace(self, down=tuple(replace(down, fresh=False) for down in self.down))

    def fated(self, copy: str) -> bool:
        """Whether a deviation is about this copy: a scenario can say one thing about each."""
        return any(step.fate.startswith(f'fate "{copy}" ') for step in self.steps)

    @property
    def key(self) -> int:
        """A number for the choices that are open. The number of deviations left is compared
        apart."""
        return hash((*(held.key for held in self.withheld), *(down.key for down in self.down)))
