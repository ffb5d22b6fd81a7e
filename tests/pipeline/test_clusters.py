"""Executors in processes of their own: they get our package from us, and may be killed."""

import os
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from tests.patience import LIMIT_S, until
from tests.pipeline.cluster import lose_an_executor
from tests.pipeline.connect_server import try_all
from tests.pipeline.processes import die_with_parent
from tests.pipeline.stream_logs import Node, numbered

from .conftest import write_text

pytestmark = [pytest.mark.process, pytest.mark.slow]

FINE = "p!a q?a p.a=1 q.a=1 q!b p?b q.b=2 p.b=2 end{p,q}"
WRONG = "p!a q!b p?b q?a p.a p.b q.b q.a end{p,q}"


def without_java(directory: Path) -> dict[str, str]:
    """An environment whose PATH has everything but Java, and from where nobody can import us."""
    tools = directory / "tools"
    tools.mkdir()
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for tool in Path(place).glob("*"):
            if tool.name != "java" and tool.is_file():
                (tools / tool.name).unlink(missing_ok=True)
                (tools / tool.name).symlink_to(tool)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "JAVA_", "PYTHON"))}
    return clean | {"PATH": str(tools)}


def roundelay(
    *words: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "roundelay", *map(str, words)],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        preexec_fn=die_with_parent,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout + done.stderr


def test_executors_of_their_own_get_our_package_and_java_is_brought_along(tmp_path):
    env = without_java(tmp_path)
    assert shutil.which("java", path=env["PATH"]) is None
    write_text(tmp_path / "in" / "fine", FINE, "fine", protocol="template")
    write_text(tmp_path / "in" / "wrong", WRONG, "wrong", protocol="template")
    master = "local-cluster[2,1,1024]"
    code, said = roundelay("check", tmp_path / "in", "--master", master, env=env, cwd=tmp_path)
    assert code == 1, said
    assert "2 runs, by their gravest verdict" in said
    assert "O5   violated" in said
    assert "witness of O5" in said
    assert (tmp_path / "witness.svg").read_text().startswith("<svg")


def test_a_standalone_cluster_loses_an_executor_in_mid_job(tmp_path):
    """The verdicts are those that one machine gives, though an executor is killed meanwhile."""
    with ProcessPoolExecutor(1, get_context("spawn"), die_with_parent) as pool:
        expected, found = pool.submit(lose_an_executor, str(tmp_path)).result(LIMIT_S * 2)
    assert found == expected
    assert "violated" in {verdict for verdicts in found.values() for verdict in verdicts}


def test_a_connect_server_does_all_of_it(tmp_path):
    """Ingest, check and measure, and one log appended to another, though the server has never heard
    of us."""
    pytest.importorskip("grpc", reason="Spark Connect needs: pip install 'pyspark[connect]'")
    write_text(tmp_path / "in" / "fine", FINE, "fine", protocol="template")
    write_text(tmp_path / "in" / "wrong", WRONG, "wrong", protocol="template")
    Node(tmp_path / "log").grow(20)
    with ProcessPoolExecutor(1, get_context("spawn"), die_with_parent) as pool:
        found = pool.submit(try_all, str(tmp_path)).result(LIMIT_S * 2)
    violated, measured, appended = found
    assert not violated["fine"]
    assert "O5" in violated["wrong"]
    assert measured == {"fine", "wrong"}
    assert appended == numbered(20)


@pytest.fixture
def check_here(tmp_path):
    """A check on one machine, in a process with a temporary directory of its own."""
    write_text(tmp_path / "in", FINE, "fine", protocol="template")
    (tmp_path / "temporary").mkdir()

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "roundelay", "check", "in", "--master", "local[2]", "--json"],
            cwd=tmp_path,
            env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=die_with_parent,
        )

    return start


def test_a_session_on_one_machine_leaves_nothing_behind(check_here, tmp_path):
    """Neither on standard error, where Spark has its log and its workers their last words, nor
    in the temporary directory."""
    with check_here() as process:
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert not [line for line in err.splitlines() if not line.startswith("checking: ")]
    assert out.startswith("{")
    assert not list((tmp_path / "temporary").iterdir())


def test_a_session_that_is_told_to_end_leaves_nothing_behind(check_here, tmp_path):
    with check_here() as process:

        def begun() -> bool:
            assert process.poll() is None
            return bool(list((tmp_path / "temporary").glob("roundelay-spark-*")))

        until(begun, "a session")
        process.terminate()
        process.communicate(timeout=LIMIT_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert not list((tmp_path / "temporary").iterdir())
