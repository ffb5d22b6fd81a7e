"""K3: in one ring, who has the token has it alone."""

from typing import TYPE_CHECKING

from roundelay.check import sentences as say
from roundelay.check.online.findings import Findings
from roundelay.trace.schema import Row

if TYPE_CHECKING:
    from roundelay.check.online.views import Views


RINGS_MAX = 64
"""Rings remembered to have had a token before: one acquired for the first time shows nothing."""


class TokenExclusion:
    """K3: nobody acquires a token before the last one who did released it, crashed or moved on."""

    names = ("K3",)

    def __init__(self, findings: Findings, views: "Views") -> None:
        self.findings = findings
        (self.k3,) = map(findings.tally, self.names)
        self._views = views
        self._holder: dict[object, Row] = {}
        """By ring: the row in which its token was acquired."""
        self._seen: dict[object, None] = {}

    def token(self, row: Row) -> None:
        place = self._views.processes[row.proc].place
        ring = place.identity if row.k0 is None else (row.k0, row.k1)
        held = self._holder.get(ring)
        if row.tag != "acquire":
            if held is not None and held.proc == row.proc:
                del self._holder[ring]
            return
        self._count(ring)
        if held is not None and held.proc != row.proc:
            who, other = self.findings.name(row.proc), self.findings.name(held.proc)
            self.findings.report_breach(self.k3, say.two_holders(who, other), held, row)
        self._holder[ring] = row

    def crash(self, row: Row) -> None:
        """Also when it moves on: the token it had is gone."""
        for ring, held in [*self._holder.items()]:
            if held.proc == row.proc:
                del self._holder[ring]

    install = recover = crash

    def _count(self, ring: object) -> None:
        if ring in self._seen:
            self.k3.instances += 1
            return
        self._seen[ring] = None
        if len(self._seen) > RINGS_MAX:
            del self._seen[next(iter(self._seen))]
