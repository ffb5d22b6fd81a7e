"""When what was appended counts as stored: the setting `fsync`."""

import re
from dataclasses import dataclass

from roundelay.runtime.errors import ConfigError

INTERVAL_S = 0.050
"""How often the policy `interval` syncs by default, in seconds. Smaller: nearly the price of
`always`; larger: a power cut of all nodes loses more."""
INTERVAL_S_MAX = 60.0
"""Longest interval, in seconds: by then the kernel has written by itself."""

_INTERVAL = re.compile(r"interval:(\d+(?:\.\d+)?)(us|ms|s)")
_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, slots=True)
class FsyncPolicy:
    """When the journal is synced, and what counts as stored."""

    name: str
    """`always`, `interval` or `off`."""
    interval_s: float = 0.0
    """How often `interval` syncs, in seconds; 0 otherwise."""


def parse_fsync(text: str) -> FsyncPolicy:
    """The policy that a user names, or ConfigError."""
    if text in ("always", "off"):
        return FsyncPolicy(text)
    if text == "interval":
        return FsyncPolicy("interval", INTERVAL_S)
    if found := _INTERVAL.fullmatch(text):
        interval_s = float(found[1]) * _UNITS_S[found[2]]
        if not 0 < interval_s <= INTERVAL_S_MAX:
            raise ConfigError(
                f"fsync={text!r} is no usable interval; use more than 0 and at most "
                f"{INTERVAL_S_MAX:g} seconds"
            )
        return FsyncPolicy("interval", interval_s)
    raise ConfigError(
        f"fsync={text!r} is no policy; use always, interval, an interval such as interval:20ms, "
        "or off"
    )
