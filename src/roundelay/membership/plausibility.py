"""Whether what a peer claims while a ring is formed can be true.

A frame may be forged, or come from a node whose memory is damaged. These checks come before any
state changes, so a claim that cannot be true changes nothing.
"""

from roundelay.core.ids import View, ViewId
from roundelay.membership.messages import Commit

SEQ_BELIEVED = 2**54
"""Ring numbers up to this are believed, whoever claims them. A node that takes its first number
from the clock stays below it until the year 2112, and counting does not get there. Too small: nodes
with a clock in the future are refused; too large: forged numbers leave no room for honest ones."""
SEQ_STEP = 2**24
"""A larger number is believed if it is at most so far ahead of the largest this node has heard of.
A frame with a still larger one is refused, and moves this node on by one step: so an honest peer
that was led further is caught up with after a few frames, and a forger needs many years of frames
to use the numbers up."""


def largest_credible(known: int) -> int:
    """The largest ring number that is believed by a node that has heard of `known`."""
    return max(SEQ_BELIEVED, known) + SEQ_STEP


def comes_round(m: Commit, sent: Commit, ring: ViewId, seen_seq: int) -> bool:
    """Whether this is the Commit token that this node sent on, after another rotation."""
    hops = 4 * len(m.entries)  # It goes round twice, and not much further.
    return m.ring == ring and seen_seq < m.token_seq <= sent.token_seq + hops


def is_sound(m: Commit, sent: Commit, view: View) -> bool:
    """Whether the entries can be true. Those that were filled in when this node sent the token on
    have not changed, its own among them, and every member that says it comes from our view was in
    it."""
    if len(m.entries) != len(sent.entries):
        return False
    for entry, before in zip(m.entries, sent.entries, strict=True):
        if entry.node != before.node or (before.old is not None and entry != before):
            return False
    members = set(view.members)
    companions = [entry for entry in m.entries if entry.old == view.id]
    return all(members.issuperset((entry.node, *entry.obligation)) for entry in companions)
