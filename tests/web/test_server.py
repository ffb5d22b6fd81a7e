"""What the server answers, to whom, and what it never says."""

import asyncio
import dataclasses
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from roundelay.protocols.totem import Config
from roundelay.runtime.settings import Settings
from roundelay.web import words
from roundelay.web.access import BODY_BYTES_MAX
from roundelay.web.application import STATIC, application
from roundelay.web.asked import AskedWrongError
from roundelay.web.chronicle import Chronicle
from roundelay.web.history import History
from roundelay.web.live import Live
from roundelay.web.moments import Moments
from roundelay.web.play import Own, Play
from roundelay.web.relays import Relays
from roundelay.web.serving import Serving
from roundelay.web.tables import Tables
from roundelay.web.watching import Watched, Watching
from roundelay.wire.primitives import Reason

TOKEN = "the-token"
HERE = "http://127.0.0.1:8790"


class Browser:
    """Asks an application, one request after the other."""

    def __init__(self, app: Any, base: str = HERE, token: str = "") -> None:
        self._app = app
        self._base = base
        self._headers = {b"Authorization": f"Bearer {token}".encode("latin-1")} if token else {}

    def get(self, path: str, **options: Any) -> Any:
        return self._ask("GET", path, options)

    def options(self, path: str, **options: Any) -> Any:
        return self._ask("OPTIONS", path, options)

    def post(self, path: str, **options: Any) -> Any:
        return self._ask("POST", path, options)

    def _ask(self, method: str, path: str, options: dict[str, Any]) -> Any:
        async def ask() -> Any:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(
                transport=transport, base_url=self._base, headers=self._headers
            ) as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


async def _chunks() -> Any:
    yield b"1"


async def _echo(request: Request) -> Response:
    return JSONResponse({"told": await request.json()})


async def _refuse(request: Request) -> Response:
    raise AskedWrongError("that makes no sense")


def served(host: str = "127.0.0.1") -> Any:
    """All routes there are, and two of the test's own."""
    parts = [Route("/api/echo", _echo, methods=["POST"]), Route("/api/refuse", _refuse)]
    watching, chronicle = Watching(), Chronicle()
    for part in (
        Live(watching),
        History(chronicle, Moments(watching, chronicle)),
        Play(watching, Relays(), allowed=True),
        Tables([Path("table")]),
    ):
        parts += part.routes()
    return application(token=TOKEN, host=host, parts=parts)


@pytest.fixture
def known() -> Browser:
    return Browser(served(), token=TOKEN)


def test_without_the_token_nothing_is_told():
    app = served()
    paths = [route.path for route in app.routes if route.path.startswith("/api/")]
    assert {"/api/events", "/api/play", "/api/history", "/api/table"} < set(paths)
    for path in (*paths, "/api/nothing", f"/api/words?token={TOKEN}"):
        for token in ("", "wrong", "\xe9"):
            for answer in (
                Browser(app, token=token).get(path),
                Browser(app, token=token).post(path),
            ):
                assert answer.status_code == 403
                assert "open the address that the command printed" in answer.json()["error"]
    assert Browser(app, token=TOKEN).get("/api/words").status_code == 200


def test_the_page_is_the_same_for_everybody_and_has_no_cookie():
    stranger, known = Browser(served()), Browser(served(), token=TOKEN)
    for path in ("/", "/static/shell.js"):
        assert stranger.get(path).content == known.get(path).content
        assert "set-cookie" not in known.get(path).headers


def test_no_address_leads_elsewhere(known):
    for path in (f"{HERE}//evil.example/x", f"{HERE}/static//evil.example"):
        answer = known.get(path, params={"token": TOKEN})
        assert (answer.status_code, answer.headers.get("location")) == (404, None)


def test_every_answer_has_a_strict_policy(known):
    for path in ("/", "/static/style.css", "/nothing"):
        headers = known.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"


