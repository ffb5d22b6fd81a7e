"""Whoever is ended while Spark works for it leaves no process behind: no Java, no executor, no
Python worker."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.pipeline.processes import command, descendants, die_with_parent, left_of

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.process, pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
LIMIT_S = 400.0
"""For Spark to start its tasks, in seconds."""
ENDING_S = 60.0
"""For everybody to be gone, in seconds; a few are enough on an idle machine."""


def begin(words: list[str], started: Path) -> "subprocess.Popen[str]":
    """A process, once both tasks of its job are under way."""
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )
    deadline = time.monotonic() + LIMIT_S
    while len(list(started.iterdir())) < 2:
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"its tasks did not begin: {process.communicate()}")
        time.sleep(0.1)
    return process


@pytest.mark.parametrize(
    ("master", "number"),
    [
        ("local[2]", signal.SIGINT),
        ("local[2]", signal.SIGKILL),
        ("local-cluster[2,1,1024]", signal.SIGTERM),
        ("local-cluster[2,1,1024]", signal.SIGKILL),
    ],
)
def test_a_command_that_is_ended_in_mid_job_leaves_nobody(master, number, tmp_path):
    with begin(["-m", "tests.pipeline.holding", master, str(tmp_path)], tmp_path) as process:
        family = descendants(process.pid)
        said = {command(one) for one in family}
        assert any("SparkSubmit" in words for words in said)
        assert any("pyspark.daemon" in words for words in said)
        executors = sum("CoarseGrainedExecutorBackend" in words for words in said)
        assert executors == (0 if master == "local[2]" else 2)
        process.send_signal(number)
        _, err = process.communicate(timeout=ENDING_S)
    assert not [command(one) for one in left_of(family, ENDING_S)]
    if number is signal.SIGTERM:
        assert process.returncode == 128 + number
        assert err == ""
    elif number is signal.SIGINT:
        # What the command line makes a line of; nothing of py4j, which would print a page.
        assert process.returncode == -number
        assert "while sending command" not in err


TEST = """
from pathlib import Path

from tests.pipeline.conftest import spark
from tests.pipeline.holding import hold

def test_for_ever(spark):
    hold(spark, Path({started!r}))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_test_run_that_is_ended_leaves_nobody(number, tmp_path):
    started = tmp_path / "started"
    started.mkdir()
    file = tmp_path / "test_it.py"
    file.write_text(TEST.format(started=str(started)))
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT), str(file)]
    with begin(words, started) as process:
        family = descendants(process.pid)
        assert any("pyspark.daemon" in command(one) for one in family)
        process.send_signal(number)
        process.communicate(timeout=ENDING_S)
    assert not [command(one) for one in left_of(family, ENDING_S)]


SERVERS = """
import sys, time
from pathlib import Path
from tests.pipeline.cluster import standalone
from tests.pipeline.holding import hold
from roundelay.pipeline.session import open_session

if __name__ == "__main__":
    logs = Path(sys.argv[1])
    with standalone(logs) as url, open_session(url, short=True) as spark:
        hold(spark, Path(sys.argv[2]))
"""


def test_a_killed_test_takes_its_cluster_along(tmp_path):
    """The servers that tests start, and the executors of these."""
    started, logs = tmp_path / "started", tmp_path / "logs"
    started.mkdir()
    logs.mkdir()
    with begin(["-c", SERVERS, str(logs), str(started)], started) as process:
        family = descendants(process.pid)
        roles = ("master.Master", "worker.Worker", "CoarseGrainedExecutorBackend")
        for role in roles:
            assert any(role in command(one) for one in family), role
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=ENDING_S)
    assert not [command(one) for one in left_of(family, ENDING_S)]
