"""Builds the wheel, and runs the quick tests on it under every Python that it is for.

    make wheels                        all Pythons that are here
    python scripts/wheels.py 3.12      only this one
    python scripts/wheels.py --strict  a Python that is missing is a failure

Each Python gets a virtual environment of its own in a directory that is removed, with the wheel,
the packages that the tests import, and a copy of the tests: nothing there can import from `src`.
Exit code 1 if a test fails, 2 if nothing could be tested.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.11", "3.12", "3.13")
EXTRAS = "sealed,trace,bench,plots,completion"
PACKAGES = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")
TESTS = ("tests/unit", "tests/scenarios", "tests/bugs")
COPIED = ("tests", "examples", "docs", "pyproject.toml", "README.md")
"""What the tests read. Not `src`: they run on what the wheel brought."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("versions", nargs="*", default=VERSIONS, metavar="VERSION")
    parser.add_argument("--strict", action="store_true", help="fail if a Python is missing")
    parser.add_argument("--jobs", default="2", metavar="J", help="tests at the same time")
    args = parser.parse_args()
    if unknown := [version for version in args.versions if version not in VERSIONS]:
        parser.error(f"{unknown[0]} is not one of {', '.join(VERSIONS)}")
    here = {version: find(version) for version in args.versions}
    with tempfile.TemporaryDirectory(prefix="roundelay-wheels-") as scratch:
        wheel = build(Path(scratch))
        print(f"built {wheel.name}, {wheel.stat().st_size / 1024:,.0f} KB", flush=True)
        failed = [
            version
            for version, python in here.items()
            if python is not None and not passes(version, python, wheel, Path(scratch), args.jobs)
        ]
    missing = [version for version, python in here.items() if python is None]
    for version in missing:
        print(
            f"Python {version}: not tested, there is none here; get one with `pyenv install "
            f"{version}`, `uv python install {version}`, or a package such as python{version}"
        )
    if len(missing) == len(here):
        return 2
    return 1 if failed or (missing and args.strict) else 0


def find(version: str) -> Path | None:
    """A Python of this version: on the PATH, of pyenv, or of uv."""
    for candidate in _candidates(version):
        command = [str(candidate), "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"]
        try:
            told = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError:
            continue
        if told.returncode == 0 and told.stdout.strip() == version:
            return candidate
    return None


def _candidates(version: str) -> Iterator[Path]:
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        yield Path(sys.executable)
    if there := shutil.which(f"python{version}"):
        yield Path(there)
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True)
    if uv := shutil.which("uv"):
        command = [uv, "python", "find", version]
        told = subprocess.run(command, capture_output=True, text=True, check=False)
        if told.returncode == 0:
            yield Path(told.stdout.strip())


def build(scratch: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
    subprocess.run([*command, "-o", str(scratch), str(ROOT)], check=True, stdout=subprocess.DEVNULL)
    (wheel,) = scratch.glob("*.whl")
    return wheel


def passes(version: str, python: Path, wheel: Path, scratch: Path, jobs: str) -> bool:
    """Whether the quick tests pass under this Python; prints how it went."""
    begun = time.monotonic()
    place = scratch / version
    print(f"Python {version}: installing into a new environment of {python}", flush=True)
    inside = _environment(place / "venv", python, wheel)
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, place / name)
    clean = {name: told for name, told in os.environ.items() if not name.startswith("PYTHON")}
    shown = [str(inside), "-c", "import roundelay; print(roundelay.__file__)"]
    found = subprocess.run(shown, cwd=place, env=clean, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(place / "venv"), found.stdout
    print(f"Python {version}: testing {', '.join(TESTS)}", flush=True)
    command = [str(inside), "-m", "pytest", "-q", "-n", jobs, "--dist", "worksteal", *TESTS]
    done = subprocess.run(command, cwd=place, env=clean, check=False)
    word = "passed" if done.returncode == 0 else "failed"
    print(f"Python {version}: {word} after {time.monotonic() - begun:.0f} s", flush=True)
    return done.returncode == 0


def _environment(venv: Path, python: Path, wheel: Path) -> Path:
    """The Python of a new virtual environment that has the wheel and what the tests import."""
    subprocess.run([str(python), "-m", "venv", str(venv)], check=True)
    inside = venv / "bin" / "python"
    pip = [str(inside), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    wanted = [f"{wheel}[{EXTRAS}]", *PACKAGES]
    subprocess.run([*pip, "-c", str(ROOT / "constraints.txt"), *wanted], check=True)
    return inside


if __name__ == "__main__":
    sys.exit(main())
