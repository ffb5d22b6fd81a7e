"""The server: an ASGI application of the routes of all parts of the page."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from roundelay.web import laboratory
from roundelay.web.access import Access
from roundelay.web.asked import AskedWrongError, refuse

STATIC = str(files("roundelay.web") / "static")


def application(
    *, token: str, host: str, parts: Sequence[BaseRoute] = (), **options: Any
) -> Starlette:
    """The dashboard. `parts` are the routes of its parts, besides those of the laboratory."""
    return Starlette(
        routes=[
            Route("/", _page),
            *parts,
            *laboratory.routes(),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Access, token=token, host=host)],
        exception_handlers={AskedWrongError: refuse},
        **options,
    )


async def _page(request: Request) -> Response:
    return FileResponse(f"{STATIC}/index.html")
