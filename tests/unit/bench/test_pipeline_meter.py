"""The meter of the pipeline's benchmark counts processes that end while it runs."""

import subprocess
import sys

import pytest

from roundelay.bench.pipeline import Meter

PARENT = """
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # As Spark's Python daemon does: nobody is reaped.
end, go = os.pipe()
child = os.fork()
if not child:
    while time.process_time() < 0.5:
        pass
    print("burned", flush=True)
    os.read(end, 1)
    os._exit(0)
sys.stdin.readline()
os.write(go, b"x")
while os.path.exists(f"/proc/{child}"):
    time.sleep(0.01)
print("ended", flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_time_of_a_process_that_ended_is_counted():
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        meter = Meter(parent.pid)
        assert parent.stdout.readline() == "burned\n"
        meter.sample()
        burned = meter.cpu_s
        parent.stdin.write("\n")
        parent.stdin.flush()
        assert parent.stdout.readline() == "ended\n"
        meter.sample()
        ended = meter.cpu_s
        parent.stdin.write("\n")
    assert burned > 0.3  # Half a second, less what had passed before the meter was there.
    assert ended >= burned
