"""The site that `make docs` builds: whole, without warnings, and with nothing from elsewhere."""

import os
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.browser import chromium, complaints, needs_browser

import roundelay
from roundelay import structures
from roundelay.cli import COMMANDS, bench, sim
from roundelay.runtime.settings import SETTINGS

pytest.importorskip("mkdocs")
pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
LINK = re.compile(r'<(\w+)\b[^>]*?\s(href|src|srcset|data|action|poster)="([^"]*)"')
ID = re.compile(r'\s(?:id|name)="([^"]*)"')
POLICY = "default-src 'self' 'unsafe-inline' data: blob:"


def build(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does it."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home: Path = tmp_path_factory.mktemp("site")
    done = build(ROOT, home)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return home


def pages(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) > 100
    return found


def test_every_link_and_anchor_leads_somewhere(site):
    texts = {page: page.read_text() for page in pages(site)}
    ids = {page: set(ID.findall(text)) for page, text in texts.items()}
    checked = 0
    for page, text in texts.items():
        if page.name == "404.html":
            continue  # Its links begin at the top of a host.
        for _, _, link in LINK.findall(text):
            path, _, anchor = urllib.parse.unquote(link).replace("&amp;", "&").partition("#")
            if re.match(r"\w+:", link):
                continue
            target = (page.parent / path).resolve() if path else page
            assert target.exists(), f"{page.relative_to(site)}: {link}"
            if anchor and target.suffix == ".html" and not anchor.startswith("__"):
                assert anchor in ids[target], f"{page.relative_to(site)}: {link}"
            checked += 1
    assert checked > 10_000


def test_nothing_comes_from_another_host(site):
    """A reader may follow a link to another host; the pages load nothing from one."""
    for page in pages(site):
        text = page.read_text()
        for tag, attribute, link in LINK.findall(text):
            foreign = re.match(r"(https?:)?//", link)
            assert tag == "a" or not foreign, f"{page.name}: {tag} {attribute}={link}"
        assert f'http-equiv="Content-Security-Policy" content="{POLICY}"' in text, page.name
        assert not re.search(r"@import|url\(\s*[\"']?(https?:)?//", text), page.name
    styles = sorted(site.rglob("*.css"))
    assert styles
    for style in styles:
        assert not re.search(r"@import|url\(\s*[\"']?(https?:)?//", style.read_text()), style.name


def test_every_command_is_on_its_page(site):
    text = (site / "cli.html").read_text()
    packages = {"bench": bench.COMMANDS, "sim": sim.COMMANDS}
    for command in COMMANDS:
        for below in packages.get(command, [""]):
            assert f'id="{"-".join(filter(None, ["roundelay", command, below]))}' in text, command
    assert "<code>--peer NAME=HOST:PORT</code>" in text


def test_every_public_name_and_setting_is_on_its_page(site):
    text = (site / "python.html").read_text()
    modules = {"roundelay": roundelay, "structures": structures, "blocking": roundelay.blocking}
    for name in modules["roundelay"].__all__:
        if name not in ("__version__", "Settings", "blocking", "structures"):
            assert f'id="roundelay.{name}"' in text, name
    for name in {*structures.__all__} - {*roundelay.__all__}:
        assert f'id="roundelay.structures.{name}"' in text, name
    for name in roundelay.blocking.__all__:
        assert f'id="roundelay.blocking.{name}"' in text, name
    text = (site / "settings.html").read_text()
    for name in SETTINGS:
        assert f'<h2 id="{name}">' in text, name


def test_what_is_wrong_fails_the_build(tmp_path):
    for path in ROOT.iterdir():
        if path.name not in ("docs", "out", ".git", ".venv"):
            (tmp_path / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.pyc"))
    with (tmp_path / "docs" / "order.md").open("a") as page:
        page.write("\n[a](nowhere.md) [b](../src/nowhere.py) [c](log.md#nowhere)\n")
    (tmp_path / "docs" / "unlisted.md").write_text("# In no section\n")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode == 1
    for told in ("unlisted.md", "nowhere.md", "../src/nowhere.py", "log.md#nowhere"):
        assert told in done.stderr, told


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize("name", ["index", "tutorial", "protocols", "python", "cli"])
def test_pages_are_whole_quiet_and_accessible_as_files(site, browser, name, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_function("[...document.images].every(i => i.complete && i.naturalWidth)")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not said
    assert asked
    assert all(url.startswith(site.as_uri()) for url in asked)
    assert complaints(page) == []
    context.close()


@needs_browser
def test_the_search_works_in_files(site, browser):
    page = browser.new_page(viewport={"width": 1600, "height": 900})
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__input").click()
    page.locator(".md-search__input").press_sequentially("fencing")
    page.wait_for_selector('.md-search-result__item a[href*="structures.html"]')
    page.close()
