"""`roundelay dashboard` itself: it finds a sealed group with the worst of names, and has tables."""

import json
import subprocess
import sys
import tempfile
import time
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.browser import chromium, needs_browser
from tests.patience import LIMIT_S, until
from tests.web.test_tables import verdict, write
from tests.web.visits import Command, Visit

from roundelay.cli import main
from roundelay.pipeline.live.measures import COLUMNS
from roundelay.runtime.client import Client, control_path
from roundelay.runtime.key_files import read_keys
from roundelay.transport.address import free_addresses
from roundelay.web.tables import MEASURES, ORDER, VERDICTS

pytestmark = pytest.mark.process

GROUP = "<img src=x onerror=alert(1)>"
NODES = ("<b>a", "'\"&b")
PAYLOAD = b"nobody but the members may read this"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Where control sockets are; their paths must be short."""
    with tempfile.TemporaryDirectory(prefix="rd") as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", name)
        yield Path(name)


@pytest.fixture(scope="module")
def key(home) -> Iterator[Path]:
    """The key of the group, while its nodes run."""
    path: Path = home / "group.key"
    assert main(["keygen", "-o", str(path)]) == 0
    peers = [f"--peer={name}={at}" for name, at in free_addresses(NODES).items()]
    command = [sys.executable, "-m", "roundelay", "node", f"--group={GROUP}", f"--key={path}"]
    nodes = [
        subprocess.Popen(
            [*command, f"--node={name}", f"--state={home / str(number)}", *peers],
            stderr=subprocess.DEVNULL,
        )
        for number, name in enumerate(NODES)
    ]
    yield path
    for node in nodes:
        node.terminate()
    for node in nodes:
        node.wait(LIMIT_S)


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> list[Path]:
    """What `check` and `measure` write, and what `watch` does."""
    told, live = tmp_path_factory.mktemp("table"), tmp_path_factory.mktemp("live")
    write(
        told / VERDICTS, [verdict(f"T{n}", said, reason=GROUP) for n, said in enumerate(ORDER, 1)]
    )
    measures = [{"run": GROUP, "measure": "own", "unit": "ms", "count": 3, "p50": 1.5}]
    write(told / MEASURES, measures)
    batch = {"run": "r", "rows_per_s": 9.5, "latency_p50_ms": 1.25, "behind_s": 0.1}
    batches = [{**batch, "batch": number, "time_s": 2.0 * number} for number in range(9)]
    write(live / VERDICTS, [verdict("O5", "ok")])
    pq.write_table(pa.Table.from_pylist(batches, COLUMNS), live / MEASURES)
    return [told, live]


@pytest.fixture(scope="module")
def command(key, tables) -> Iterator[Command]:
    shown = Command("dashboard", *(f"--table={directory}" for directory in tables))
    yield shown
    shown.close()


class Asking:
    """Asks the server as the page does, and keeps all that it said."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._base = f"http://{parts.netloc}/api/"
        self._headers = {"Authorization": f"Bearer {parts.fragment.removeprefix('token=')}"}
        self.said = ""

    def get(self, path: str, **query: object) -> Any:
        with self._open(path, query) as answer:
            told = answer.read().decode()
        self.said += told
        return json.loads(told)

    def groups(self) -> Iterator[dict[str, Any]]:
        """Each group, whenever something is new."""
        with self._open("events", {}) as stream:
            for line in stream:
                self.said += line.decode()
                if line.startswith(b"data: "):
                    yield from json.loads(line.removeprefix(b"data: "))["groups"]

    def _open(self, path: str, query: Mapping[str, object]) -> Any:
        url = f"{self._base}{path}?{urlencode(query)}"
        return urlopen(Request(url, headers=self._headers), timeout=LIMIT_S)


def whole(group: Mapping[str, Any]) -> bool:
    """Whether all nodes are in one view."""
    return [view["members"] for view in group["rings"]] == [sorted(NODES)]


def forms(secret: bytes) -> set[str]:
    """How bytes are written as texts."""
    coded = {code(secret).decode() for code in (b64encode, urlsafe_b64encode, b32encode)}
    return {secret.hex(), secret.decode("latin-1"), *(text.rstrip("=") for text in coded)}


def test_it_finds_a_sealed_group_and_tells_no_secret(command, key):
    page = Asking(command.url)
    group = next(group for group in page.groups() if whole(group))
    assert (group["name"], group["nodes"][0]["sealed"]) == (GROUP, True)
    with Client(control_path(GROUP, NODES[0])) as node:
        node.ask(do="send", payload=b64encode(PAYLOAD).decode(), safe=True)
        node.answer()

    pictures: list[str] = []

    def drawn() -> bool:
        """Whether the page has rows of the delivery, from both nodes."""
        moment = page.get("history/moment", group=GROUP, at_ns=time.monotonic_ns())
        pictures.append(moment["svg"])
        return "Of " not in moment["sentence"] and moment["svg"].count("<path") > 5

    following = page.groups()
    next(following)  # Rows are kept while somebody looks.
    until(drawn, "a diagram")
    following.close()  # type: ignore[attr-defined]
    texts = [part.text for part in ElementTree.fromstring(pictures[-1]).iter()]
    assert set(NODES) < set(texts)
    for path in ("words", "history", "tables", "table"):
        page.get(path, group=GROUP)
    (secret,) = (held._secret for held in read_keys(key))
    for text in (*forms(secret), *forms(PAYLOAD)):
        assert text not in page.said
    assert GROUP in page.said, "what it does tell would be found"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@needs_browser
@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1600, "light")])
def test_names_are_texts_and_tables_are_shown(command, browser, width, scheme):
    seen = Visit(browser, command.url, width, scheme)
    seen.page.on("dialog", lambda dialog: seen.said.append(dialog.message))
    seen.until(lambda: seen.nodes("up") == set(NODES), "both nodes")
    assert seen.page.locator("#now .ring-card h2").text_content() == f"Group {GROUP}"
    seen.show("history")
    seen.page.locator("#history .entries button").first.click()
    seen.show("play")
    assert "o relay is between" in seen.page.inner_text("#play")
    seen.show("table")
    verdicts = seen.page.locator("#table table").first.locator("tbody tr")
    seen.until(lambda: verdicts.count() == len(ORDER), "all verdicts")
    assert "violated" in verdicts.first.inner_text()
    assert "its own sender" in seen.page.inner_text("#table")
    assert not seen.too_wide()
    assert seen.complaints() == []
    seen.page.select_option("#table-verdicts", "vacuous")
    assert verdicts.count() == 1
    seen.page.select_option("#table-choice", "1")
    seen.until(lambda: seen.page.locator("#table figure").count() == 4, "the curves")
    assert "1.3 ms" in seen.page.locator("#table figure").nth(2).inner_text()
    assert not seen.too_wide()
    assert seen.complaints() == []
    assert seen.page.locator("img[src=x], b b").count() == 0
    assert seen.said == []


@needs_browser
def test_a_page_without_the_token_says_what_to_open(command, browser):
    page = browser.new_page()
    address, _, token = command.url.partition("#")
    for wrong in (address, f"{address}#token=of-yesterday"):
        page.goto(wrong)
        page.wait_for_selector("#connection.bad:has-text('open the address')")
        page.wait_for_selector("#now:has-text('open the address')")
    page.goto(
        f"{address}#{token}"
    )  # In the same tab, of which only the end of the address changes.
    page.wait_for_selector("#connection.good")
    page.close()
