"""Goals of DTP, CM and Pinwheel: the token's way, what is missing, F, and how a view ends."""

from collections import defaultdict
from collections.abc import Iterator

from roundelay.core.ids import ViewId
from roundelay.sim.coverage.evidence import Delivery, Evidence, Life, life, message, reason, when
from roundelay.trace.schema import Row

Hop = tuple[Life, ViewId | None, int]
"""A transfer of the token, as one node sees it."""


def null_transfer(run: Evidence) -> bool:
    """The token is handed on though there is nothing to order."""
    return any(not sent.message.uids for sent in run.sent("ACK"))


def token_sent_again(run: Evidence) -> bool:
    """A transfer of the token is lost, and the copy that its sender sends again is used."""
    first: dict[tuple[ViewId | None, int], int] = {}
    for pkt, sent in run.frames.items():
        if sent.tag == "ACK" and sent.message.hop:
            first.setdefault((sent.view, sent.message.hop), pkt)
    return any(
        hop and first[view, hop] != pkt and first[view, hop] in run.dropped
        for _, (_, view, hop), pkt in _acquired(run)
    )  # By literal rules a copy without a number gives the token too.


def old_transfer(run: Evidence) -> bool:
    """A transfer arrives again at the member it names, which has handed the token on since."""
    taken = {when(row): hop for row, hop, _ in _acquired(run)}
    latest: dict[Life, Hop] = {}
    handed_on: set[Hop] = set()
    for row in sorted((*run.kinds["token"], *run.kinds["arrive"]), key=when):
        if row.kind == "token":
            if when(row) in taken:
                latest[life(row)] = taken[when(row)]
            elif row.tag == "release" and life(row) in latest:
                handed_on.add(latest[life(row)])
        elif row.tag == "ACK":
            sent = run.frame(row)
            if (life(row), sent.view, sent.message.hop) in handed_on:
                return True
    return False


def _acquired(run: Evidence) -> Iterator[tuple[Row, Hop, int]]:
    """Where a transfer gave the token to a node: the row, the transfer, and the frame."""
    for row in run.kinds["token"]:
        arrival = run.cause(row)
        if row.tag == "acquire" and arrival is not None and arrival.tag == "ACK":
            sent = run.frame(arrival)
            assert arrival.pkt is not None
            yield row, (life(row), sent.view, sent.message.hop), arrival.pkt


def number_before_packet(run: Evidence) -> bool:
    """A number arrives before the packet that it was given to."""
    here: dict[tuple[Life, ViewId | None], set[object]] = defaultdict(set)
    for row in sorted((*run.kinds["arrive"], *run.kinds["send"]), key=when):
        if row.tag not in ("MSG", "ACK"):
            continue
        sent = run.frame(row)
        packets, m = here[life(row), sent.view], sent.message
        if row.tag == "MSG":
            packets.add((m.sender, m.number))
        elif row.kind == "arrive" and not packets.issuperset(m.uids):
            return True
    return False


def order_told_again(run: Evidence) -> bool:
    """A member that sends a message again is told its number by the holder of the token."""
    for row in run.kinds["send"]:
        cause = run.cause(row) if row.tag == "ACK" else None
        if cause is not None and cause.tag == "MSG" and run.frame(row).frame.to is not None:
            return True
    return False


def asked_the_holder(run: Evidence) -> bool:
    """What is missing is asked for, and comes from the member that has the token."""
    return any(not handed_on for handed_on in _answers(run))


def asked_the_predecessor(run: Evidence) -> bool:
    """A new holder of the token asks for what it lacks, and the holder before it answers."""
    return any(_answers(run))


def _answers(run: Evidence) -> list[bool]:
    """Of each request that was answered: whether by the one that had handed on the token."""
    answered: dict[tuple[Life, int | None], bool] = {}
    for row in run.kinds["send"]:
        cause = run.cause(row)
        if cause is None or cause.tag != "REQ" or run.frame(row).frame.to is None:
            continue
        key = life(row), row.cause
        hops = row.tag == "ACK" and run.frame(row).message.hop > 0
        answered[key] = answered.get(key, False) or hops
    return list(answered.values())


def waits_for_resilience(run: Evidence) -> bool:
    """A packet that is here with its number waits until enough members are known to hold it."""
    first: dict[tuple[Life, int | None], Row] = {}
    for row in run.kinds["deliver"]:
        first.setdefault((life(row), row.cause), row)
    return any(_word_of_another(run, row) for row in first.values())


def _word_of_another(run: Evidence, delivery: Row) -> bool:
    """Whether a delivery was set off by something that is not about its packet."""
    cause = run.cause(delivery)
    if cause is None or cause.tag not in ("MSG", "ACK"):
        return False
    m = run.frame(cause).message
    if cause.tag == "ACK":
        return not m.uids
    span = m.packet.span
    return message(delivery) != (run.number(span.node), span.incarnation, span.first)


def several_in_one(run: Evidence) -> bool:
    """An acknowledgment orders several packets."""
    return any(len(sent.message.uids) > 1 for sent in run.sent("ACK"))


def window_closed(run: Evidence) -> bool:
    """A node has several packets without a number, and more that wait for one of them."""
    return run.window > 1 and any(
        sent.waiting and sent.message.number > 1 for sent in run.sent("MSG")
    )


# How an old view ends


def withdrawn(run: Evidence) -> bool:
    """A packet is withdrawn, sent again in the next view, and delivered there."""
    taken_back = {message(row): when(row) for row in run.kinds["withdraw"]}
    return any(when(row) > taken_back.get(message(row), when(row)) for row in run.kinds["deliver"])


def delivered_without_a_number(run: Evidence) -> bool:
    """A packet is delivered without a number, since one that is not here may have delivered it."""
    return any(delivery.place is None for delivery in run.deliveries)


def passed_over(run: Evidence) -> bool:
    """Where many hold a packet: one is passed over, as its sender is gone and may not hold it."""
    last: dict[tuple[Life, ViewId | None], int] = defaultdict(int)
    for delivery in run.deliveries:
        if delivery.place is None:
            continue
        key = delivery.life, delivery.ordered
        if delivery.place > last[key] + 1 and _many(run, delivery):
            return True
        last[key] = delivery.place
    return False


def _many(run: Evidence, delivery: Delivery) -> bool:
    """Whether F was at least half of the view that ordered a packet."""
    assert delivery.ordered is not None
    seq, rep = delivery.ordered.seq, run.number(delivery.ordered.rep)
    sizes = {(row.c_seq, row.c_rep): len(row.members or ()) for row in run.regular}
    return run.resilience >= sizes[seq, rep] // 2


def successor_suspected(run: Evidence) -> bool:
    """A member does not take the token and is not heard either."""
    return _suspected(run, "it does not take the token")


def token_lost(run: Evidence) -> bool:
    """Nobody hears of the token any more."""
    return _suspected(run, "the token is lost")


def never_ordered(run: Evidence) -> bool:
    """A node's message gets no number, however often it is sent."""
    return _suspected(run, "nobody orders what was sent")


def _suspected(run: Evidence, why: str) -> bool:
    return any(reason(row) == why for row in run.kinds["suspect"])


ALWAYS = (
    null_transfer,
    token_sent_again,
    old_transfer,
    number_before_packet,
    order_told_again,
    asked_the_holder,
    asked_the_predecessor,
    waits_for_resilience,
    window_closed,
)
PINWHEEL = (several_in_one,)
"""Of Pinwheel alone."""
IN_VIEWS = (
    withdrawn,
    delivered_without_a_number,
    passed_over,
    successor_suspected,
    token_lost,
    never_ordered,
)
