"""Goals of FC: a token that is made anew, what that does to a chain, masked members, endings."""

from collections import defaultdict
from collections.abc import Iterator

from roundelay.core.ids import Packet, Service, ViewId
from roundelay.protocols.fc.messages import PART_DECISIONS, Dec, DecisionId, Epoch
from roundelay.sim.coverage.evidence import Evidence, Life, Sent, life, reason, when
from roundelay.trace.schema import Row

Request = tuple[ViewId | None, int, int]
"""The view, the sender's place in it, and its number."""

Made = dict[ViewId | None, dict[DecisionId, Dec]]
"""By view: every decision, in the order in which they were made."""

# The token


def null_decision(run: Evidence) -> bool:
    """A decision orders nothing: its maker has kept the token for a while."""
    return any(
        cause.kind == "expire" and not run.frame(row).message.runs
        for row, cause in _sent_because(run, "DEC")
    )


def rest_broken_off(run: Evidence) -> bool:
    """A member that keeps the token decides at once when a request comes."""
    return any(cause.tag == "REQ" for _, cause in _sent_because(run, "DEC"))


def several_in_one(run: Evidence) -> bool:
    """A decision orders requests of several members."""
    return any(len(d.runs) > 1 for d in _decisions(run))


def decision_sent_again(run: Evidence) -> bool:
    """A decision does not reach the member that follows, and the copy that is sent again does."""
    return any(
        cause.tag == "DEC" and run.frame(cause).frame.to is not None
        for row, cause in _sent_because(run, "DEC")
        if run.frame(row).frame.to is None
    )


def regeneration(run: Evidence) -> bool:
    """A token is made anew, and decisions go on."""
    return any(d.epoch != d.parent.epoch for d in _decisions(run))


def two_regenerators(run: Evidence) -> bool:
    """Two members ask for promises at a time, before either can decide."""
    asking: dict[ViewId | None, set[int]] = defaultdict(set)
    for sent in run.frames.values():
        if sent.tag == "DEC" and sent.frame.to is None:
            asking[sent.view].clear()
        elif sent.tag == "REGEN":
            asking[sent.view].add(sent.message.epoch.regenerator)
            if len(asking[sent.view]) > 1:
                return True
    return False


def equal_counters(run: Evidence) -> bool:
    """Two members count their epochs alike, and the larger place is the later epoch."""
    counts: set[tuple[ViewId | None, int, int]] = {
        (sent.view, *sent.message.epoch) for sent in run.sent("REGEN")
    }
    return len({(view, counter) for view, counter, _ in counts}) < len(counts)


def asked_in_vain(run: Evidence) -> bool:
    """A member asks for promises, and never begins its epoch."""
    begun = {(view, d.epoch) for view, made in _made(run).items() for d in made.values()}
    return any((sent.view, sent.message.epoch) not in begun for sent in run.sent("REGEN"))


def stale_epoch_refused(run: Evidence) -> bool:
    """A member answers that it has promised a later epoch."""
    return any(True for _ in run.sent("STALE"))


def old_holder_decides(run: Evidence) -> bool:
    """A member decides in an old epoch when another has decided in a later one."""
    for made in _made(run).values():
        latest = Epoch(0, 0)
        for d in made.values():
            if d.epoch < latest:
                return True
            latest = d.epoch
    return False


# Chains


def dropped_suffix(run: Evidence) -> bool:
    """A decision is dropped: in a later epoch another one has its number."""
    views = _made(run).values()
    return any(len({d.number for d in made.values()}) < len(made) for made in views)


def ordered_again(run: Evidence) -> bool:
    """A request whose decision was dropped is ordered by another decision."""
    seen: dict[Request, DecisionId] = {}
    for view, made in _made(run).items():
        for d in made.values():
            for request in _requests(view, d):
                if seen.setdefault(request, d.id) != d.id:
                    return True
    return False


def shorter_chain_wins(run: Evidence) -> bool:
    """Of the chains that members tell of, a shorter one is extended: its epoch is later."""
    tips: dict[tuple[ViewId | None, Epoch], set[tuple[Epoch, int]]] = defaultdict(set)
    for sent in run.frames.values():
        m = sent.message
        if sent.tag == "REGEN":
            tips[sent.view, m.epoch].add((m.accepted, m.tip))
        elif sent.tag == "PROMISE":
            tips[sent.view, m.epoch].add((m.tip.epoch, m.tip.number))
    return any(
        any(number > d.parent.number for _, number in tips[view, d.epoch])
        for view, made in _made(run).items()
        for d in made.values()
        if d.epoch != d.parent.epoch
    )


