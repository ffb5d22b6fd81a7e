"""Options of the whole suite."""

import os

import pytest
from tests.patience import TEST_S

os.environ.setdefault("PYTEST_TIMEOUT", str(TEST_S))  # Read by pytest-timeout, which starts later.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="put what really happens into the scenario files, to be read as a diff",
    )
