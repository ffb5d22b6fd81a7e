"""The formulas of [TachikawaTakizawa], section 5, as they are printed.

the paper   here
n, d, L     members; destinations of a message; messages on the channel
f           probability that a message is lost by one process
F           that a message is lost by none of its destinations
R_S, R_G    messages that are sent again: selectively, and by go-back-n
F_0, F_1    that one message is lost by one process; that more are
C, D        time to recover, and to handle L messages
"""

from dataclasses import dataclass

LIMIT = 893.0
"""C/D is below a fifth for every f < 0.001 as long as L d^2 / n is less than this: C/D depends on
x = L f d^2 / n alone, but for terms that vanish, and is a fifth where x = 0.893."""


@dataclass(frozen=True, slots=True)
class Formulas:
    """The formulas for one group and one f."""

    nodes: int
    destinations: float
    """On average."""
    length: int
    loss_share: float

    @property
    def copy_loss(self) -> float:
        """What the formulas take for the probability that one destination loses a message."""
        return self.loss_share * self.destinations / self.nodes

    @property
    def received(self) -> float:
        """F."""
        return float((1 - self.copy_loss) ** self.destinations)

    @property
    def selective(self) -> float:
        """R_S/L, by (1)."""
        return 1 - self.received

    @property
    def go_back(self) -> float:
        """R_G/L, by (2)."""
        received, length = self.received, self.length
        lost = 1 - received
        return sum(received ** (k - 1) * lost * (length - k + 1) for k in range(1, length + 1)) / (
            length
        )

    @property
    def single(self) -> float:
        """F_0, which does not say which of d L places the one loss is at."""
        loss = self.copy_loss
        return float(loss * (1 - loss) ** (self.nodes * self.length - 1))

    @property
    def cost(self) -> float:
        """C/D."""
        several = 1 - self.single - self.received**self.length
        return self.single / self.nodes / self.length + several * self.go_back


def longest(nodes: int, destinations: float, loss_share: float, cost: float) -> int:
    """The largest L for which C/D is below `cost`."""
    low, high = 0, 1
    while Formulas(nodes, destinations, high, loss_share).cost < cost:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if Formulas(nodes, destinations, middle, loss_share).cost < cost:
            low = middle
        else:
            high = middle
    return low
