"""What an engine says about itself, so that nothing else has to know it by name. Pure data.

Each engine module ends with `DESCRIPTION = Description(...)`. The registry (`group.engines`) finds
it, and everything that must know something about an engine asks the description: the checker what
the engine promises, a real node how to set its timers and windows, the simulator what else to try
(`simulation` names a module: engines may not import the simulator). `docs/engines.md` tells which
part reads which field.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from roundelay.core.ids import NodeId
from roundelay.core.value import value


@value
class Properties:
    """Properties of the checker, by the reason for which a run is held to them.

    Each field holds names, separated by spaces: "O1 O5 S4". `docs/properties.md` lists them.
    """

    promised: str = ""
    derived: str = ""
    """Nobody promised them, but they follow from how the protocol works."""
    assumed: str = ""
    """The layer below, or the environment, provides them."""
    optional: str = ""
    """Reported, but a run that breaks them is not at fault."""

    @property
    def names(self) -> frozenset[str]:
        fields = (self.promised, self.derived, self.assumed, self.optional)
        return frozenset(name for field in fields for name in field.split())


class OneOrder(StrEnum):
    """When all sides of a partition deliver the messages they share in the same order.

    Otherwise only those who move on together agree on the order: where there are views, the profile
    then has O5w instead of O5 and O5p.
    """

    ALWAYS = "always"
    """The order is fixed when a packet is sent, or the engine promises no order at all."""
    HALF = "half"
    """If the resilience F is at least half of the number of nodes; else as with `NEVER`."""
    NEVER = "never"
    """Another than the sender decides the place of a packet, and may deliver it there at once. Two
    sides may give one message different keys: the profile has no O3f either."""
    CONFIRMED = "confirmed"
    """Only of what has a key. A key is given to what is confirmed, and so is the same on all sides;
    what is not confirmed when a view ends is delivered without one, in the order of each side."""


@value
class Promises:
    """What the runs of a protocol are held to."""

    static: Properties = Properties()
    """On a static group, where the engine is alone; and in views too."""
    in_views: Properties = Properties()
    """Besides, where there are views. The properties of views themselves, which every engine is
    held to, are added by the checker."""
    rules: tuple[tuple[str, Properties], ...] = ()
    """Besides, by the rules that the engine runs under: `("paper", Properties("N4"))`."""
    envelope: str = ""
    """Properties of the environment without which the literal rules of the paper promise nothing
    on a static group; names, separated by spaces."""
    resilient: bool = False
    """Whether the engine has a resilience F. With F above 0, a message that anybody delivered on a
    static group is delivered by all who live (D8u)."""
    one_order: OneOrder = OneOrder.ALWAYS


@value
class Capacity:
    """What a real node can hold: an engine derives its windows from it."""

    nodes: int
    """In the group."""
    datagram_bytes: int
    visit_packets: int
    """Packets that one sender may send in a row, for full speed."""
    window_packets: int
    """Packets of all senders together that the receive buffer of a node can hold."""


Tune = Callable[[Capacity, Mapping[str, float]], Mapping[str, float]]
"""Options for a real node. The second argument holds the timers of the engine's configuration, in
seconds, scaled to the time-out of the group; what is returned replaces them or adds to them."""


def _nothing_to_tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    return {}


HeaderBytes = Callable[[int], int]
"""Bytes that a frame of the engine adds to its packet, in a group of so many nodes."""


def _small_header(nodes: int) -> int:
    """What a real node leaves room for in any case is enough."""
    return 0


Check = Callable[[Any, Sequence[NodeId]], None]
"""Looks at a configuration where the nodes of the group are known. ValueError, with a sentence for
people that says what to write, if it makes no sense for them."""


def _nothing_to_check(config: Any, nodes: Sequence[NodeId]) -> None:
    """Every configuration suits every group."""


@value
class Description:
    """One engine."""

    name: str
    summary: str
    """One sentence for people."""
    engine: type[Any]
    """The class. It is called with `(node, outlet, config=None)`."""
    config: type[Any]
    """The dataclass of its configuration. A field whose default is a number or a text can be set by
    users: `engine NAME field=value`."""
    data_tags: Sequence[str]
    """Names of the frames that carry packets, as the codec's `tags` has them; the first is the one
    that the simulator loses to stop packets."""
    packets_in: Callable[[Any], int]
    """How many packets a message of this engine brings, those inside messages of a link included.
    A real node counts them, and needs room to take them in."""
    promises: Promises
    envelope_options: Sequence[str] = ()
    """Options that say how many faults the rules of a paper bear. The manifest of a trace has them
    in its envelope, where the properties named by `Promises.envelope` look for them."""
    alarm: str = ""
    """The field of the configuration whose timer turns silence into a suspicion. A real node scales
    all timers until this one is the time-out of the group. Empty if nothing is ever suspected."""
    shared_options: Sequence[str] = ()
    """Options that all nodes of a group must have alike, besides the alarm: nodes that differ in
    one refuse each other. Others, such as windows, each node may choose for itself."""
    tune: Tune = _nothing_to_tune
    header_bytes: HeaderBytes = _small_header
    """For headers that grow with the group, such as vectors: a real node makes its packets smaller
    by so much, so that they fit a datagram. Some 40 bytes, names and destinations need no word."""
    check_options: Check = _nothing_to_check
    """What the configuration alone cannot check: options that name nodes."""
    static_only: bool = False
    """Whether it notices no failure, and so cannot end a view: it runs on static groups only."""
    static_rules: Sequence[str] = ()
    """Values of its option `rules` under which it cannot end a view, though it can under others."""
    channel_options: Sequence[str] = ()
    """Options, like `medium=channel`, with which it needs a network that is one channel: all nodes
    hear all frames in one order, their own too. The simulator has one, real nodes have none."""
    recovery_tag: str = ""
    """The name of the frames with which a member begins to make good for a loss, where the whole
    group then stops for a while. Without a loss there should be none."""
    simulation: str = ""
    """Dotted name of the module with what the simulator knows of this engine, in `SIMULATION`;
    empty if it knows nothing special."""

    @property
    def selective(self) -> bool:
        """Whether it delivers a packet to its destinations alone."""
        return bool(self.engine.selective)

    @property
    def takes_bursts(self) -> bool:
        """Whether it can be given many frames of one sender at once."""
        return hasattr(self.engine, "receive_many")

    @property
    def has_token(self) -> bool:
        """Whether a token decides who may send or order."""
        return "K3" in self.promises.static.names

    @property
    def carries_safe(self) -> bool:
        """Whether `safe` means more to it than `agreed`."""
        return "S4" in self.promises.static.names

    @property
    def orders_all(self) -> bool:
        """Whether it puts the messages of all senders into one order."""
        return "O5" in self.promises.static.names
