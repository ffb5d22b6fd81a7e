"""Timers, and how often a member repeats a frame in vain before it suspects somebody."""

from math import ceil

from roundelay.core.effects import CancelTimer, SetTimer
from roundelay.protocols.dtp.policy import Config

MSG = "repeat_msg"
ACK = "repeat_ack"
REQ = "repeat_req"
SILENCE = "silence"
WATCH = "watch"
ASKING = "asking"
"""Not the name of a timer: under it are counted the repetitions of an acknowledgment whose receiver
asks for what it lacks."""


def arming(config: Config) -> dict[str, SetTimer]:
    """The effect that arms each timer. They are made once, since every engine emits them often."""
    delays = {
        MSG: config.msg_repeat_s,
        ACK: config.ack_repeat_s,
        REQ: config.req_repeat_s,
        SILENCE: config.silence_s,
        WATCH: config.watch_s,
    }
    return {timer: SetTimer(timer, delay_s) for timer, delay_s in delays.items()}


DISARMING = {timer: CancelTimer(timer) for timer in (MSG, ACK, REQ, SILENCE)}
"""The effect that disarms each timer."""


class Repetitions:
    """Counts, in one view, how often each kind of frame was repeated without an effect."""

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
        """The latest transfer of the token, as of the last call of `token_missed`."""
        self._asked = False
        """Whether a member has asked for what it lacks since then."""

    def reset(self, timer: str) -> None:
        """Count from 0: what was waited for came, or the wait begins."""
        self._repeats[timer] = 0

    def begin_transfer(self) -> None:
        """The token was handed on: it has yet to be taken."""
        self._repeats[ACK] = self._repeats[ASKING] = 0

    def exhausts(self, timer: str) -> bool:
        """Count one more repetition. True if there were so many that somebody is to be suspected;
        and again after as many more."""
        self._repeats[timer] += 1
        return self._repeats[timer] % self._limits[timer] == 0

    def note_request(self) -> None:
        """A member asks for what it lacks. It may have the token, and orders nothing until it has
        what it lacks; so others do not suspect the view meanwhile. If it asks in vain, it
        suspects the view itself."""
        self._asked = True
        self._repeats[MSG] = 0

    def token_missed(self, hop: int) -> bool:
        """Whether nobody has handed on the token since the last call, and no member asked for what
        it lacks, which would explain it. `hop` is the latest transfer that was heard of."""
        before, self._hop = self._hop, hop
        asked, self._asked = self._asked, False
        return hop == before and not asked
