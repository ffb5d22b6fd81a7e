"""The part Now: the state of all groups, as a stream of events."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from roundelay.web import now, words
from roundelay.web.watching import Watching

EVERY_S = 0.1
"""Seconds between two events. Too small: pages work for nothing; too large: they lag behind."""
BEAT_S = 10.0
"""Seconds without news after which an empty line is sent, so that a page that went away is
noticed."""

Extra = Callable[[], Mapping[str, Any]]
"""More about all groups, by the name of the group: what other parts tell of them."""


class Live:
    """The stream of one dashboard."""

    def __init__(self, watching: Watching) -> None:
        self.extras: dict[str, Extra] = {}
        """What other parts add to each group, by the name of the field."""
        self._watching = watching
        self._stopped = False

    def stop(self) -> None:
        """End all streams."""
        self._stopped = True

    def routes(self) -> list[Route]:
        return [Route("/api/events", self._events), Route("/api/words", _words)]

    def document(self) -> dict[str, Any]:
        """All groups as they are now."""
        found = now.groups(self._watching)
        for field, extra in self.extras.items():
            told = extra()
            for group in found:
                group[field] = told.get(group["name"])
        return {"groups": found, "left_out": self._watching.left_out}

    async def _events(self, request: Request) -> Response:
        return StreamingResponse(self._stream(request), media_type="text/event-stream")

    async def _stream(self, request: Request) -> AsyncIterator[str]:
        self._watching.viewers += 1
        try:
            last, waited_s = "", 0.0
            version = -1
            while not self._stopped and not await request.is_disconnected():
                if self._watching.version != version:
                    version = self._watching.version
                    told = json.dumps(self.document(), separators=(",", ":"))
                    if told != last:
                        last, waited_s = told, 0.0
                        yield f"event: groups\ndata: {told}\n\n"
                elif version == -1 or waited_s >= BEAT_S:
                    waited_s = 0.0
                    yield ": still here\n\n"
                await asyncio.sleep(EVERY_S)
                waited_s += EVERY_S
        finally:
            self._watching.viewers -= 1


async def _words(request: Request) -> Response:
    return JSONResponse(words.document())
