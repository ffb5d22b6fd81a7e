"""Timers, and how long a member waits in vain before it suspects somebody."""

from math import ceil

from roundelay.core.effects import CancelTimer, SetTimer
from roundelay.protocols.dtp.policy import Config

MSG = "repeat_msg"
ACK = "repeat_ack"
REQ = "repeat_req"
SILENCE = "silence"
WATCH = "watch"
ASKING = "asking"
"""No timer: repetitions of an acknowledgment to one that asks for what it lacks."""


def arming(config: Config) -> dict[str, SetTimer]:
    """By timer: what arms it. Made once, since they come again and again."""
    delays = {
        MSG: config.msg_repeat_s,
        ACK: config.ack_repeat_s,
        REQ: config.req_repeat_s,
        SILENCE: config.silence_s,
        WATCH: config.watch_s,
    }
    return {timer: SetTimer(timer, delay_s) for timer, delay_s in delays.items()}


DISARMING = {timer: CancelTimer(timer) for timer in (MSG, ACK, REQ, SILENCE)}
"""By timer: what disarms it."""


class Patience:
    """What was repeated in one view without an effect."""

    def __init__(self, config: Config) -> None:
        self._limits = {
            MSG: ceil(config.watch_s / config.msg_repeat_s),
            ACK: config.attempts,
            ASKING: config.asking_attempts,
            REQ: ceil(config.watch_s / config.req_repeat_s),
        }
        """Repetitions before somebody is suspected."""
        self._repeats = dict.fromkeys(self._limits, 0)
        """Repetitions in a row without an effect."""
        self._hop = 0
        """The last transfer of the token, when it was last looked for."""
        self._asked = False
        """Whether somebody has asked for something since."""

    def renew(self, timer: str) -> None:
        """What was waited for came, or the wait begins."""
        self._repeats[timer] = 0

    def begin_transfer(self) -> None:
        """The token was handed on: it has yet to be taken."""
        self._repeats[ACK] = self._repeats[ASKING] = 0

    def ends(self, timer: str) -> bool:
        """One more repetition. Whether it is time to suspect somebody, also once more."""
        self._repeats[timer] += 1
        return self._repeats[timer] % self._limits[timer] == 0

    def note_request(self) -> None:
        """Somebody asks for what it lacks: it may have the token, and order nothing until then.
        All wait for it; and it will say so itself if it asks in vain."""
        self._asked = True
        self._repeats[MSG] = 0

    def misses(self, hop: int) -> bool:
        """Whether the token was handed on by nobody since it was last looked for, and nobody says
        why."""
        before, self._hop = self._hop, hop
        asked, self._asked = self._asked, False
        return hop == before and not asked
