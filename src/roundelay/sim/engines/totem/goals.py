"""Goals of Totem: its token, its requests, its flow control, and how it ends a view."""

from collections import defaultdict

from roundelay.core.ids import ViewId
from roundelay.sim.coverage.evidence import Evidence, Life


def token_sent_again(run: Evidence) -> bool:
    """A token is lost, and the copy that its sender sends again is used."""
    first: dict[tuple[ViewId | None, int], int] = {}
    for pkt, sent in run.frames.items():
        if sent.tag == "TOKEN":
            first.setdefault((sent.view, sent.message.token.token_seq), pkt)
    for row in run.kinds["token"]:
        arrival = run.cause(row)
        if row.tag != "acquire" or arrival is None or arrival.tag != "TOKEN":
            continue
        sent = run.frame(arrival)
        original = first[sent.view, sent.message.token.token_seq]
        if original != arrival.pkt and original in run.dropped:
            return True
    return False


def served_by_another(run: Evidence) -> bool:
    """A packet is sent again by a node that did not originate it."""
    return any(sent.message.packet.span.node != sent.frame.sender for sent in run.sent("DATA"))


def request_passed_on(run: Evidence) -> bool:
    """A node cannot serve a request in the token, and passes it on."""
    requests = {
        (sent.view, sent.message.token.token_seq): sent.message.token.requests
        for sent in run.sent("TOKEN")
    }
    return any(
        set(wanted).intersection(requests.get((view, hop - 1), ()))
        for (view, hop), wanted in requests.items()
        if wanted
    )


def window_closed(run: Evidence) -> bool:
    """A node keeps packets back because a rotation has carried all that it may."""
    tokens = (sent.message.token for sent in run.sent("TOKEN"))
    return any(token.backlog and token.fcc >= run.window for token in tokens)


def token_rests(run: Evidence) -> bool:
    """The token of an idle ring rests until its time is over."""
    return any(row.tag == "token_hold" for row in run.kinds["expire"])


def rest_broken_off(run: Evidence) -> bool:
    """A resting token goes on because somebody has something to say."""
    causes = (run.cause(row) for row in run.kinds["token"] if row.tag == "release")
    return any(cause is not None and cause.tag == "HOLDCANCEL" for cause in causes)


def delivered_behind_a_gap(run: Evidence) -> bool:
    """A message behind a gap is delivered, because its sender comes along."""
    return any(comes_along for comes_along in _behind_a_gap(run))


def owed_behind_a_gap(run: Evidence) -> bool:
    """A message behind a gap is delivered though its sender is gone: a peer may have done so."""
    return not all(_behind_a_gap(run))


def _behind_a_gap(run: Evidence) -> list[bool]:
    """Of each packet that was delivered behind a gap: whether its sender is still there."""
    last: dict[tuple[Life, ViewId | None], int] = defaultdict(int)
    found = []
    for life, ordered, place, span, entered in run.deliveries:
        assert place is not None
        if entered is not None and place > last[life, ordered] + 1:
            found.append(span.node in entered.members)
        last[life, ordered] = place
    return found


ALWAYS = (
    token_sent_again,
    served_by_another,
    request_passed_on,
    window_closed,
    token_rests,
    rest_broken_off,
)
IN_VIEWS = (delivered_behind_a_gap, owed_behind_a_gap)