def decision_fetched(run: Evidence) -> bool:
    """A member asks for decisions that it lacks, and gets them."""
    return any(row.tag == "CHAIN" for row in run.kinds["arrive"])


def chain_in_parts(run: Evidence) -> bool:
    """More decisions are asked for than fit into a frame."""
    return any(len(sent.message.decisions) == PART_DECISIONS for sent in run.sent("CHAIN"))


# Requests


def body_fetched(run: Evidence) -> bool:
    """A request is ordered, and a member that lacks it asks for it and gets it."""
    return any(cause.tag == "ASK" for _, cause in _sent_because(run, "REQ"))


def request_repeated(run: Evidence) -> bool:
    """A request gets no place for a while, and its sender sends it again."""
    seen: set[Request] = set()
    for sent in run.sent("REQ"):
        if sent.frame.to is None:
            request = (sent.view, sent.message.sender, sent.message.number)
            if request in seen:
                return True
            seen.add(request)
    return False


def decision_before_request(run: Evidence) -> bool:
    """A decision reaches a member before a request that it orders."""
    here: dict[Life, set[Request]] = defaultdict(set)
    for row in sorted((*run.kinds["arrive"], *run.kinds["send"]), key=when):
        if row.tag not in ("REQ", "DEC"):
            continue
        sent = run.frame(row)
        if row.tag == "REQ":
            here[life(row)].add((sent.view, sent.message.sender, sent.message.number))
        elif not here[life(row)].issuperset(_requests(sent.view, sent.message)):
            return True
    return False


def window_closed(run: Evidence) -> bool:
    """A member keeps packets back, until all that it hears hold more of what it sent."""
    held: dict[ViewId | None, int] = {}
    """By view: the number up to which all on the ring are known to hold everything."""
    made = _made(run)
    for sent in run.frames.values():
        m = sent.message
        if sent.tag == "DEC":
            held[sent.view] = min(m.have[member] for member in m.ring)
        elif sent.tag == "REQ" and sent.waiting:  # Else nothing is kept back.
            known = [d for d in made[sent.view].values() if d.number <= held.get(sent.view, 0)]
            last = max((r.last for d in known for r in d.runs if r.sender == m.sender), default=0)
            if m.number - last >= run.window:
                return True
    return False


# Members off the ring


def masked_and_readmitted(run: Evidence) -> bool:
    """A member is taken off the ring, and is on it again in the same view."""
    for view, made in _made(run).items():
        size = len(run.members(view))
        off: set[int] = set()
        for d in made.values():
            if off.intersection(d.ring):
                return True
            off = set(range(size)).difference(d.ring)
    return False


def masked_promise(run: Evidence) -> bool:
    """A member that is off the ring promises all the same."""
    ring: dict[ViewId | None, tuple[int, ...]] = {}
    for row in run.kinds["send"]:
        if row.tag not in ("DEC", "PROMISE"):
            continue
        sent = run.frame(row)
        if row.tag == "DEC":
            ring[sent.view] = sent.message.ring
        elif sent.view in ring and _place(run, sent, row) not in ring[sent.view]:
            return True
    return False


def safe_waited_for_the_masked(run: Evidence) -> bool:
    """A safe message is ordered when a member is off the ring, and delivered once it has it."""
    packets = _packets(run)
    waiting = {
        (view, d.number, packets[request].span)
        for view, made in _made(run).items()
        for d in made.values()
        if len(d.ring) < len(run.members(view))
        for request in _requests(view, d)
        if request in packets and packets[request].service is Service.SAFE
    }
    return any((d.ordered, d.place, d.span) in waiting for d in run.deliveries)


# How an old view ends


def silence_suspected(run: Evidence) -> bool:
    """Membership is told of a member that is off the ring and silent."""
    return _suspected(run, "silent and off the ring")


def no_majority(run: Evidence) -> bool:
    """Membership is told that no majority answers."""
    return _suspected(run, "no majority answers")


def too_far_behind(run: Evidence) -> bool:
    """Membership is told of a member for which more would be kept than there is room for."""
    return _suspected(run, "too far behind")


def minority_ends_a_view(run: Evidence) -> bool:
    """A minority of a view moves on together, and delivers what may not be confirmed."""
    sizes = {(row.c_seq, row.c_rep): len(row.members or ()) for row in run.regular}
    late = {(d.life, d.entered.id) for d in run.deliveries if d.entered and d.place is None}
    return any(
        2 * len(d.entered.members) <= sizes.get((d.ordered.seq, run.number(d.ordered.rep)), 0)
        for d in run.deliveries
        if d.entered and d.ordered and d.place is None and (d.life, d.entered.id) in late
    )