def test_other_names_of_this_machine_are_refused(known):
    for host in ("evil.example", "evil.example:8790", "", "127.0.0.1.evil.example"):
        assert known.get("/", headers={"host": host}).status_code == 421
    for host in ("[::1", "["):
        answer = known.get("/", headers={"host": host})
        assert (answer.status_code, answer.json()) == (
            400,
            {"error": "the header Host makes no sense"},
        )
    for host in ("localhost:8790", "127.0.0.1", "[::1]:8790"):
        assert known.get("/", headers={"host": host}).status_code == 200


def test_where_everybody_may_ask_any_name_will_do():
    other = Browser(served("0.0.0.0"), "http://lab.example:8790", token=TOKEN)
    assert other.get("/api/words").status_code == 200
    assert other.get("/", headers={"host": "[::1"}).status_code == 200


@pytest.mark.parametrize(
    ("host", "told"), [("0.0.0.0", "127.0.0.1"), ("", "127.0.0.1"), ("127.0.0.1", "127.0.0.1")]
)
def test_the_address_that_is_told_can_be_opened(host, told):
    with Serving(host, 0) as serving:
        assert serving.address("a/b") == f"http://{told}:{serving.port}/#token=a/b"
        assert serving.is_local == (host == told)


def test_the_browser_is_told_that_no_other_page_may_ask():
    """A page from elsewhere must ask the browser for leave to send the header with the token."""
    asked = {
        "origin": "http://127.0.0.1:1",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization",
    }
    for token in ("", TOKEN):
        answer = Browser(served(), token=token).options("/api/play", headers=asked)
        assert answer.status_code >= 400
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_requests_are_bounded(known):
    large = known.post("/api/echo", content=b"1" * (BODY_BYTES_MAX + 1))
    assert large.status_code == 413
    for told in (b"9" * 5000, b"\xb2", b"-1"):
        assert (
            known.post("/api/echo", content=b"1", headers={"content-length": told}).status_code
            == 413
        )
    endless = known.post("/api/echo", content=_chunks())
    assert endless.status_code == 413


@pytest.mark.parametrize("path", ["/api/play", "/api/laboratory/play"])
def test_a_body_that_is_no_object_is_refused_in_a_sentence(known, path):
    for body in (b"[" * 100_000, b"[]", b"{", b"\xff", b""):
        answer = known.post(path, content=body)
        assert (answer.status_code, answer.json()) == (
            400,
            {"error": "the request is no JSON object"},
        )


def test_a_number_that_is_none_is_refused_in_a_sentence(known):
    for path in ("/api/table?number={}", "/api/history?since={}", "/api/history/moment?at_ns={}"):
        for number in ("9" * 5000, "-1", "x", "%C2%B2"):
            answer = known.get(path.format(number))
            assert (answer.status_code, answer.json()["error"][-12:]) == (400, "is no number")
    assert known.get("/api/table?number=1").json() == {"error": "there is no such table"}


def test_a_wrong_request_is_answered_with_a_sentence(known):
    answer = known.get("/api/refuse")
    assert (answer.status_code, answer.json()) == (400, {"error": "that makes no sense"})


def test_no_script_makes_html_of_texts_and_none_asks_elsewhere():
    for path in Path(STATIC).iterdir():
        text = path.read_text()
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, path.name
        foreign = text.replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in foreign, path.name
        assert "https:" not in foreign, path.name


def test_every_number_of_the_page_has_its_sentence():
    text = (Path(STATIC) / "now.js").read_text()
    rows = text[text.index("const ROWS = [") : text.index("];")]
    keys = rows.split('"')[1::2]
    assert len(keys) > 10
    assert set(keys) <= set(words.WORDS)
    for word in words.WORDS.values():
        assert word.about.endswith("."), word.label


def test_every_reason_of_a_drop_has_its_sentence():
    assert set(Reason) <= set(words.DROPS)


def test_what_to_look_at_exists():
    """Words with an underscore or a dot are names of settings, of options, or of the kernel's."""
    settings, options = dataclasses.fields(Settings), dataclasses.fields(Config)
    known = {"net.core.rmem_max", *(one.name for one in (*settings, *options))}
    for word in words.WORDS.values():
        assert set(re.findall(r"\w+(?:[_.]\w+)+", word.look_at)) <= known, word.label


