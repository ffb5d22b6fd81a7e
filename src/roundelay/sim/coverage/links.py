"""Goals of engines on links, fifo among them: missing packets, heartbeats, windows, silence."""

from collections import defaultdict
from collections.abc import Iterator

from roundelay.core.ids import NodeId, ViewId
from roundelay.sim.coverage.evidence import Evidence, Life, Sent, life, reason


def served_by_its_sender(run: Evidence) -> bool:
    """A missing packet is asked for, and its sender sends it again."""
    return any(
        sent.frame.to is not None and _sender(run, sent) == sent.frame.sender
        for sent in run.sent("DATA")
    )


def served_by_another(run: Evidence) -> bool:
    """A missing packet is asked for, and another than its sender sends it again."""
    return any(_sender(run, sent) != sent.frame.sender for sent in run.sent("DATA"))


def _sender(run: Evidence, sent: Sent) -> NodeId:
    """Who sent the content of a Data first."""
    sender: int = sent.message.sender
    return run.members(sent.view)[sender]


def first_sent(run: Evidence) -> Iterator[Sent]:
    """The Data frames with which contents were sent first, in their order."""
    seen: set[tuple[ViewId | None, int, int]] = set()
    for sent in run.sent("DATA"):
        place = (sent.view, sent.message.sender, sent.message.number)
        if place not in seen:
            seen.add(place)
            yield sent


def last_one_lost(run: Evidence) -> bool:
    """A packet is lost with none behind it, and a heartbeat tells that there was one."""
    got: dict[tuple[Life, ViewId | None, int], int] = defaultdict(int)
    told: dict[tuple[Life, ViewId | None, int], int] = defaultdict(int)
    for row in sorted((*run.kinds["arrive"], *run.kinds["send"]), key=lambda row: row.gseq or 0):
        if row.tag not in ("DATA", "HEARTBEAT", "REQUEST"):
            continue
        sent = run.frame(row)
        m, where = sent.message, (life(row), sent.view)
        if row.kind == "send":
            if row.tag == "REQUEST":
                last = max(m.numbers)
                if got[*where, m.sender] < last <= told[*where, m.sender]:
                    return True
        elif row.tag == "DATA":
            got[*where, m.sender] = max(got[*where, m.sender], m.number)
        elif row.tag == "HEARTBEAT":
            for sender, number in enumerate(m.received):
                told[*where, sender] = max(told[*where, sender], number)
    return False


def early_packet(run: Evidence) -> bool:
    """A packet arrives before one that its sender sent earlier."""
    numbers: dict[tuple[Life, ViewId | None, int], set[int]] = defaultdict(set)
    for row in run.kinds["arrive"]:
        if row.tag != "DATA":
            continue
        sent = run.frame(row)
        number = sent.message.number
        got = numbers[life(row), sent.view, sent.message.sender]
        if number > 1 and number - 1 not in got:
            return True
        got.add(number)
    return False


def window_closed(run: Evidence) -> bool:
    """A sender keeps packets back until all have more of what it sent."""
    return any(
        sent.waiting and sent.message.number - sent.message.stable >= run.window
        for sent in run.sent("DATA")
    )


def silence_suspected(run: Evidence) -> bool:
    """A node is suspected because nothing is heard of it."""
    return any(reason(row) == "nothing is heard" for row in run.kinds["suspect"])


ALWAYS = (served_by_its_sender, served_by_another, last_one_lost, early_packet, window_closed)
IN_VIEWS = (silence_suspected,)
