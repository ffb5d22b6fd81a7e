"""ATOP: adaptive total order over a view-synchronous multicast, without a token.

Follows "An Adaptive Totally Ordered Multicast Protocol that Tolerates Partitions" (Chockler,
Huleihel, Dolev, 1998). `atom` orders what the link hands up by slots, `policy` decides how members
share the slots, and this engine pulls packets, stamps them, and sends dummies for a member that has
nothing to send while others wait for its slots.

The paper is silent on members that have nothing to send: their slots would stop everybody. Dummies
fill them, by one of four rules (`dummies`):

    cover    fill every own slot that stands before a message that waits now, with one frame
    demand   fill the next slot, if it is our own
    switch   only tell that a newer distribution is in use
    none     as the paper has it

Services: `fifo`, `causal` and `agreed` packets are delivered in the one order. A `safe` packet
waits until every member of the view has it, and all that is ordered behind it waits too.

The end of a view: all that the members who move on together hold is delivered, in slot order; slots
without a packet are skipped. A safe packet which nobody knows to have reached all of the view goes
to the transitional view, with all that is ordered behind it. Nothing is ever withdrawn.
"""

from collections.abc import Mapping, Sequence

from roundelay.core.contract import Outlet
from roundelay.core.description import Capacity, Description, Promises, Properties
from roundelay.core.effects import CancelTimer, SetTimer
from roundelay.core.ids import NodeId, Packet, View
from roundelay.core.value import value
from roundelay.links.engine import HoldBack, LinkEngine, Ordered
from roundelay.links.link import LinkConfig
from roundelay.links.messages import Data, header_bytes
from roundelay.protocols.atop.atom import COVER_SLOTS_MAX, Atom, Stamp
from roundelay.protocols.atop.messages import CODEC, Content
from roundelay.protocols.atop.policy import BookKeeper, Given, GivenWeights, Policy, Silent
from roundelay.protocols.atop.slots import valid

_new = tuple.__new__

HOLD = "hold"
PERIOD = "period"
DUMMIES = ("cover", "demand", "switch", "none")
POLICIES = ("bookkeeper", "given")

LOOK_BACK_WINDOWS = 3
"""Windows of one sender that the book-keeper of a real group looks back on at least. Fewer: one
burst decides the weights. More: it adapts late."""

SLOT_BITS = 40
"""Of an order key's number, for the slot; the bits above count distributions."""


@value
class Config(LinkConfig):
    """Besides the settings of links: how slots are shared, and when dummies are sent."""

    hold_s: float = 0.002
    """Until a member fills its slots with a dummy. Shorter: more dummies, sent before the member
    has something of its own to say; longer: messages of others wait for it that long."""
    dummies: str = "cover"
    policy: str = "bookkeeper"
    weights: str = ""
    """With policy=given: weights by name, like a:20,b:5; members that are not named have 1."""
    period_s: float = 0.25
    """Between two looks of the book-keeper at the shares. Shorter: distributions change more often,
    and every change makes new messages wait for the slowest; longer: it adapts later."""
    factor: int = 32
    """Packets that the book-keeper looks back on, for each member. Too few: a slow sender does not
    show up, and weights follow chance; too many: it adapts late."""
    scale: int = 16
    """Weight of each of those packets; every member has 1 besides. Smaller: a silent member keeps
    more slots, which cost dummies; larger: its first message waits longer for a slot."""
    threshold_permille: int = 100
    """Sum of the changes of all shares, in thousandths, above which weights are changed."""

    def __post_init__(self) -> None:
        LinkConfig.__post_init__(self)
        if self.dummies not in DUMMIES:
            raise ValueError(f"dummies={self.dummies}: write one of {', '.join(DUMMIES)}")
        if self.policy not in POLICIES:
            raise ValueError(f"policy={self.policy}: write one of {', '.join(POLICIES)}")
        if self.hold_s <= 0 or self.period_s <= 0:
            raise ValueError("hold_s and period_s are times above 0, like hold_s=0.002")
        if min(self.factor, self.scale) < 1 or self.threshold_permille < 0:
            raise ValueError("factor and scale are at least 1, threshold_permille at least 0")
        if self.weights and self.policy != "given":
            raise ValueError("weights are for policy=given; write that too, or leave them out")
        if self.policy == "given":
            GivenWeights.parse(self.weights)


_Body = tuple[int, int, Packet]
"""A packet, with the place of its sender and its number on the link."""


class SlotOrder:
    """ATOM as an order of links: bodies are packets, stamps are keys."""

    def __init__(self, atom: Atom[_Body]) -> None:
        self.atom = atom
        self._held = HoldBack()

    def sound(self, content: Content) -> bool:
        weights = content.tag.weights
        return weights is None or valid(weights, self.atom.members)

    def arrive(self, sender: int, number: int, content: Content) -> bool:
        tag, packet = content.tag, content.packet
        if not self.atom.plausible(sender, tag):
            return False
        body = None if packet is None else (sender, number, packet)
        ordered = self.atom.arrive(sender, tag, body)
        if ordered:
            self._hold(ordered)
        return True

    def close(self) -> None:
        self._hold(self.atom.close())

    def ready(self, stable: Sequence[int]) -> list[Ordered]:
        return self._held.ready(stable)

    def _hold(self, ordered: list[tuple[_Body, Stamp]]) -> None:
        append = self._held.waiting.append
        for (sender, number, packet), (distribution, slot) in ordered:
            key = ((distribution << SLOT_BITS) + slot, 0)
            append(_new(Ordered, (sender, number, packet, key)))