# Faults


class FakeRelays(Relays):
    def __init__(self, peers: dict[str, dict[str, str]]) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._told = {Path("relay"): {"peers": peers, "cuts": []}}

    def command(self, path: Path, line: str) -> dict[str, Any]:
        self.lines.append(line)
        return {}


def playing(*, allowed: bool = True, relayed: bool = True, own: bool = True) -> Any:
    """A client, the relay, and what was started again."""
    peers = {"a": "127.0.0.1:1", "b": "127.0.0.1:2"}
    watching = Watching()
    for name, state in (("a", "up"), ("b", "gone")):
        node = Watched(Path(name), "g", name, state=state, status={"peers": peers})  # type: ignore[arg-type]
        watching._nodes[node.path] = node
    relays = FakeRelays({"a": peers} if relayed else {})
    started: list[str] = []

    def restart(node: str) -> bool:
        started.append(node)
        return True

    mine = Own("g", restart=restart, load=started.append) if own else None
    done: list[tuple[Any, ...]] = []
    play = Play(
        watching, relays, allowed=allowed, own=mine, on_fault=lambda *told: done.append(told)
    )
    app = application(token=TOKEN, host="127.0.0.1", parts=play.routes())
    client = Browser(app, token=TOKEN)

    def act(**told: Any) -> tuple[int, str]:
        answer = client.post("/api/play", content=json.dumps({"group": "g", **told}))
        return answer.status_code, answer.json().get("error", "")

    return act, relays.lines, started, done, play


def test_the_network_is_disturbed_through_the_relay():
    act, lines, _, done, play = playing()
    assert act(do="network", line="partition a b") == (200, "")
    assert lines == ["partition a b"]
    assert done == [("g", "partition", "network: partition a b", ())]
    for line in ("status", "", "rm -rf /"):
        assert act(do="network", line=line)[0] == 400
    assert len(lines) == 1
    told = play.told()["g"]
    assert told["allowed"]
    assert "peers" not in told["relay"]


def test_what_is_gone_is_started_again_and_nothing_else():
    act, _, started, done, _ = playing()
    assert act(do="restart", node="b") == (200, "")
    assert started == ["b"]
    assert done[0][1] == "restart"
    assert act(do="restart", node="a") == (400, "a runs already")
    assert act(do="restart", node="x")[0] == 400
    assert act(do="kill", node="b") == (400, "b does not run here")
    assert act(do="kill", node="\ud800") == (400, "\\ud800 does not run here")
    assert act(do="load", line="heavy") == (200, "")
    assert act(do="load", line="absurd")[0] == 400
    assert act(do="format", node="a")[0] == 400
    assert started == ["b", "heavy"]


def test_no_process_of_this_machine_is_hurt_in_the_place_of_a_node_elsewhere():
    """`ssh -L` answers at the socket."""
    act, _, _, done, play = playing()
    watched = play._watching.find("g", "a")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as answering:
        watched.pid, watched.is_here = answering.pid, False
        for do in ("kill", "pause", "resume"):
            assert act(do=do, node="a") == (400, "a runs on another machine; do that there")
        assert (answering.poll(), done) == (None, [])
        watched.is_here = True
        assert act(do="kill", node="a") == (200, "")
        assert answering.wait() == -signal.SIGKILL


def test_nothing_is_done_unless_it_is_allowed():
    for options, why in (
        ({"allowed": False}, "--allow-faults"),
        ({"relayed": False}, "roundelay chaos"),
    ):
        act, lines, started, done, play = playing(**options)
        for told in ({"do": "network", "line": "heal"}, {"do": "restart", "node": "b"}):
            code, said = act(**told)
            assert code == 400
            assert why in said
        assert (lines, started, done) == ([], [], [])
        assert why in play.told()["g"]["why"]


def test_a_group_that_others_started_is_not_started_again():
    act, _, started, _, _ = playing(own=False)
    code, said = act(do="restart", node="b")
    assert (code, started) == (400, [])
    assert "where you started it" in said
    assert act(do="load", line="heavy")[0] == 400
    assert act(nonsense=1)[0] == 400
