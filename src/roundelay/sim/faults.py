"""The random choices of a run: what happens to each copy of each frame, drawn and recorded.

By default a copy arrives once, on time and undamaged. Every other choice is recorded under the name
of the copy, `sender/number>receiver`; after a restart the name has the sender's incarnation,
`sender'1/number>receiver`. A run that is given the recorded choices instead of a seed repeats them
and makes no others. So one choice can be removed and the run repeated without it: that is how a
failing run is shrunk. Challenges and answers of sealed traffic are counted apart, as
`sender/p1>receiver`, and what an intruder does is named `intruder/number`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from random import Random

from roundelay.core.ids import NodeId
from roundelay.core.value import value
from roundelay.sim.units import duration_ns, show_ns


@dataclass(frozen=True, slots=True)
class Rates:
    """The probability of each fault for a copy of a frame on its way to one receiver.

    At most one fault happens to a copy, so the probabilities add up to at most 1.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    """A second copy arrives up to `reorder_ns` later."""
    reorder: float = 0.0
    """The copy is delayed by up to `reorder_ns`, so that later frames overtake it."""
    spike: float = 0.0
    """The copy is delayed by up to `spike_ns`, which is longer than most timers of a protocol."""
    corrupt: float = 0.0
    """One bit is flipped."""
    reorder_ns: int = 2_000_000
    spike_ns: int = 200_000_000

    total: float = field(init=False)

    def __post_init__(self) -> None:
        total = self.loss + self.duplicate + self.reorder + self.spike + self.corrupt
        if total > 1:
            raise ValueError(f"the rates add up to {total:.3g}; together they are at most 1")
        object.__setattr__(self, "total", total)


@value
class Fate:
    """What happens to one copy of a frame. The plain fate: it arrives once, on time, undamaged."""

    lost: bool = False
    delay_ns: int = 0
    copy_ns: int | None = None
    """A second copy arrives this much after the first."""
    flip: int | None = None
    """Number of the bit that is flipped, taken modulo the frame's size."""

    @property
    def is_delay(self) -> bool:
        """Whether the copy arrives once and undamaged, but perhaps late."""
        return not self.lost and self.copy_ns is None and self.flip is None

    def __str__(self) -> str:
        words = [
            "lost" if self.lost else "",
            f"delay={show_ns(self.delay_ns)}" if self.delay_ns else "",
            f"copy={show_ns(self.copy_ns)}" if self.copy_ns is not None else "",
            f"flip={self.flip}" if self.flip is not None else "",
        ]
        return " ".join(word for word in words if word) or "plain"

    @classmethod
    def parse(cls, text: str) -> "Fate":
        """The fate that `str` writes as `text`; ValueError if there is none."""
        fate = cls()
        for word in text.split():
            name, _, amount = word.partition("=")
            match name:
                case "plain":
                    pass
                case "lost":
                    fate = replace(fate, lost=True)
                case "delay":
                    fate = replace(fate, delay_ns=duration_ns(amount))
                case "copy":
                    fate = replace(fate, copy_ns=duration_ns(amount))
                case "flip" if amount.isdecimal():
                    fate = replace(fate, flip=int(amount))
                case _:
                    raise ValueError(
                        f"{word!r} is no fate; write lost, delay=5ms, copy=1ms or flip=17"
                    )
        return fate


PLAIN = Fate()


def copy_name(sender: NodeId, incarnation: int, packet: int | str, receiver: NodeId) -> str:
    """The name of one copy of one frame. Challenges and answers are counted apart: p1, p2 ..."""
    life = f"'{incarnation}" if incarnation else ""
    return f"{sender}{life}/{packet}>{receiver}"