def view_ends_in_a_regeneration(run: Evidence) -> bool:
    """A member has asked for promises and has not decided when its view ends."""
    made = _made(run)
    latest: dict[tuple[Life, ViewId | None], Epoch] = {}
    for row in run.kinds["send"]:
        if row.tag == "REGEN":
            sent = run.frame(row)
            latest[life(row), sent.view] = sent.message.epoch
    ended = {(life(before), before.c_seq, before.c_rep) for before, _ in run.steps}
    for (who, view), epoch in latest.items():
        assert view is not None
        over = (who, view.seq, run.number(view.rep)) in ended
        if over and all(d.epoch < epoch for d in made.get(view, {}).values()):
            return True
    return False


def delivered_unconfirmed(run: Evidence) -> bool:
    """A view ends, and a request is delivered without a key: nobody here has confirmed it."""
    return any(delivery.place is None for delivery in run.deliveries)


def passed_over(run: Evidence) -> bool:
    """A view ends, and a request on the chain is passed over: nobody here has it."""
    packets = _packets(run)
    delivered = {(d.life, d.ordered, d.span) for d in run.deliveries}
    ended = {(d.life, d.ordered) for d in run.deliveries if d.place is None}
    known: dict[tuple[Life, ViewId | None], dict[Request, None]] = defaultdict(dict)
    had: dict[Life, set[Request]] = defaultdict(set)
    for row in run.kinds["arrive"]:
        if row.tag not in ("DEC", "REQ"):
            continue
        sent = run.frame(row)
        if row.tag == "REQ":
            had[life(row)].add((sent.view, sent.message.sender, sent.message.number))
        else:
            known[life(row), sent.view].update(
                dict.fromkeys(_requests(sent.view, sent.message)),
            )
    return any(
        request not in had[who] and (who, view, packets[request].span) not in delivered
        for who, view in ended
        for request in known[who, view]
        if request in packets and packets[request].span.node != run.nodes[who[0]]
    )


# What goals read


def _decisions(run: Evidence) -> Iterator[Dec]:
    return (d for made in _made(run).values() for d in made.values())


def _made(run: Evidence) -> Made:
    found: Made = defaultdict(dict)
    for sent in run.sent("DEC"):
        found[sent.view].setdefault(sent.message.id, sent.message)
    return found


def _requests(view: ViewId | None, d: Dec) -> Iterator[Request]:
    """What a decision orders."""
    for run in d.runs:
        for number in range(run.first, run.last + 1):
            yield view, run.sender, number


def _packets(run: Evidence) -> dict[Request, Packet]:
    return {
        (sent.view, sent.message.sender, sent.message.number): sent.message.packet
        for sent in run.sent("REQ")
    }


def _sent_because(run: Evidence, tag: str) -> Iterator[tuple[Row, Row]]:
    """Frames of a type that an input set off, with that input."""
    for row in run.kinds["send"]:
        cause = run.cause(row) if row.tag == tag else None
        if cause is not None:
            yield row, cause


def _place(run: Evidence, sent: Sent, row: Row) -> int:
    """The place of a frame's sender in its view."""
    return run.members(sent.view).index(run.nodes[row.proc])


def _suspected(run: Evidence, why: str) -> bool:
    return any(reason(row) == why for row in run.kinds["suspect"])


ALWAYS = (
    null_decision,
    rest_broken_off,
    several_in_one,
    decision_sent_again,
    regeneration,
    two_regenerators,
    equal_counters,
    asked_in_vain,
    stale_epoch_refused,
    old_holder_decides,
    dropped_suffix,
    ordered_again,
    shorter_chain_wins,
    decision_fetched,
    chain_in_parts,
    body_fetched,
    request_repeated,
    decision_before_request,
    window_closed,
    masked_and_readmitted,
    masked_promise,
    safe_waited_for_the_masked,
)
LITERAL = (
    null_decision,
    rest_broken_off,
    several_in_one,
    regeneration,
    dropped_suffix,
    ordered_again,
    decision_fetched,
    masked_and_readmitted,
)
"""Under the rules that ask nobody, inside of the paper's assumptions."""
IN_VIEWS = (
    silence_suspected,
    no_majority,
    too_far_behind,
    minority_ends_a_view,
    view_ends_in_a_regeneration,
    delivered_unconfirmed,
    passed_over,
)
