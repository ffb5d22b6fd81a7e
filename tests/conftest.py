"""Options of the whole suite."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from tests.part_times import PartTimes
from tests.patience import TEST_S

os.environ.setdefault("PYTEST_TIMEOUT", str(TEST_S))  # Read by pytest-timeout, which starts later.

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs the suite in the background makes it deaf to Ctrl-C, and so would be all
    # the processes that tests start and interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")  # A busy machine is slow at making examples, and that is no failure.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="put what really happens into the scenario files, to be read as a diff",
    )
    parser.addoption(
        "--part-times",
        action="store_true",
        help="print what each part of the suite took",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--part-times"):
        config.pluginmanager.register(PartTimes())
