"""What takes too long: who is silent, and who keeps the view from going on, is suspected."""

from roundelay.core.effects import Suspect
from roundelay.protocols.st.hearing import Hearing
from roundelay.protocols.st.medium import REFLECTOR
from roundelay.protocols.st.state import WATCHES

STUCK_SILENCES = 4
"""If packets wait and nothing is delivered for so many times `silence_s`, the view ends."""


class Watching(Hearing):
    """A member that suspects others."""

    def _suspect(self) -> None:
        """Look who is silent. Where there is a reflector, it alone hears everybody, and everybody
        hears it."""
        for member in range(self.size):
            self.quiet[member] += 1
        limit = WATCHES + 1
        silent = [m for m in range(self.size) if m != self.me and self.quiet[m] >= limit]
        if self.config.medium == "reflector" and self.me != REFLECTOR:
            silent = [m for m in silent if m == REFLECTOR]
        if silent and min(self.quiet[m] for m in silent) % limit == 0:
            names = tuple(self.view.members[m] for m in silent)
            self._out.append(Suspect(names, "nothing is heard of it"))
        done = (self.logs.epoch, self._delivered)
        if done != self._seen_done or not (self.recovery or self._waits):
            self._seen_done, self.stuck = done, 0
            return
        self.stuck += 1
        if self.stuck % (STUCK_SILENCES * WATCHES) == 0:
            self._out.append(self._accuse())

    @property
    def _waits(self) -> bool:
        """Whether packets are here that are not delivered, or were sent and not acknowledged."""
        return self.logs.waiting > 0 or self.logs.least() < self.logs.next

    def _accuse(self) -> Suspect:
        """Nothing comes of the view: say who keeps it from going on, if that is known."""
        members, logs, recovery = self.view.members, self.logs, self.recovery
        if recovery is None:
            late = [
                k for k in range(self.size) if logs.acks[k][self.me] < logs.next and k != self.me
            ]
            if late:
                return Suspect(tuple(members[k] for k in late), "nothing is acknowledged")
            return Suspect((), "nothing is agreed on")
        if self.me in recovery.done:
            late = [k for k in range(self.size) if k not in recovery.done]
            return Suspect(tuple(members[k] for k in late), "it fails to receive")
        return Suspect((), "what was lost does not come")
