"""A node that checks itself: the rows of its own trace, as they are recorded.

Only properties of scope *one node* are checked: a node does not see what the others did, so whether
a message was ever sent, or whether two nodes agree, is for `roundelay check` to say, on the traces
of all. What is found is counted for `status` and written to the log; the node goes on.

A node that writes no trace makes few rows: of what it delivers, and of its views. Rows of packets
that are sent, received and stable would cost about as much again, and serve T3 alone. So T3 is
checked only where a trace is written.
"""

import logging
import time
from collections.abc import Callable
from typing import Any

from roundelay.check import PROPERTIES, Profile, Scope, Verdict, profile_of
from roundelay.check.online import COVERED, OnlineChecker
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

log = logging.getLogger("roundelay")

WINDOW_PACKETS = 4096
"""Packets of one view that are remembered one by one. Too few: a message that is delivered again
long after is still noticed, but no row shows when it was delivered first. Too many: memory, some
600 bytes for each."""

BREACHES_MAX = 1000
"""Breaches of one property after which it is not checked any more. Too few: the count in `status`
says less. Too many: a node that is thoroughly wrong spends its time on counting that."""

REPEAT_S = 10.0
"""Seconds after a line of the log on a property, in which further breaches of it have none."""


ABOUT_SENDINGS = frozenset({"T3"})
"""Properties that cannot be checked without rows of what is sent."""


def own_properties(profile: Profile, *, traced: bool = True) -> tuple[str, ...]:
    """What a node held to `profile` can check on its own rows, in the order of reports. If it is
    not `traced`, it has no rows of what it sends."""
    held = {entry.property for entry in profile.entries}
    held -= frozenset() if traced else ABOUT_SENDINGS
    return tuple(n for n in COVERED if n in held and PROPERTIES[n].scope is Scope.NODE)


class OwnCheck:
    """A trace sink that checks the rows of one node. It never raises: a group matters more than its
    check, so a check that fails ends, and says so."""

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        *,
        traced: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` is how the log calls this node. `manifest` is that of its trace; `traced` says
        whether that is written, so that there are rows of what it sends."""
        self.properties = own_properties(profile_of(manifest), traced=traced)
        self.rows = 0
        """Rows checked."""
        self.failure = ""
        """Why the check ended early; empty if it did not."""
        self._name = name
        self._clock = clock
        self._checker = OnlineChecker(
            manifest.nodes,
            self.properties,
            window=WINDOW_PACKETS,
            on_breach=self._on_breach,
            breaches_max=BREACHES_MAX,
        )
        self._check = self._checker.append
        self._logged: dict[str, float] = {}
        """By property: when a breach of it was last written to the log."""

    def append(self, row: Row) -> None:
        self.rows += 1
        try:
            self._check(row)
        except Exception as e:
            self._check = _skip
            self.failure = f"the check itself failed at row {row.lseq}: {e!r}"
            log.exception("%s: %s; please report it", self._name, self.failure)

    def status(self) -> dict[str, Any]:
        """What was found so far, as a part of the status document."""
        first = self._checker.violations[:1]
        return {
            "properties": list(self.properties),
            "rows": self.rows,
            "violations": sum(self._checker.breaches.values()),
            "violated": self._checker.breaches,
            "first": _sentence(first[0]) if first else None,
            "failure": self.failure,
        }

    def close(self) -> None:
        """Write to the log what was found in all."""
        found = self._checker.breaches
        checked = f"checked {self.rows} rows for {', '.join(self.properties)}"
        if not found:
            log.info("%s: %s: no violation", self._name, checked)
            return
        counts = ", ".join(f"{name} {count} times" for name, count in found.items())
        first = _sentence(self._checker.violations[0])
        log.error("%s: %s: violated: %s; the first: %s", self._name, checked, counts, first)

    def _on_breach(self, verdict: Verdict) -> None:
        now, last = self._clock(), self._logged.get(verdict.property)
        if last is not None and now - last < REPEAT_S:
            return
        self._logged[verdict.property] = now
        count = self._checker.breaches[verdict.property]
        often = f", {count} times so far" if count > 1 else ""
        log.error("%s: violation%s: %s", self._name, often, _sentence(verdict))


def _sentence(verdict: Verdict) -> str:
    return f"{verdict.property}, {PROPERTIES[verdict.property].title!r}: {verdict.reason}"


def _skip(row: Row) -> None:
    """In the place of a check that failed."""
