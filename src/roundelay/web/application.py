"""The server: an ASGI application of the routes of all parts of the page."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from roundelay.web import laboratory
from roundelay.web.access import Access

STATIC = str(files("roundelay.web") / "static")


class AskedWrongError(Exception):
    """A request that cannot be answered; its message is a sentence for the reader of the page."""


def application(
    *, token: str, host: str, port: int, parts: Sequence[BaseRoute] = (), **options: Any
) -> Starlette:
    """The dashboard. `parts` are the routes of its parts, besides those of the laboratory."""
    return Starlette(
        routes=[
            Route("/", _page),
            *parts,
            *laboratory.routes(),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Access, token=token, host=host, port=port)],
        exception_handlers={AskedWrongError: _say},
        **options,
    )


async def _page(request: Request) -> Response:
    return FileResponse(f"{STATIC}/index.html")


async def _say(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 400)
