"""Forging guided by coverage: starts the instrumented process, and reads what it found."""

import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random

from roundelay.bench.fuzz.run import Failure, Report, Tally, again_input

INPUT_BYTES_MAX = 2048
"""About fifteen bytes decide on one forged frame."""
FIRST_INPUTS = 4
"""Inputs drawn from the seed, to begin with."""
INPUT_S_MAX = 60
"""An input that takes longer ends the run, and is a failure."""


class GuideError(Exception):
    """The instrumented process ended without a result and without a failing input."""


def available() -> bool:
    return importlib.util.find_spec("atheris") is not None


def fuzz_guided(
    engine: str,
    frames: int,
    seed: int,
    *,
    seconds: float,
    static: bool = False,
    options: Mapping[str, str] | None = None,
    report: Report = lambda done, total: None,
) -> Tally:
    """Forge so many frames, or for so long. Needs atheris. Times are those of instrumented code,
    which is slower."""
    tally = Tally(engine, static, seed, options=dict(options or {}), guided=True)
    with tempfile.TemporaryDirectory(prefix="roundelay-fuzz-") as name:
        place = Path(name)
        job = {
            "engine": engine,
            "frames": frames,
            "seed": seed,
            "seconds": seconds,
            "static": static,
            "options": tally.options,
            "result": str(place / "result"),
            "fuzzer": _fuzzer(place, seed),
        }
        tally.frames = _watch(json.dumps(job), place / "log", frames, report)
        log = (place / "log").read_text(errors="replace")
        reached = re.findall(r"\bcov: (\d+)", log)
        tally.edges = int(reached[-1]) if reached else None
        if (place / "result").exists():
            found = json.loads((place / "result").read_text())
            found["failures"] = [Failure(**failure) for failure in found["failures"]]
            return Tally(**found | {"edges": tally.edges})
        _ended_by_input(tally, place, log)
    return tally


def _fuzzer(place: Path, seed: int) -> list[str]:
    """Options of libFuzzer, which atheris runs; the first inputs are written where it looks for
    them."""
    corpus = place / "corpus"
    corpus.mkdir()
    random = Random(seed)
    for i in range(FIRST_INPUTS):
        (corpus / f"{i}").write_bytes(random.randbytes(INPUT_BYTES_MAX >> i))
    return [
        f"-seed={seed % 2**31 or 1}",  # 0 would be a seed of its own choice.
        f"-max_len={INPUT_BYTES_MAX}",
        "-len_control=0",  # Long inputs from the start: short ones end before a group forms.
        f"-timeout={INPUT_S_MAX}",
        "-rss_limit_mb=0",  # The tally says how much memory it was.
        f"-artifact_prefix={place}/input-",
        str(corpus),
    ]


def _watch(job: str, log: Path, frames: int, report: Report) -> int:
    """Run the process to its end; how many frames it told of."""
    done = 0
    words = [sys.executable, "-m", "roundelay.bench.fuzz.instrumented", job]
    with (
        log.open("w") as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.strip().isdecimal():  # Atheris may have something to say, too.
                    done = int(line)
                    report(min(done, frames), frames)
        finally:
            process.kill()
    return done


def _ended_by_input(tally: Tally, place: Path, log: str) -> None:
    """Note the input that ended the process, which atheris has kept."""
    kept = sorted(place.glob("input-*"))
    lines = [line for line in log.splitlines() if line.strip()]
    if not kept:
        raise GuideError(f"atheris ended early: {lines[-1] if lines else 'without a word'}")
    errors = [line for line in lines if "ERROR" in line]
    what = f"ended the process, or took longer than {INPUT_S_MAX} s"
    again = again_input(tally, kept[0].read_bytes())
    tally.exceptions += 1
    tally.failures.append(Failure(tally.frames, what, "; ".join(errors[-1:]), "", again))
