"""When a record counts as stored: the setting `fsync`.

always              once `fdatasync` returned
interval            once `write` returned; synced every 50 ms
interval:20ms       the same every 20 ms
off                 once `write` returned; the kernel writes it to the disk when it likes
"""

import re

from roundelay.core.value import value

INTERVAL_S = 0.05
_FORM = re.compile(r"interval(?::(\d+(?:\.\d+)?)(ms|s))?")


@value
class Policy:
    """A setting of `fsync`."""

    name: str
    """`always`, `interval` or `off`."""
    interval_s: float = INTERVAL_S
    """How long after a write it is synced at the latest. A short one costs throughput; after a long
    one more is lost when all machines lose their power at once. `always` does not use it."""

    def __str__(self) -> str:
        if self.name != "interval" or self.interval_s == INTERVAL_S:
            return self.name
        return f"interval:{self.interval_s * 1000:g}ms"

    @property
    def survives_kill(self) -> bool:
        """Whether all that was acknowledged is still there after `kill -9`."""
        return self.name != "off"

    @property
    def survives_power(self) -> bool:
        """The same after the machine stopped."""
        return self.name == "always"


def parse_policy(text: str) -> Policy:
    """The policy that a setting names; ValueError with a sentence if it names none."""
    if text in ("always", "off"):
        return Policy(text)
    found = _FORM.fullmatch(text)
    if not found:
        raise ValueError(
            f"fsync={text!r} is not known; use 'always', 'interval', 'interval:20ms' or 'off'"
        )
    if found[1] is None:
        return Policy("interval")
    interval_s = float(found[1]) / (1000 if found[2] == "ms" else 1)
    if not 0.001 <= interval_s <= 60:
        raise ValueError(f"fsync={text!r}: the interval must be between 1 ms and 60 s")
    return Policy("interval", interval_s)
