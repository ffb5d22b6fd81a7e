"""What the server answers, to whom, and what it never says."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from roundelay.web import words
from roundelay.web.access import BODY_BYTES_MAX
from roundelay.web.application import STATIC, AskedWrongError, application
from roundelay.web.play import Own, Play
from roundelay.web.relays import Relays
from roundelay.web.watching import Watched, Watching

TOKEN = "the-token"
HERE = "http://127.0.0.1:8790"


class Browser:
    """Asks an application, one request after the other."""

    def __init__(self, app: Any, base: str = HERE, cookie: str = "") -> None:
        self._app = app
        self._base = base
        self.cookie = cookie

    def get(self, path: str, **options: Any) -> Any:
        return self._ask("GET", path, options)

    def post(self, path: str, **options: Any) -> Any:
        return self._ask("POST", path, options)

    def _ask(self, method: str, path: str, options: dict[str, Any]) -> Any:
        async def ask() -> Any:
            transport = httpx.ASGITransport(app=self._app)
            cookies = {"roundelay-8790": self.cookie} if self.cookie else None
            async with httpx.AsyncClient(
                transport=transport, base_url=self._base, cookies=cookies
            ) as client:
                return await client.request(method, path, **options)

        return asyncio.run(ask())


async def _chunks() -> Any:
    yield b"1"


async def _echo(request: Request) -> Response:
    return JSONResponse({"told": await request.json()})


async def _refuse(request: Request) -> Response:
    raise AskedWrongError("that makes no sense")


@pytest.fixture
def client() -> Browser:
    parts = [Route("/api/echo", _echo, methods=["POST"]), Route("/api/refuse", _refuse)]
    app = application(token=TOKEN, host="127.0.0.1", port=8790, parts=parts)
    return Browser(app)


@pytest.fixture
def known(client: Browser) -> Browser:
    client.cookie = TOKEN
    return client


@pytest.mark.parametrize("path", ["/", "/static/shell.js", "/api/echo", "/nothing"])
def test_without_the_token_nothing_is_told(client, path):
    for given in ("", "?token=", "?token=wrong", "?token=%C3%A9"):
        answer = client.get(path + given)
        assert answer.status_code == 403
        assert "roundelay dashboard" in answer.text
    client.cookie = "wrong"
    assert client.get(path).status_code == 403


def test_the_first_visit_leaves_a_cookie_and_no_token_in_the_address(client):
    answer = client.get(f"/?token={TOKEN}")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    client.cookie = TOKEN
    page = client.get("/")
    assert page.status_code == 200
    assert TOKEN not in page.text


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
    for host in ("localhost:8790", "127.0.0.1", "[::1]:8790"):
        assert known.get("/", headers={"host": host}).status_code == 200


def test_where_everybody_may_ask_any_name_will_do(client):
    app = application(token=TOKEN, host="0.0.0.0", port=8790)
    other = Browser(app, "http://lab.example:8790")
    assert other.get(f"/?token={TOKEN}").status_code == 303


def test_another_page_cannot_change_anything(known):
    own = {"X-Roundelay": "1"}
    assert known.post("/api/echo", json=1, headers=own).json() == {"told": 1}
    assert known.post("/api/echo", json=1).status_code == 403
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        answer = known.post("/api/echo", json=1, headers={**own, "origin": origin})
        assert answer.status_code == 403
    assert known.post("/api/echo", json=1, headers={**own, "origin": HERE}).status_code == 200


def test_requests_are_bounded(known):
    own = {"X-Roundelay": "1"}
    large = known.post("/api/echo", content=b"1" * (BODY_BYTES_MAX + 1), headers=own)
    assert large.status_code == 413
    endless = known.post("/api/echo", content=_chunks(), headers=own)
    assert endless.status_code == 413


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
    app = application(token=TOKEN, host="127.0.0.1", port=8790, parts=play.routes())
    client = Browser(app)
    client.cookie = TOKEN

    def act(**told: Any) -> tuple[int, str]:
        answer = client.post("/api/play", json={"group": "g", **told}, headers={"X-Roundelay": "1"})
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
    assert act(do="load", line="heavy") == (200, "")
    assert act(do="load", line="absurd")[0] == 400
    assert act(do="format", node="a")[0] == 400
    assert started == ["b", "heavy"]


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
