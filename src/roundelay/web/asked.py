"""What a request says, and the error for one that makes no sense."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

DIGITS_MAX = 19
"""The most digits of a number: those of a time in nanoseconds."""


class AskedWrongError(Exception):
    """A request that cannot be answered; its message is a sentence for the reader of the page."""


async def refuse(request: Request, error: Exception) -> Response:
    """The answer to such a request. What it quotes may hold halves of characters, as JSON can."""
    sentence = str(error).encode(errors="backslashreplace").decode()
    return JSONResponse({"error": sentence}, 400)


async def document(request: Request) -> dict[str, Any]:
    """The JSON object that was sent."""
    try:
        told = json.loads(await request.body())
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise AskedWrongError("the request is no JSON object")
    return told


def number(request: Request, name: str, default: int) -> int:
    """A number of the address."""
    text = request.query_params.get(name, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX):
        raise AskedWrongError(f"{name} is no number")
    return int(text)
