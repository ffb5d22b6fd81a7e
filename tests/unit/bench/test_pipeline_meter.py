"""The benchmark of the pipeline: its meter counts processes that end while it runs, and what it
expects of larger runs follows from what smaller ones cost."""

import subprocess
import sys

import pytest

pytest.importorskip("pyspark")

from roundelay.bench.pipeline import Cost, Meter, outlook

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


def test_what_a_larger_check_costs_is_the_line_through_smaller_ones():
    def cost(millions: int) -> Cost:
        spent = {"cpu_s": 5.0 + 0.5 * millions, "shuffle_mb": 0.1 + 0.02 * millions}
        memory = {"peak_mb": 700.0, "live_mb": 60 + 0.001 * millions}
        rest = {"table_mb": 10.0 * millions, "wall_s": 0.0, **memory}
        return Cost(
            rows=millions * 10**6, shuffle_share=0.0, proved={}, duckdb_cpu_s=None, **spent, **rest
        )

    found = outlook([cost(6), cost(20), cost(60)], 10**9)
    assert found.cpu_s_per_million == pytest.approx(0.5)
    assert found.cpu_s == pytest.approx(505)
    assert found.shuffle_mb == pytest.approx(20.1)
    assert found.shuffle_share == pytest.approx(20.1 / 10_000)
    assert (found.live_mb_per_million, found.live_mb) == pytest.approx((0.001, 61))
    assert (found.peak_mb_per_million, found.peak_mb) == pytest.approx((0, 700))
