"""Who may see the dashboard: whoever has the token that the command printed, from its own page.

The first visit has the token in its address. The server answers with a cookie and sends the browser
on to an address without the token, so that it is not in the history, on screenshots, or told to
others. The cookie is for this server only: no script can read it, and the browser sends it with no
request of another page.
"""

import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES_MAX = 1 << 20
"""Largest request, in bytes. Too small: a long scenario cannot be run; too large: whoever has the
token could fill the memory."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine, as only its own programs use them."""
OWN_HEADER = "X-Roundelay"
"""A header that every request that changes something must have: no form of another page can send
it."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: "
    "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The browser itself sees to it that the page loads nothing from elsewhere and runs no script but
its own. Inline styles are allowed as diagrams bring theirs."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class Access:
    """Lets in requests that may be answered; it wraps the whole application."""

    def __init__(self, app: ASGIApp, *, token: str, host: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        self._cookie = f"roundelay-{port}"  # Cookies do not tell ports apart.
        self._hosts = LOOPBACK if host in LOOPBACK else ()
        """The names by which this server may be asked for; empty if any may be."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)
        answer = self._refusal(request) or self._welcome(request)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await (answer or self._app)(scope, receive, with_headers)

    def _refusal(self, request: Request) -> Response | None:
        """What to say to those who may not ask."""
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or ""
        if self._hosts and host not in self._hosts:
            return PlainTextResponse("this dashboard is for its own machine only", 421)
        if not self._known(request.query_params.get("token")) and not self._known(
            request.cookies.get(self._cookie)
        ):
            return PlainTextResponse(
                "open the address that `roundelay dashboard` printed; it has a token", 403
            )
        if request.method in ("GET", "HEAD"):
            return None
        return _foreign(request.headers) or _too_large(request.headers)

    def _welcome(self, request: Request) -> Response | None:
        """For the first visit: a cookie, and the address without the token."""
        token = request.query_params.get("token")
        if token is None or request.method != "GET":
            return None
        # A stale token beside a good cookie does no harm: the address is cleaned all the same.
        answer = RedirectResponse(request.url.path, 303)
        if self._known(token):
            answer.set_cookie(self._cookie, token, httponly=True, samesite="strict")
        return answer

    def _known(self, told: str | None) -> bool:
        return told is not None and secrets.compare_digest(told.encode(), self._token)


def _foreign(headers: Headers) -> Response | None:
    """A request that another page made."""
    origin = headers.get("origin")
    same = origin is None or urlsplit(origin).netloc == headers.get("host")
    if same and headers.get(OWN_HEADER):
        return None
    return JSONResponse({"error": "only the dashboard's own page may ask for this"}, 403)


def _too_large(headers: Headers) -> Response | None:
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length) <= BODY_BYTES_MAX:
        return None
    return JSONResponse({"error": f"a request has {BODY_BYTES_MAX} bytes at most"}, 413)
