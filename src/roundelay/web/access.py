"""Who may see the dashboard: whoever has the token that the command printed.

The address has the token behind a `#`, which browsers send to nobody. The page keeps it for its
tab, takes it out of the address, and sends it in a header with each request below `/api/`. It is no
cookie: browsers send cookies to all ports of a host, so each server of this machine that is visited
would get it. And as no browser adds the header by itself, no other page can ask for anything.

The page itself, which is the same for everybody, is served without the token.
"""

import secrets
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES_MAX = 1 << 20
"""Largest request, in bytes. Too small: a long scenario cannot be run; too large: whoever has the
token could fill the memory."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""Names of this machine, as only its own programs use them."""
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

    def __init__(self, app: ASGIApp, *, token: str, host: str) -> None:
        self._app = app
        self._credentials = f"Bearer {token}".encode()
        self._hosts = LOOPBACK if host in LOOPBACK else ()
        """The names by which this server may be asked for; empty if any may be."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(str(scope["path"]), str(scope["method"]), Headers(scope=scope))

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        await (refusal or self._app)(scope, receive, with_headers)

    def _refusal(self, path: str, method: str, headers: Headers) -> Response | None:
        """What to say to those who may not ask."""
        if self._hosts:
            try:
                host = urlsplit(f"//{headers.get('host', '')}").hostname
            except ValueError:
                return _no(400, "the header Host makes no sense")
            if host not in self._hosts:  # A name that leads here is how a foreign page would ask.
                return _no(421, "this dashboard is for its own machine only")
        if path.startswith("/api/") and not self._known(headers):
            return _no(403, "open the address that the command printed; it has a token")
        if method not in ("GET", "HEAD") and not _is_small(headers):
            return _no(413, f"a request has {BODY_BYTES_MAX} bytes at most")
        return None

    def _known(self, headers: Headers) -> bool:
        told = headers.get("authorization", "").encode()
        return secrets.compare_digest(told, self._credentials)


def _is_small(headers: Headers) -> bool:
    """Whether a request says how long it is, and is not too long."""
    length = headers.get("content-length", "")
    return len(length) < 10 and length.isdecimal() and int(length) <= BODY_BYTES_MAX


def _no(status: int, sentence: str) -> Response:
    return JSONResponse({"error": sentence}, status)
