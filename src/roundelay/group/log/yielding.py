"""Holds back what this node appends, while a member that catches up does not come nearer.

A busy group may append as fast as a member can fetch, or faster, so that the member never reaches
the end. Every member sees by the acknowledgments how far the others are. If one is further behind
than what a learner keeps of live packets, and advances, but would not get there in some time, the
others let less of their own be ordered: a little less from one look to the next, up to a limit.
They go on at full speed once it is near, or if it does not advance at all, as when its disk is
full, or if even the most that they yield is not enough.
"""

from typing import Any

from roundelay.core.effects import CancelTimer, Effect, SetTimer
from roundelay.core.ids import NodeId
from roundelay.group.log.config import LOOK_TIMER, YIELD_TIMER, LogConfig

_SLICES = 50
"""From one look to the next what may be ordered is given out in so many parts. Fewer: the group
halts and goes on; more: timers."""


class Yielding:
    """One for each node. Effects go to `out`."""

    def __init__(self, config: LogConfig, out: list[Effect[Any]]) -> None:
        self.live_bytes = self.live_entries = 0
        """What log packets brought; this tells what an entry takes, about."""
        self.share = 0.0
        """So much of what this node would let be ordered is held back."""
        self._config = config
        self._out = out
        self._lengths: dict[NodeId, int] = {}
        self._before: dict[NodeId, tuple[int, int]] = {}
        """The length and the lag of a member at the last look."""
        self._vain: dict[NodeId, int] = {}
        """Looks at which the most was yielded to a member, and it did not come nearer."""
        self._looking = False
        self._end = 0
        """Where the log ended at the last look."""
        self._fed = 0
        """Bytes of this node that were given to the engine since the last look."""
        self._rate = 0
        """The same from one look to the next, if nothing were held back; at least this node's part
        of what all append."""
        self._budget = 0

    @property
    def holds(self) -> bool:
        """Whether nothing of this node may be ordered for now."""
        return self.share > 0 and self._budget <= 0

    def close(self) -> None:
        """The view ends."""
        if self._looking:
            self._out.append(CancelTimer(LOOK_TIMER))
        self._rest()
        self._lengths.clear()
        self._before.clear()
        self._vain.clear()
        self._looking = False

    def note(self, node: NodeId, length: int) -> None:
        """A member has so much of the log in the present view, this node too."""
        self._lengths[node] = max(length, self._lengths.get(node, 0))

    def fed(self, size: int) -> None:
        """So many bytes were given to the engine."""
        self._fed += size
        if self.share:
            self._budget -= size

    def watch(self) -> None:
        """Begin to look, if a member is far behind."""
        if not self._looking and self._lags():
            self._end, self._fed = max(self._lengths.values()), 0
            self._look_again()

    def expire(self, timer: str) -> None:
        if timer == YIELD_TIMER:
            self._give()
        else:
            self._look()

    @property
    def _entry_bytes(self) -> float:
        return max(1.0, self.live_bytes / max(1, self.live_entries))

    def _lags(self) -> dict[NodeId, int]:
        """Members that lack more than a learner keeps of live packets, and how many entries; while
        something is held back, until they lack half of that, so that they surely join."""
        window = self._config.live_window_bytes / self._entry_bytes
        window = window / 2 if self.share else window
        end = max(self._lengths.values(), default=0)
        lags = {node: end - length for node, length in self._lengths.items()}
        return {node: lag for node, lag in lags.items() if lag > window}

    def _look(self) -> None:
        lags = self._lags()
        if not lags:
            self._rest()
            self._before.clear()
            self._vain.clear()
            self._looking = False
            return
        config = self._config
        waited = [node for node, lag in lags.items() if self._is_waited_for(node, lag)]
        far = [node for node in waited if not self._comes_nearer(node, lags[node])]
        for node in far:
            if self.share >= config.yield_share_max:
                self._vain[node] = self._vain.get(node, 0) + 1
        self._before = {node: (self._lengths[node], lag) for node, lag in lags.items()}
        end = max(self._lengths.values())
        grown = (end - self._end) * self._entry_bytes
        rate = int(max(self._fed, grown / len(self._lengths)) / (1 - self.share))
        self._rate = min(rate, self._rate) if self.share else rate
        self._end, self._fed = end, 0
        if not waited:
            self._rest()
        elif far:
            began = not self.share
            self.share = min(config.yield_share_max, self.share + config.yield_step)
            if began and self.share:
                self._give()
        self._look_again()

    def _is_waited_for(self, node: NodeId, lag: int) -> bool:
        """Whether a member advances, and it is worth while to wait for it."""
        before = self._before.get(node)
        if before is None or self._lengths[node] <= before[0]:
            return False
        return self._vain.get(node, 0) < self._config.yield_vain_max

    def _comes_nearer(self, node: NodeId, lag: int) -> bool:
        """Whether a member will be there soon if it goes on like that."""
        config = self._config
        nearer = self._before[node][1] - lag
        return nearer * config.yield_nearer_s >= lag * config.yield_look_s

    def _give(self) -> None:
        """Let the next part be ordered."""
        config = self._config
        part = int(self._rate * (1 - self.share)) // _SLICES
        self._budget = min(self._budget, 0) + max(1, part)
        self._out.append(SetTimer(YIELD_TIMER, config.yield_look_s / _SLICES))

    def _rest(self) -> None:
        if self.share:
            self.share = 0.0
            self._out.append(CancelTimer(YIELD_TIMER))
        self._budget = 0

    def _look_again(self) -> None:
        self._looking = True
        self._out.append(SetTimer(LOOK_TIMER, self._config.yield_look_s))
