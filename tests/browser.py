"""The browser in which tests look at pages.

Where there is none, these tests are skipped. With ROUNDELAY_TEST_BROWSER set they fail; CI sets it
where there is one.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
_PACKAGES = ("playwright", "axe_playwright_python")
_MISSING = [name for name in _PACKAGES if find_spec(name) is None]
if CHROMIUM is None:
    _MISSING.append("Chromium")

needs_browser = pytest.mark.skipif(
    bool(_MISSING) and not os.environ.get("ROUNDELAY_TEST_BROWSER"),
    reason=f"there is no {' and no '.join(_MISSING)}",
)


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, until the end of the block."""
    assert not _MISSING, f"there is no {' and no '.join(_MISSING)}"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def complaints(page: Any) -> list[str]:
    """What the accessibility checker axe objects to."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found]
