"""The wheel builds, installs where there is nothing else, and its command runs."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.process


def run(*command: str | Path, cwd: Path, code: int = 0) -> str:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and nothing else."""
    work = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", work, ROOT, cwd=work)
    (wheel,) = work.glob("*.whl")
    home = work / "venv"
    venv.create(home, with_pip=True)
    run(home / "bin" / "pip", "install", "--no-index", "--no-deps", wheel, cwd=work)
    return home / "bin"


def test_help_and_version(empty, tmp_path):
    text = run(empty / "roundelay", "--help", cwd=tmp_path)
    assert "sim" in text
    assert "check" in text
    assert run(empty / "roundelay", "--version", cwd=tmp_path).startswith("roundelay 0.")


@pytest.mark.parametrize(
    "command",
    ["sim", "check", "draw", "bench", "demo", "node", "status", "chaos", "collect", "dashboard"],
)
def test_every_command_explains_itself_without_optional_packages(empty, tmp_path, command):
    assert "usage:" in run(empty / "roundelay", command, "--help", cwd=tmp_path)


def test_the_page_of_the_dashboard_is_in_it(empty):
    (web,) = (empty.parent / "lib").glob("*/site-packages/roundelay/web/static")
    names = {path.name for path in web.iterdir()}
    sources = ROOT / "src" / "roundelay" / "web" / "static"
    assert names == {path.name for path in sources.iterdir()}
    assert "index.html" in names


def test_the_demo_runs_without_optional_packages(empty, tmp_path):
    output = tmp_path / "out"
    text = run(empty / "roundelay", "demo", "--simulated", "-o", output, cwd=tmp_path)
    assert "violated" in text
    assert list((tmp_path / "out").rglob("*.svg"))


def test_the_doctor_looks_without_optional_packages(empty, tmp_path):
    text = run(empty / "roundelay", "doctor", cwd=tmp_path)
    assert "without pyarrow" in text


def test_a_command_that_needs_more_says_what(empty, tmp_path):
    text = run(empty / "roundelay", "demo", cwd=tmp_path, code=2)
    assert text.startswith("roundelay demo: this needs pyspark: pip install 'roundelay[spark,")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("ingest", "{trace}", "-o", "table"), "spark"),
        (("check", "{trace}", "--master", "local[1]"), "spark"),
        (("measure", "table"), "spark"),
        (("sweep", "papers/totem", "--quick"), "spark"),
        (("report", "out"), "report"),
        (("dashboard",), "dashboard"),
        (("demo", "--serve"), "dashboard"),
        (("bench", "sim"), "bench"),
        (("bench", "pipeline"), "spark"),
        (("bench", "sweep"), "spark"),
        (("completion", "bash"), "completion"),
    ],
)
def test_every_command_that_needs_an_extra_names_it(empty, tmp_path, words, extra):
    run(empty / "roundelay", "sim", "run", "template", "--trace", tmp_path / "t", cwd=tmp_path)
    words = tuple(word.format(trace=tmp_path / "t") for word in words)
    said = run(empty / "roundelay", *words, cwd=tmp_path, code=2)
    assert f"pip install 'roundelay[{extra}]'" in said
    assert said.count("\n") == 1 or "trace:" in said


def test_the_wheel_carries_types_and_scenarios(empty):
    (package,) = (empty.parent / "lib").glob("python*/site-packages/roundelay")
    assert (package / "py.typed").exists()
    assert list((package / "sim" / "scenarios").glob("*.txt"))
    stories = sorted((ROOT / "tests" / "scenarios").rglob("*.txt"))
    carried = {path.name for path in (package / "sim" / "scenarios").rglob("*.txt")}
    assert {path.name for path in stories} <= carried


def test_scenarios_are_run_by_name_from_the_wheel(empty, tmp_path):
    listed = run(empty / "roundelay", "sim", "list", "totem/g07", cwd=tmp_path)
    assert listed.startswith("totem/g07_")
    told = run(empty / "roundelay", "sim", "run", "totem/g07", cwd=tmp_path)
    assert "again: roundelay sim run totem/g07" in told
