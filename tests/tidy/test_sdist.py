"""The source distribution is the whole repository: who unpacks it can run every test."""

import subprocess
import tarfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder

ROOT = Path(__file__).parents[2]

LEFT_OUT: frozenset[str] = frozenset()
"""Files of the repository that nobody needs who has no checkout."""


MADE = {"PKG-INFO"}
"""Files that only the distribution has."""


def git(*words: str) -> set[str]:
    """The files that git lists, if they are there."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout, so there is nothing to compare with")
    done = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"git does not list the files here: {done.stderr.strip()}")
    return {name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    work = tmp_path_factory.mktemp("sdist")
    (archive,) = SdistBuilder(str(ROOT)).build(directory=str(work))
    with tarfile.open(archive) as held:
        names = [member.name.partition("/")[2] for member in held if member.isfile()]
    return set(names) - MADE


def test_every_file_of_the_repository_is_in_the_sdist(packed):
    assert sorted(git() - packed - LEFT_OUT) == []


def test_the_sdist_has_nothing_else(packed):
    new = git("--others", "--exclude-standard")
    assert sorted(packed - git() - new) == []
    assert sorted(packed & LEFT_OUT) == []


def test_the_makefile_and_what_it_reads_are_in_the_sdist(packed):
    assert {"Makefile", "pyproject.toml", "constraints.txt", "tests/conftest.py"} <= packed
