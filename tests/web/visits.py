"""A group to look at, and a browser to look with."""

import queue
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from tests.browser import complaints
from tests.patience import LIMIT_S, until

LOOKS = [(400, "light"), (400, "dark"), (1600, "light"), (2000, "dark")]


class Command:
    """A `roundelay` command that serves the dashboard, until it is closed."""

    def __init__(self, *words: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "roundelay", *words, "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.said: list[str] = []
        lines: queue.Queue[str] = queue.Queue()
        self._reading = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._reading.start()
        while True:
            line = lines.get(timeout=LIMIT_S)
            assert line, f"it ended: {self.said}"
            if found := re.match(r"Open (http://\S+)", line):
                self.url = found[1]
                return

    def _read(self, lines: "queue.Queue[str]") -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            lines.put(line)
        lines.put("")

    def close(self, number: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(number)
        code = self.process.wait(LIMIT_S)
        self._reading.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        assert code == 0, self.said


def demo(output: Path) -> Command:
    """Five nodes behind a relay, and the page with everything allowed."""
    return Command("demo", "--serve", "-o", str(output))


class Visit:
    """A page that was opened, and what it said and asked for meanwhile."""

    def __init__(self, browser: Any, url: str, width: int = 1600, scheme: str = "light") -> None:
        viewport = {"width": width, "height": 1000}
        self.context = browser.new_context(viewport=viewport, color_scheme=scheme)
        self.context.set_default_timeout(LIMIT_S * 1e3)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)
        self.page.wait_for_selector("#connection.good")

    def show(self, part: str) -> None:
        self.page.click(f"#tab-{part}")
        self.page.wait_for_selector(f"#{part}:not([hidden]) > :not([hidden])")

    def complaints(self) -> list[str]:
        """What the accessibility checker axe objects to."""
        return complaints(self.page)

    def too_wide(self) -> bool:
        """Whether the page scrolls sideways."""
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return bool(self.page.evaluate(wider) > 0)

    def nodes(self, state: str) -> set[str]:
        """The nodes that the picture of the part Now shows in that state."""
        found = self.page.locator(f"#now .node.{state}").evaluate_all(
            "all => all.map(one => one.dataset.node)"
        )
        return set(found)

    def until(self, condition: Any, what: str) -> None:
        """Poll the page, which lives in this thread."""

        def look() -> bool:
            self.page.wait_for_timeout(20)
            return bool(condition())

        until(look, what)
