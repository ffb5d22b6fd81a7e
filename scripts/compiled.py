"""Makes a copy of the package whose hot modules are compiled with mypyc, to see what that gains.

    python scripts/compiled.py DIR
    PYTHONPATH=DIR/src python -m roundelay bench ring --against . --only throughput

It needs a C compiler and a few minutes. docs/performance.md says what came out, and why compiled
modules are not part of the package.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOT = """
    group/assembler group/body group/delivery group/packer group/stack
    membership/machine membership/next_sender membership/ring
    protocols/totem
    runtime/backlog runtime/deliveries runtime/inbox runtime/meter runtime/performing runtime/port
    runtime/receiving runtime/sending runtime/timers
    transport/segments transport/udp
    wire/endpoint wire/frame wire/log_record wire/packet wire/primitives
"""
"""What runs for every packet. Compiled, other modules of the membership protocol do not behave as
they do in Python, and what is referred to weakly cannot be compiled."""

SUBSCRIPT = """
    @classmethod
    def __class_getitem__(cls, item: object) -> object:
        return cls
"""
"""What compiled classes lack to be generic at run time."""

SETUP = """
import sys
from mypyc.build import mypycify
from setuptools import setup
setup(name="compiled", packages=[], ext_modules=mypycify(sys.argv.pop().split(), opt_level="3"))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="Compile a copy of the package with mypyc.")
    parser.add_argument("dir", metavar="DIR", type=Path, help="a directory that is not there yet")
    directory: Path = parser.parse_args().dir.absolute()
    if directory.exists():
        parser.error(f"{directory} is there already; name another directory")
    source = directory / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", directory)
    paths = [f"roundelay/{name}.py" for name in HOT.split()]
    for path in paths:
        make_generic(source / path)
    print(f"compiling {len(paths)} modules; this takes a few minutes", flush=True)
    build = [sys.executable, "-c", SETUP, "build_ext", "--inplace", " ".join(paths)]
    done = subprocess.run(build, cwd=source, stdout=subprocess.DEVNULL)
    if not done.returncode:
        print(f"compiled: PYTHONPATH={source} python -m roundelay bench ring --against {ROOT}")
    return done.returncode


def make_generic(path: Path) -> None:
    """Let the generic classes of a module have a type in brackets behind them."""
    text = path.read_text()
    path.write_text(
        re.sub(r"^class .*Generic\[.*\n(    \"\"\"[^\"]*\"\"\"\n)", _add, text, flags=re.M)
    )


def _add(found: re.Match[str]) -> str:
    return found[0] + SUBSCRIPT


if __name__ == "__main__":
    sys.exit(main())
