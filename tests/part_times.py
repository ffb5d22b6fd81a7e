"""`pytest --part-times`: what each part of the suite takes, as a table at the end of the run.

A part is a folder directly below `tests`. Times are seconds: elapsed time depends on what else the
machine does and is added up over all workers; processor time, of tests and of the processes that
they start and wait for, hardly does.
"""

import os
import time
from collections import defaultdict
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import PurePath

import pytest

CPU = "cpu_s"
"""Under this name a report carries its test's processor time, also from a worker to its master."""


@dataclass
class Part:
    tests: int = 0
    elapsed_s: float = 0.0
    cpu_s: float = 0.0


def cpu_s() -> float:
    """Processor time of this process and of the children it has waited for, so far."""
    return sum(os.times()[:4])


class PartTimes:
    """A plugin of pytest, registered if the table is asked for."""

    def __init__(self) -> None:
        self._parts: defaultdict[str, Part] = defaultdict(Part)
        self._began_s = time.monotonic()
        self._cpu_s = 0.0
        """Processor time when the test that now runs began."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._cpu_s = cpu_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((CPU, cpu_s() - self._cpu_s))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = self._parts["/".join(PurePath(report.nodeid).parts[:2]).partition("::")[0]]
        part.elapsed_s += report.duration
        if report.when == "teardown":
            part.tests += 1
            part.cpu_s += sum(s for name, s in report.user_properties if name == CPU)  # type: ignore[misc]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("times of parts, in seconds")
        terminalreporter.line(f"{'part':20}{'tests':>8}{'elapsed':>10}{'processor':>12}")
        for name, part in sorted(self._parts.items()):
            terminalreporter.line(
                f"{name:20}{part.tests:>8}{part.elapsed_s:>10.0f}{part.cpu_s:>12.0f}"
            )
        terminalreporter.line(f"the whole run took {time.monotonic() - self._began_s:.0f} s")
