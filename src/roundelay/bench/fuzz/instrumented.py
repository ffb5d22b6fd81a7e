"""The process of a guided run: atheris counts the branches that an input reaches, and tries inputs
further that reach new ones.

Modules are instrumented as they are imported. So this one imports none of the code under test at
its top, and it runs in an interpreter of its own (`guided` starts it). Only the pure packages are
instrumented: what the simulator and the fuzzer themselves do is of no interest.
"""

import dataclasses
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path

UNDER_TEST = ("roundelay.group.stack", "roundelay.group.static")
"""With the engine, these import all that a node needs, and nothing that is not pure."""
PROGRESS_S = 0.2


def main(text: str) -> None:
    """Run a job, given as JSON. Ends the process: the loop of atheris never returns."""
    import atheris

    job = json.loads(text)
    with atheris.instrument_imports(include=["roundelay"]):
        for module in UNDER_TEST:
            importlib.import_module(module)
        from roundelay.group.engines import engine_factory

        engine_factory(job["engine"])

    from roundelay.bench.fuzz.arena import Stopwatch
    from roundelay.bench.fuzz.choices import another
    from roundelay.bench.fuzz.run import FAILURES_MAX, Tally, finish, play

    tally = Tally(job["engine"], job["static"], job["seed"], options=job["options"], guided=True)
    clock = Stopwatch()
    deadline = time.monotonic() + job["seconds"]
    shown = 0.0

    def test(data: bytes) -> None:
        nonlocal shown
        play(tally, clock, data)
        now = time.monotonic()
        if now - shown > PROGRESS_S:
            shown = now
            sys.stdout.write(f"{tally.frames}\n")
            sys.stdout.flush()
        failures = tally.exceptions + tally.stuck
        if tally.frames >= job["frames"] or now > deadline or failures >= FAILURES_MAX:
            finish(tally, clock)
            Path(job["result"]).write_text(json.dumps(dataclasses.asdict(tally)))
            os._exit(0)

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        return another(data, size_max, seed, atheris.Mutate)

    atheris.Setup([sys.argv[0], *job["fuzzer"]], test, custom_mutator=mutate)
    gc.collect()
    gc.freeze()  # What else is in the process must not cost an input its time.
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1])