class Choices:
    """Makes the random choices of a run.

    With `given` nothing is drawn: a copy that is not in it has the plain fate. With `record` every
    other choice is kept in `made`, by name; switch it off in runs that are too long to be replayed
    choice by choice.
    """

    def __init__(
        self, seed: int, given: Mapping[str, str] | None = None, *, record: bool = True
    ) -> None:
        self.seed = seed
        self.made: dict[str, str] = {}
        self._record = record
        self._given = given
        # Text seeds are hashed with SHA-512: the same on every machine, whatever the hash seed.
        self._random = Random(f"roundelay/{seed}/network")
        self._forced: dict[str, Fate] = {}
        self._awaited: dict[str, list[tuple[int, Fate]]] = {}
        """By sender, type and receiver: how many copies are skipped, and the fate of the next."""

    @property
    def plain(self) -> bool:
        """Whether every copy has the plain fate, as long as neither rates nor jitter say
        otherwise."""
        return self._given is None and not self._forced and not self._awaited

    def fate(
        self,
        rates: Rates,
        jitter_ns: int,
        sender: NodeId,
        incarnation: int,
        packet: int | str,
        receiver: NodeId,
        tag: str = "",
    ) -> Fate:
        """What happens to one copy of a frame of the type `tag`."""
        if self._given is None and not self._forced and not self._awaited:
            if not jitter_ns and not rates.total:
                return PLAIN
            fate = self._draw(rates, jitter_ns)
            if fate is PLAIN or not self._record:
                return fate
            name = copy_name(sender, incarnation, packet, receiver)
        else:
            name = copy_name(sender, incarnation, packet, receiver)
            awaited = self._pop_awaited(f"{sender}/{tag}>{receiver}") if self._awaited else None
            if name in self._forced:
                fate = self._forced.pop(name)
            elif awaited is not None:
                fate = awaited
            elif self._given is None:
                fate = self._draw(rates, jitter_ns)
            else:
                fate = Fate.parse(self._given.get(name, "plain"))
        if fate != PLAIN and self._record:
            self.made[name] = str(fate)
        return fate

    def force(self, name: str, fate: Fate, *, skip: int = 0) -> None:
        """Decide the fate of a copy that is not sent yet; nothing is drawn for it. A name with a
        type instead of a number, `a/DATA>b`, means the next copy of that type after `skip`
        others."""
        if name.partition("/")[2].partition(">")[0].removeprefix("p").isdecimal():
            self._forced[name] = fate
        else:
            self._awaited.setdefault(name, []).append((skip, fate))

    def heal(self) -> None:
        """Forget forced fates, except delays of numbered frames: a slow network is no fault."""
        delays = {name: fate for name, fate in self._forced.items() if fate.is_delay}
        self._forced = delays
        self._awaited.clear()

    def _pop_awaited(self, name: str) -> Fate | None:
        """Pop the fate that is due for a copy of this name; the others skip one copy fewer."""
        waiting = self._awaited.get(name, [])
        due = next((entry for entry in waiting if not entry[0]), None)
        if due is not None:
            waiting.remove(due)
        if waiting:
            self._awaited[name] = [(max(0, skip - 1), fate) for skip, fate in waiting]
        else:
            self._awaited.pop(name, None)
        return None if due is None else due[1]

    def happens(self, name: str, what: str) -> bool:
        """Whether something happens that is drawn elsewhere, under this name; always, unless
        choices were given and it is not among them."""
        happens = self._given is None or name in self._given
        if happens and self._record:
            self.made[name] = what
        return happens

    def number(self, name: str, most: int) -> int:
        """Choose a whole number from 0 to `most`; for choices that are not about frames."""
        if self._given is not None:
            chosen = min(int(self._given.get(name, "0")), most)
        else:
            chosen = self._random.randint(0, most)
        if chosen and self._record:
            self.made[name] = str(chosen)
        return chosen

    def _draw(self, rates: Rates, jitter_ns: int) -> Fate:
        random = self._random
        delay = random.randint(0, jitter_ns) if jitter_ns else 0
        u = random.random()
        if u >= rates.total:
            return Fate(delay_ns=delay) if delay else PLAIN
        if u < rates.loss:
            return Fate(lost=True)
        u -= rates.loss
        if u < rates.duplicate:
            return Fate(delay_ns=delay, copy_ns=random.randint(1, rates.reorder_ns))
        u -= rates.duplicate
        if u < rates.reorder:
            return Fate(delay_ns=delay + random.randint(1, rates.reorder_ns))
        u -= rates.reorder
        if u < rates.spike:
            return Fate(delay_ns=delay + random.randint(1, rates.spike_ns))
        return Fate(delay_ns=delay, flip=random.getrandbits(20))
