"""The part History: entries of the chronicle, and diagrams of moments."""

from collections.abc import Mapping

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from roundelay.web.asked import number
from roundelay.web.chronicle import Chronicle, newest
from roundelay.web.moments import EVENTS, EVENTS_MAX, Moments


class History:
    """Answers about what happened."""

    def __init__(self, chronicle: Chronicle, moments: Moments) -> None:
        self._chronicle = chronicle
        self._moments = moments

    def routes(self) -> list[Route]:
        return [Route("/api/history", self._entries), Route("/api/history/moment", self._moment)]

    def told(self) -> Mapping[str, int]:
        """For each group, a number that grows when there is something new."""
        return self._chronicle.changes()

    async def _entries(self, request: Request) -> Response:
        group, since = request.query_params.get("group", ""), number(request, "since", 0)
        entries = self._chronicle.since(group, since)
        return JSONResponse({"entries": entries, "changed": max(since, newest(entries))})

    async def _moment(self, request: Request) -> Response:
        group, at_ns = request.query_params.get("group", ""), number(request, "at_ns", 0)
        events = min(max(number(request, "events", EVENTS), 20), EVENTS_MAX)
        entry = number(request, "entry", 0)
        found = await run_in_threadpool(self._moments.draw, group, at_ns, entry, events)
        return JSONResponse({"svg": found.svg, "sentence": found.sentence, "at": found.at})
