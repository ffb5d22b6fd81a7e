"""Looks at what a node runs on: versions, processors, clocks, limits."""

import contextlib
import ctypes
import importlib.metadata
import os
import platform
import re
import resource
import sys
import time
from pathlib import Path

from roundelay import __version__
from roundelay.cli.doctor.facts import Clock, Files, Java, Package, Processors, Software
from roundelay.pipeline.errors import PipelineError
from roundelay.pipeline.java import find_java
from roundelay.trace.extras import EXTRAS

READS = 20_000
"""How often the monotonic clock is read to see that it goes forward. Fewer find less; more take
time."""
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
CPU_QUOTAS = (Path("/sys/fs/cgroup/cpu.max"),)
"""Where the kernel tells how much processor time this process's control group may take."""

STA_UNSYNC = 0x40
"""The bit of the kernel's clock status that says that nothing keeps the clock right."""
NEVER_TOLD_US = 16_000_000
"""The error that the kernel assumes while nobody tells it one, in microseconds."""


class _Timex(ctypes.Structure):
    """The beginning of the kernel's `struct timex`, and room for its end."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def software() -> Software:
    major, minor, micro = sys.version_info[:3]
    return Software(
        __version__,
        (major, minor, micro),
        platform.python_implementation(),
        f"{platform.system()} {platform.release()}",
        sys.platform.startswith("linux"),
    )


def packages() -> tuple[Package, ...]:
    """The optional packages, in the order of `EXTRAS`."""
    wanted = _wanted()
    return tuple(_package(name, extra, wanted.get(name, "")) for name, extra in EXTRAS.items())


def _package(name: str, extra: str, wanted: str) -> Package:
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Package(name, extra, None, wanted, fits=True)
    return Package(name, extra, version, wanted, fits(version, wanted))


def _wanted() -> dict[str, str]:
    """The versions that our extras ask for, by package."""
    try:
        lines = importlib.metadata.requires("roundelay") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    found = {}
    for line in lines:
        said = re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", line)
        if said is not None:
            found[said[1].lower()] = said[2].strip()
    return found


def fits(version: str, wanted: str) -> bool:
    """Whether a version is within bounds such as `>=4.1,<5`. Words that are not understood count
    as satisfied."""
    for bound in wanted.split(","):
        said = re.fullmatch(r"\s*(>=|<)\s*([\d.]+)\s*", bound)
        if said is None:
            continue
        less = _numbers(version) < _numbers(said[2])
        if less == (said[1] == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """The leading numbers of a version, without zeros at the end: 4.10.0rc1 is 4, 10."""
    said = re.match(r"\d+(?:\.\d+)*", version)
    numbers = [int(part) for part in said[0].split(".")] if said else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def java() -> Java:
    try:
        return Java(str(find_java()), "")
    except PipelineError as e:
        return Java(None, str(e))


def processors() -> Processors:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quotas = [quota(path.read_text()) for path in CPU_QUOTAS if path.is_file()]
    told = [q for q in quotas if q is not None]
    return Processors(count or 1, min(told, default=None))


def quota(text: str) -> float | None:
    """How many processors `cpu.max` of a control group allows; None for no limit."""
    words = text.split()
    if len(words) != 2 or not (words[0].isdigit() and words[1].isdigit()) or not int(words[1]):
        return None
    return int(words[0]) / int(words[1])


def clock() -> Clock:
    last = begun = time.monotonic_ns()
    went_back = False
    for _ in range(READS):
        now = time.monotonic_ns()
        went_back = went_back or now < last
        last = now
    source = None
    with contextlib.suppress(OSError):
        source = CLOCK_SOURCE.read_text().strip()
    synchronized, error_ms = _kept_right()
    return Clock(
        went_back,
        (last - begun) / READS,
        source,
        time.gmtime().tm_year,
        synchronized,
        error_ms,
    )


def _kept_right() -> tuple[bool | None, float | None]:
    """Whether the kernel's clock is synchronized, and how wrong it is at most, in milliseconds."""
    if not sys.platform.startswith("linux"):
        return None, None
    told = _Timex()  # With no modes, nothing is changed.
    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.byref(told))
    except (OSError, AttributeError):
        return None, None
    if state < 0:
        return None, None
    error_ms = told.maxerror / 1e3 if told.maxerror < NEVER_TOLD_US else None
    return not told.status & STA_UNSYNC, error_ms


def files() -> Files:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        count = len(os.listdir("/proc/self/fd"))
    except OSError:
        count = 0
    return Files(count, limit)
