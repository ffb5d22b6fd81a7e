"""Goals of Totem: its token, its requests, its flow control, and how it ends a view."""

from collections import defaultdict

from roundelay.core.ids import Service, ViewId
from roundelay.membership.ring import NOBODY
from roundelay.sim.coverage.evidence import Evidence, Life, life, when


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


def token_overtakes(run: Evidence) -> bool:
    """A node uses a token before a packet arrives that followed it."""
    behind = _behind_tokens(run)
    told: dict[tuple[Life, ViewId | None], int] = defaultdict(int)
    for row in sorted((*run.kinds["token"], *run.kinds["arrive"]), key=when):
        if row.kind == "arrive" and row.tag == "DATA":
            sent = run.frame(row)
            if row.pkt in behind and sent.message.seq <= told[life(row), sent.view]:
                return True
        elif row.kind == "token" and row.tag == "acquire":
            arrival = run.cause(row)
            if arrival is not None and arrival.tag == "TOKEN":
                sent = run.frame(arrival)
                told[life(row), sent.view] = sent.message.token.seq
    return False


def asked_a_rotation_later(run: Evidence) -> bool:
    """A packet is lost behind its token, and asked for only when the token has been round."""
    lost = {
        (run.frames[pkt].view, run.frames[pkt].message.seq)
        for pkt in _behind_tokens(run)
        if pkt in run.dropped
    }
    return any(
        (sent.view, wanted) in lost
        for sent in run.sent("TOKEN")
        for wanted in sent.message.token.requests
    )


def safe_a_rotation_later(run: Evidence) -> bool:
    """A node waits two rotations for its own safe message, not one, though nothing was lost."""
    first: dict[tuple[ViewId | None, int], int] = {}
    losses: dict[ViewId | None, list[int]] = defaultdict(list)
    for sent in run.sent("TOKEN"):
        token = sent.message.token
        first.setdefault((sent.view, token.seq), token.token_seq)
        if token.requests or token.aru_id != NOBODY:
            losses[sent.view].append(token.token_seq)
    for row in run.kinds["deliver"]:
        cause = run.cause(row)
        if (
            row.svc != Service.SAFE
            or row.m_src != row.proc
            or cause is None
            or cause.tag != "TOKEN"
        ):
            continue
        sent = run.frame(cause)
        told = first.get((sent.view, row.k2 or 0))  # With the last packet of a visit.
        hop = sent.message.token.token_seq + 1
        if told is None or hop - told < 2 * len(run.members(sent.view)):
            continue
        if not any(told <= hop_of_loss <= hop for hop_of_loss in losses[sent.view]):
            return True
    return False


def _behind_tokens(run: Evidence) -> set[int]:
    """Frames of packets that were first sent behind the token that told of them."""
    told: dict[ViewId | None, int] = defaultdict(int)
    known: set[tuple[ViewId | None, int]] = set()
    behind = set()
    for pkt, sent in run.frames.items():
        if sent.tag == "TOKEN":
            told[sent.view] = max(told[sent.view], sent.message.token.seq)
        elif sent.tag == "DATA" and (place := (sent.view, sent.message.seq)) not in known:
            known.add(place)
            if sent.message.seq <= told[sent.view]:
                behind.add(pkt)
    return behind


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
    for who, ordered, place, span, entered in run.deliveries:
        assert place is not None
        if entered is not None and place > last[who, ordered] + 1:
            found.append(span.node in entered.members)
        last[who, ordered] = place
    return found


ALWAYS = (
    token_sent_again,
    served_by_another,
    request_passed_on,
    window_closed,
    token_rests,
    rest_broken_off,
    token_overtakes,
    asked_a_rotation_later,
    safe_a_rotation_later,
)
IN_VIEWS = (delivered_behind_a_gap, owed_behind_a_gap)
