"""Goals of ST: how a loss is found, what holds packets back, and how epochs and views end."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from roundelay.core.ids import ViewId
from roundelay.sim.coverage.evidence import Evidence, Life, Sent, life, message, reason, view, when
from roundelay.trace.schema import Row

HEARD = ("DT", "RR")
"""Frames that carry a transmission at its place on the channel ..."""
SAID = ("DT", "RR", "UPDT", "UPRR")
"""... and those that carry any."""

Where = tuple[Life, ViewId]
"""A member of a view."""


# Loss


def found_by_a_packet(run: Evidence) -> bool:
    """A member notices by a later packet of the same source that it has missed one."""
    return any(cause.tag == "DT" for _, cause in _begun(run))


def found_by_a_word(run: Evidence) -> bool:
    """A member notices that it missed a packet when its source says that it is ready."""
    return any(cause.tag == "RR" for _, cause in _begun(run))


def _begun(run: Evidence) -> Iterator[tuple[Row, Row]]:
    """Where a member began a recovery by itself: the row of its first word, and what it heard."""
    seen: set[tuple[Where, int]] = set()
    for row, sent in _sent(run, "RST"):
        key = (_where(row, sent), sent.message.epoch)
        cause = run.cause(row)
        if key not in seen and cause is not None and cause.tag in HEARD:
            yield row, cause
        seen.add(key)


def suspected_by_an_acknowledgment(run: Evidence) -> bool:
    """A member hears that another has seen more of a source than itself, and asks the source."""
    return any(True for _ in run.sent("POLL"))


def missed_by_all(run: Evidence) -> bool:
    """Nobody else whom a packet is for hears it on the channel."""
    heard = _arrived(run, "DT")
    for pkt, sent in run.frames.items():
        if sent.tag == "DT":
            others = _destinations(run, sent) - {_source(run, sent)}
            # The reflector hears what it puts on the channel.
            receivers = {who for who, _ in heard[pkt]} | _sender(run, sent)
            if others and not others & receivers:
                return True
    return False


def own_packet_missed(run: Evidence) -> bool:
    """A sender does not hear its own packet, and others do."""
    heard = _arrived(run, "DT")
    for pkt, sent in run.frames.items():
        if sent.tag == "DT" and heard[pkt]:
            receivers = {who for who, _ in heard[pkt]} | _sender(run, sent)
            if _source(run, sent) not in receivers:
                return True
    return False


def foreign_packet_missed(run: Evidence) -> bool:
    """A member does not hear a packet that is not for it, which needs no recovery."""
    dropped = (row for row in run.kinds["drop"] if row.pkt in run.frames and row.peer is not None)
    return any(
        row.peer not in _destinations(run, run.frame(row))
        for row in dropped
        if run.frame(row).tag == "DT"
    )


def overrun(run: Evidence) -> bool:
    """A receiver on a channel is too slow, and its buffer overruns."""
    return any(row.tag == "overrun" for row in run.kinds["drop"])


# What holds packets back


def held_by_the_cut(run: Evidence) -> bool:
    """A packet that all have pre-acknowledged waits until every member was heard after it."""
    names = _names(run)
    packs: dict[Where, dict[int, tuple[int, ...]]] = defaultdict(dict)
    epochs: dict[Where, int] = {}
    before: dict[tuple[Life, int], dict[int, tuple[int, ...]]] = {}
    for row in run.kinds["arrive"]:
        if row.tag in HEARD:
            t, who = run.frame(row).message.transmission, _where(row, run.frame(row))
            if epochs.get(who) != t.epoch:
                epochs[who] = t.epoch
                packs[who].clear()
            before[life(row), row.lseq] = dict(packs[who])
            packs[who][t.source] = t.pack
    for row in run.kinds["deliver"]:
        cause = run.cause(row)
        name = names.get((message(row), view(row)))
        if cause is None or cause.tag not in HEARD or name is None:
            continue
        known, (source, number, size, epoch) = before[life(row), cause.lseq], name
        me = _place(run, run.frame(cause), row.proc)
        t = run.frame(cause).message.transmission
        if (
            t.epoch == epoch
            and t.source != source
            and all(
                known[k][source] > number if k in known else False for k in range(size) if k != me
            )
        ):
            return True
    return False


def window_closed(run: Evidence) -> bool:
    """A node has sent what its window allows, and more waits."""
    return any(sent.waiting for tag in ("DT", "UPDT") for sent in run.sent(tag))


def no_room(run: Evidence) -> bool:
    """A member says that it has room for nothing more."""
    return any(not sent.message.transmission.room for tag in SAID for sent in run.sent(tag))


# How an epoch ends


def packet_fetched(run: Evidence) -> bool:
    """A member that lacks a packet at the end of an epoch is given it by its source."""
    return any(by_source for by_source in _given(run))


def fetched_from_another(run: Evidence) -> bool:
    """A packet that a member lacks is given to it by another than its source."""
    return any(not by_source for by_source in _given(run))


def _given(run: Evidence) -> Iterator[bool]:
    for row in run.kinds["arrive"]:
        if row.tag == "RET":
            sent = run.frame(row)
            yield sent.message.packet.span.node == sent.frame.sender


def list_from_another(run: Evidence) -> bool:
    """A list is handed out by another member than the one that made it."""
    for row in run.kinds["arrive"]:
        if row.tag == "PAK":
            sent = run.frame(row)
            if run.members(sent.view)[sent.message.member] != sent.frame.sender:
                return True
    return False


def list_in_parts(run: Evidence) -> bool:
    """A list is larger than a frame."""
    return any(sent.message.parts > 1 for sent in run.sent("PAK"))


def went_on_sending(run: Evidence) -> bool:
    """A member sends a packet when another has begun a recovery that it has not heard of."""
    begun: set[tuple[ViewId | None, int]] = set()
    stopped: set[tuple[Where, int]] = set()
    for row, sent in _sent(run, "RST", "PAK", "UPDT", "DT"):
        who, m = _where(row, sent), sent.message
        if row.tag in ("RST", "PAK"):
            begun.add((sent.view, m.epoch))
            stopped.add((who, m.epoch))
        elif _source(run, sent) == row.proc:
            epoch = m.transmission.epoch
            if (sent.view, epoch) in begun and (who, epoch) not in stopped:
                return True
    return False


def stopped_before_it_came(run: Evidence) -> bool:
    """A packet for a member arrives when it has stopped, and counts as lost."""
    stopped: dict[Where, int] = {}
    for row in sorted((*run.kinds["send"], *run.kinds["arrive"]), key=when):
        if row.tag not in ("RST", "DT"):
            continue
        sent = run.frame(row)
        who = _where(row, sent)
        if row.tag == "RST" and row.kind == "send":
            stopped[who] = sent.message.epoch
        elif row.tag == "DT" and row.kind == "arrive" and who in stopped:
            t = sent.message.transmission
            if t.epoch == stopped[who] and row.proc in _destinations(run, sent):
                return True
    return False


def epoch_begun_by_another(run: Evidence) -> bool:
    """A member hears of the next epoch before it has heard that all are done with this one."""
    return any(True for _ in _behind(run))


def _behind(run: Evidence) -> Iterator[tuple[ViewId, int]]:
    """Views, and the epochs in which a member was when it heard of the next one."""
    done: dict[tuple[Where, int], set[int]] = defaultdict(set)
    for row in sorted((*run.kinds["send"], *run.kinds["arrive"]), key=when):
        if row.tag == "DONE":
            sent = run.frame(row)
            done[_where(row, sent), sent.message.epoch].update(sent.message.members)
        elif row.tag in HEARD and row.kind == "arrive":
            sent = run.frame(row)
            who, epoch = _where(row, sent), sent.message.transmission.epoch - 1
            if epoch >= 0 and len(done[who, epoch]) < len(run.members(sent.view)):
                done[who, epoch].update(range(len(run.members(sent.view))))
                yield who[1], epoch


def told_by_one_ahead(run: Evidence) -> bool:
    """A member that has gone on tells one that has not that all are done."""
    for row in run.kinds["arrive"]:
        if row.tag == "DONE":
            sent = run.frame(row)
            everybody = len(sent.message.members) == len(run.members(sent.view))
            if everybody and sent.frame.to is not None:
                return True
    return False


def one_after_the_other(run: Evidence) -> bool:
    """An epoch ends before every member was heard in it."""
    spoken: dict[tuple[ViewId | None, int], set[int]] = defaultdict(set)
    for _, sent in _sent(run, *HEARD, "RST"):
        m = sent.message
        if sent.tag in HEARD:
            spoken[sent.view, m.transmission.epoch].add(m.transmission.source)
        elif m.epoch and len(spoken[sent.view, m.epoch]) < len(run.members(sent.view)):
            return True
    return False


# How an old view ends


def ends_in_a_recovery(run: Evidence) -> bool:
    """A view ends when a recovery is under way."""
    left = _left(run)
    ended = _epochs(run)
    for row, sent in _sent(run, "RST"):
        who = _where(row, sent)
        if _view_of(run, who) in left[who[0]] and ended.get(who, 0) <= sent.message.epoch:
            return True
    return False


def epochs_apart(run: Evidence) -> bool:
    """Of those who move on together one has ended an epoch, and another has not."""
    epochs, left = _epochs(run), _left(run)
    stopped: dict[Where, int] = {}
    for row, sent in _sent(run, "RST"):
        stopped[_where(row, sent)] = sent.message.epoch
    ahead: dict[tuple[ViewId, object], int] = defaultdict(int)
    for who, epoch in epochs.items():
        after = left[who[0]].get(_view_of(run, who))
        ahead[who[1], after] = max(epoch, ahead[who[1], after])
    for who, epoch in stopped.items():
        after = left[who[0]].get(_view_of(run, who))
        if after is not None and epochs.get(who, 0) <= epoch < ahead[who[1], after]:
            return True
    return False


def reflector_gone(run: Evidence) -> bool:
    """The reflector crashes, and the others move on."""
    crashed = {(life(row)[0], view(row)) for row in run.kinds["crash"]}
    for before, _ in run.steps:
        members = before.members or ()
        if members and (min(members), view(before)) in crashed and before.proc != min(members):
            return True
    return False


def silence(run: Evidence) -> bool:
    """A member is suspected because nothing is heard of it."""
    return any(reason(row) == "nothing is heard of it" for row in run.kinds["suspect"])


def _epochs(run: Evidence) -> dict[Where, int]:
    """By member: the last epoch of which it sent something."""
    found: dict[Where, int] = {}
    for row, sent in _sent(run, *SAID):
        if _source(run, sent) == row.proc:
            found[_where(row, sent)] = sent.message.transmission.epoch
    return found


def _left(run: Evidence) -> dict[Life, dict[tuple[int | None, int | None], object]]:
    """By node: the views that it left, and to which it went."""
    left: dict[Life, dict[tuple[int | None, int | None], object]] = defaultdict(dict)
    for before, after in run.steps:
        left[life(before)][view(before)] = view(after)
    return left


def _view_of(run: Evidence, who: Where) -> tuple[int | None, int | None]:
    return who[1].seq, run.number(who[1].rep)


def _sent(run: Evidence, *tags: str) -> Iterator[tuple[Row, Sent]]:
    """Frames of these types that were sent, with their rows, in their order."""
    for row in run.kinds["send"]:
        if row.tag in tags:
            yield row, run.frame(row)


def _arrived(run: Evidence, tag: str) -> dict[int, set[Life]]:
    """By frame of a type: who received it."""
    found: dict[int, set[Life]] = defaultdict(set)
    for row in run.kinds["arrive"]:
        if row.tag == tag and row.pkt is not None:
            found[row.pkt].add(life(row))
    return found


def _where(row: Row, sent: Sent) -> Where:
    assert sent.view is not None
    return life(row), sent.view


def _source(run: Evidence, sent: Sent) -> int:
    return run.number(run.members(sent.view)[sent.message.transmission.source])


def _sender(run: Evidence, sent: Sent) -> set[int]:
    """The reflector that put a frame on the channel, if one did."""
    return set() if _channelled(sent) else {run.number(sent.frame.sender)}


def _channelled(sent: Sent) -> bool:
    return not sent.message.hop


def _destinations(run: Evidence, sent: Sent) -> set[int]:
    packet: Any = sent.message.transmission.packet
    members = run.members(sent.view)
    return {
        run.number(m) for m in members if packet.destinations is None or m in packet.destinations
    }


def _place(run: Evidence, sent: Sent, proc: int) -> int:
    return run.members(sent.view).index(run.nodes[proc])


def _names(run: Evidence) -> dict[object, tuple[int, int, int, int]]:
    """By message and view, as rows name them: source, number, size of the view, and epoch."""
    found: dict[object, tuple[int, int, int, int]] = {}
    for tag in ("DT", "UPDT"):
        for sent in run.sent(tag):
            t = sent.message.transmission
            span = t.packet.span
            if span.count:
                assert sent.view is not None
                # The rows of a static group name no view.
                of = (sent.view.seq, run.number(sent.view.rep)) if sent.view.seq else (None, None)
                key = ((run.number(span.node), span.incarnation, span.first), of)
                found[key] = (t.source, t.number, len(t.ack), t.epoch)
    return found


ALWAYS = (
    found_by_a_packet,
    found_by_a_word,
    suspected_by_an_acknowledgment,
    missed_by_all,
    own_packet_missed,
    foreign_packet_missed,
    overrun,
    held_by_the_cut,
    window_closed,
    no_room,
    packet_fetched,
    fetched_from_another,
    list_from_another,
    list_in_parts,
    went_on_sending,
    stopped_before_it_came,
    epoch_begun_by_another,
    told_by_one_ahead,
    one_after_the_other,
)
IN_VIEWS = (ends_in_a_recovery, epochs_apart, reflector_gone, silence)
