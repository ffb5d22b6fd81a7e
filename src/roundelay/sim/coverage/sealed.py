"""Goals of sealed traffic under attack: what is refused, and what is believed all the same."""

from collections import defaultdict
from collections.abc import Iterator

from roundelay.sim.coverage.evidence import Evidence, Life, Opened, Refused
from roundelay.sim.intruder import OLD_NS
from roundelay.wire.primitives import Reason

FLOOD_NS = 10_000_000


def _intrusions(run: Evidence, *acts: str) -> Iterator[Refused]:
    """What an intruder sent by these acts, and a node refused."""
    return (refused for refused in run.refused if refused.act in acts)


def replay_refused(run: Evidence) -> bool:
    """A datagram that a node has opened is sent to it again, and refused."""
    return any(r.act and r.sent is not None and r.reason is Reason.REPLAY for r in run.refused)


def old_refused(run: Evidence) -> bool:
    """A datagram that was sent more than five seconds ago is sent again, and refused."""
    return any(
        r.act and r.sent is not None and r.time_ns - r.sent.time_ns > OLD_NS for r in run.refused
    )


def flipped_refused(run: Evidence) -> bool:
    """Bits of a datagram of a node that is believed were changed, and it does not open."""
    return any(r.reason is Reason.SEAL for r in _intrusions(run, "flip"))


def forged_refused(run: Evidence) -> bool:
    """A made-up datagram with the key id and the boot of a node that is believed does not open."""
    return any(r.reason is Reason.SEAL for r in _intrusions(run, "forge"))


def plain_refused(run: Evidence) -> bool:
    """A frame without a seal and with a right checksum is refused."""
    return any(r.reason is Reason.PLAIN for r in _intrusions(run, "plain"))


def other_key_refused(run: Evidence) -> bool:
    """A datagram with the id of a key that nobody has is refused."""
    return any(r.reason is Reason.KEY for r in _intrusions(run, "forge", "flip"))


def damaged_under_a_seal(run: Evidence) -> bool:
    """A datagram is damaged on its way, and its seal shows it."""
    return any(not r.act and r.reason is Reason.SEAL for r in run.refused)


def unproven_refused(run: Evidence) -> bool:
    """A frame is refused, since its sender has not proven yet that it is alive."""
    return any(not r.act and r.reason is Reason.UNPROVEN for r in run.refused)


def flooded(run: Evidence) -> bool:
    """A node refuses a hundred datagrams within 10 ms."""
    times: dict[Life, list[int]] = defaultdict(list)
    for refused in _intrusions(run, "flood"):
        times[refused.life].append(refused.time_ns)
    return any(
        later - first < FLOOD_NS
        for each in times.values()
        for first, later in zip(each, each[99:], strict=False)
    )


def proof_renewed(run: Evidence) -> bool:
    """A node is believed for longer than a proof lasts, without a break."""
    since: dict[tuple[Life, Life], int] = {}
    last: dict[tuple[Life, Life], int] = {}
    for opened in run.opened:
        pair = (opened.life, opened.sender)
        if opened.time_ns - last.get(pair, -OLD_NS) > OLD_NS // 5:
            since[pair] = opened.time_ns
        last[pair] = opened.time_ns
        if opened.time_ns - since[pair] > OLD_NS + OLD_NS // 5:
            return True
    return False


def challenge_repeated(run: Evidence) -> bool:
    """A challenge, or the answer to it, does not arrive, and the challenge is sent again."""
    challenges = [proof.frame.message for _, proof in run.proofs if str(proof) == "challenge"]
    return len({message.challenge for message in challenges}) < len(challenges)


def believed_late(run: Evidence) -> bool:
    """A datagram is opened more than half a second after it was sent: no promise is broken."""
    return any(opened.time_ns - opened.sent_ns > OLD_NS // 10 for opened in run.opened)


def believed_after_a_restart(run: Evidence) -> bool:
    """A restarted node is believed by one that believed its life before."""
    heard = {(opened.life, opened.sender) for opened in run.opened}
    return any((life, (node, inc - 1)) in heard for life, (node, inc) in heard if inc)


def dead_refused(run: Evidence) -> bool:
    """What a dead incarnation sent is sent again to a node that believes a later one."""
    newest: dict[tuple[Life, int], int] = {}
    events: list[Opened | Refused] = [*run.opened, *run.refused]
    for event in sorted(events, key=lambda event: event.time_ns):
        if isinstance(event, Refused):
            if event.sent is not None and event.act:
                name, incarnation = event.sent.life
                if newest.get((event.life, run.numbers[name]), 0) > incarnation:
                    return True
        else:
            newest[event.life, event.sender[0]] = event.sender[1]
    return False


def replayed_after_a_restart(run: Evidence) -> bool:
    """What a node heard in a life before is sent to it again: it has forgotten that it knows it."""
    heard: set[tuple[int, int, Life, int]] = set()
    for opened in run.opened:
        heard.add((*opened.life, opened.sender, opened.sent_ns))
    return any(
        (r.life[0], inc, (run.numbers[r.sent.life[0]], r.sent.life[1]), r.sent.time_ns) in heard
        for r in run.refused
        if r.act and r.sent is not None
        for inc in range(r.life[1])
    )


def own_life_refused(run: Evidence) -> bool:
    """A node is sent what it sent itself in a life before."""
    return any(r.act and r.reason is Reason.OWN_NAME for r in run.refused)


def key_changed(run: Evidence) -> bool:
    """A node uses a new key, and members go on believing each other."""
    keys: dict[Life, set[bytes]] = defaultdict(set)
    for sent in run.frames.values():
        frame = sent.frame
        keys[run.numbers.get(frame.sender, 0), frame.incarnation].add(frame.data[4:12])
    return any(len(used) > 1 for used in keys.values())


ALWAYS = (
    replay_refused,
    old_refused,
    flipped_refused,
    forged_refused,
    plain_refused,
    other_key_refused,
    damaged_under_a_seal,
    unproven_refused,
    flooded,
    proof_renewed,
    challenge_repeated,
    believed_late,
    key_changed,
)
IN_VIEWS = (
    believed_after_a_restart,
    dead_refused,
    replayed_after_a_restart,
    own_life_refused,
)