class AtopEngine(LinkEngine[Content]):
    """One member of a group that orders by slots."""

    codec = CODEC

    def __init__(self, node: NodeId, outlet: Outlet, config: Config | None = None) -> None:
        self.config = config or Config()
        super().__init__(node, outlet, self.config)

    def _new_order(self, view: View) -> SlotOrder:
        members = len(view.members)
        self.atom: Atom[_Body] = Atom(view.id.seq, members, self.me)
        self.policy = self._policy(view)
        self._counts = type(self.policy) is BookKeeper
        """Whether the policy at this member wants to know of every packet."""
        self.dummies = 0
        """Dummies sent in this view."""
        self._holding = False
        """The timer after which a dummy may be due is armed ..."""
        self._counting = False
        """... and the one of the book-keeper."""
        self._adapt()
        return SlotOrder(self.atom)

    def _policy(self, view: View) -> Policy:
        config = self.config
        if self.me or len(view.members) == 1:
            return Silent()
        if config.policy == "given":
            return Given(GivenWeights.parse(config.weights).of(view))
        return BookKeeper(len(view.members), config.factor, config.scale, config.threshold_permille)

    def _adapt(self) -> None:
        weights = self.policy.propose()
        if weights is not None:
            self.atom.learn(self.atom.newest + 1, weights)

    def _wrap(self, packet: Packet) -> Content:
        tag = self.atom.stamp()
        return Content(tag, packet)

    def _handed_up(self, sender: int, content: Content) -> None:
        if self._counts and content.packet is not None:
            self.policy.observe(sender)
            if not self._counting and not self.link.frozen:
                self._counting = True
                self._out.append(SetTimer(PERIOD, self.config.period_s))

    def _tend(self) -> None:
        due = self.config.dummies != "none" and self.atom.others_wait
        if due != self._holding:
            self._holding = due
            self._out.append(SetTimer(HOLD, self.config.hold_s) if due else CancelTimer(HOLD))

    def _on_timer(self, timer: str) -> None:
        match timer:
            case "hold":
                self._holding = False
                self._send_dummy()
            case "period":
                self._counting = False
                self._adapt()
            case _:
                super()._on_timer(timer)

    def _send_dummy(self) -> None:
        """Fill the slots for which others wait, if nothing of our own does."""
        self._send_waiting()
        slots = self._slots_owed()
        if slots and self.link.room > 0:
            self.dummies += 1
            self.link.send(Content(self.atom.stamp(slots)))

    def _slots_owed(self) -> int:
        match self.config.dummies:
            case "cover":
                return self.atom.owed()
            case "demand":
                return int(self.atom.asked_for or (self.atom.behind and self.atom.others_wait))
            case _:
                return int(self.atom.behind and self.atom.others_wait)


def _tune(capacity: Capacity, timers: Mapping[str, float]) -> Mapping[str, float]:
    """Every sender has a window of its own. Timers that are no alarms stay as they are.

    The book-keeper looks back on several windows, or one sender's burst would pass for its share.
    When a member that was silent begins to send, all walk the slots between its own: weights are
    such that for a window of its packets they are no more than a member walks at a time."""
    default = Config()
    window = max(2, capacity.window_packets // max(1, capacity.nodes - 1))
    factor = max(default.factor, LOOK_BACK_WINDOWS * window // capacity.nodes)
    walked = window * factor * capacity.nodes
    return {
        "window_packets": window,
        "factor": factor,
        "scale": min(default.scale, max(1, COVER_SLOTS_MAX // walked)),
        "hold_s": default.hold_s,
        "period_s": default.period_s,
    }


def _check_options(config: Config, nodes: Sequence[NodeId]) -> None:
    """Given weights are for nodes of the group."""
    if config.policy == "given":
        for name, _ in GivenWeights.parse(config.weights).by_name:
            if name not in nodes:
                raise ValueError(
                    f"weights={config.weights} has a weight for {name!r}, which is no node of the "
                    f"group; name some of {', '.join(nodes)}"
                )


DESCRIPTION = Description(
    name="atop",
    summary="One order by slots that members share as they send; no token, no sequencer.",
    engine=AtopEngine,
    config=Config,
    data_tags=("DATA",),
    header_bytes=lambda nodes: header_bytes(nodes) + 2 + 4 * nodes,  # Weights, too.
    packets_in=lambda message: type(message) is Data and message.content.packet is not None,
    promises=Promises(
        Properties("O1 O1r O2 O3f O3i O4 O5 O9 S1 S3 S4 L4 L5", "O5p L1", "E5"),
        in_views=Properties("D4t S2", "O8"),
    ),
    alarm="silence_s",
    shared_options=("heartbeat_s", "policy", "dummies"),
    tune=_tune,
    check_options=_check_options,
    simulation="roundelay.sim.engines.atop",
)
