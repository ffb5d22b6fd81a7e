"""Commands used wrongly, or in the wrong place: one sentence, exit code 2."""

import json
from pathlib import Path

import pytest

from roundelay.cli import main
from roundelay.group.engines import engine_config
from roundelay.trace import extras

ROOT = Path(__file__).parents[3]


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command says that was used wrongly."""
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1, said
    return said


SETTINGS = 'group = "g"\nnode = "a"\n{}\n[peers]\na = "127.0.0.1:5401"\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("group = 7\nnode = 'a'\n[peers]\na = 'x'\n", "group=7 is not of type str"),
        (SETTINGS.format("state = 7"), "state=7 is not the name of a file or directory"),
        (SETTINGS.format("timeout_s = nan"), "timeout_s=nan is not between"),
        (SETTINGS.format("timeout_s = true"), "timeout_s=True is not of type number"),
        (SETTINGS.format("trace_frames = 1"), "trace_frames=1 is not of type bool"),
        (SETTINGS.format("options = 3"), "'options' is a table"),
        (
            SETTINGS.format("engine = 'st'\noptions = { medium = 'channel' }"),
            "st with medium=channel needs a network that is one channel, which only the simulator",
        ),
        (
            SETTINGS.format("engine = 'fc'\noptions = { rules = 'link' }"),
            "fc with rules=link runs on static groups only, and real nodes have views",
        ),
        ('group = ".."\nnode = "a"\n[peers]\na = "x"\n', "'..' cannot name a group"),
    ],
)
def test_settings_of_the_wrong_kind(tmp_path, content, sentence, capsys):
    (tmp_path / "a.toml").write_text(content)
    assert sentence in told(capsys, "node", str(tmp_path / "a.toml"))


def test_a_file_where_a_directory_is_meant_and_the_other_way_round(tmp_path, capsys):
    file = tmp_path / "file"
    file.write_text("")
    assert "is not a directory" in told(capsys, "demo", "-o", str(file))
    assert "is not a directory" in told(capsys, "demo", "--simulated", "-o", str(file))
    assert "is a directory" in told(capsys, "report", str(tmp_path), "-o", str(tmp_path))


@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_swarm_of_no_seeds_or_without_processes(number, capsys):
    swarm = ("sim", "swarm", "--protocol", "totem")
    assert f"--seeds must be 1 or more, not {number}" in told(capsys, *swarm, "--seeds", number)
    assert f"--jobs must be 1 or more, not {number}" in told(capsys, *swarm, "--jobs", number)
    assert f"--count must be 1 or more, not {number}" in told(capsys, "tail", "--count", number)


def test_traces_that_are_not_there_are_missed_before_spark_starts(tmp_path, monkeypatch, capsys):
    pytest.importorskip("pyspark")

    def never(*args: object, **more: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("roundelay.pipeline.session.open_session", never)
    nowhere = str(tmp_path / "nowhere")
    assert "there is no trace at" in told(capsys, "ingest", nowhere, "-o", str(tmp_path / "t"))
    assert "there is no trace at" in told(capsys, "check", nowhere, "--master", "local[1]")


def test_a_disk_that_fails_is_told_by_every_command(tmp_path, capsys):
    story = tmp_path / "story.txt"
    story.write_text("# Nothing.\nnodes a\n----\n")
    record = str(tmp_path / "none" / "record")
    assert f"{record}: No such file" in told(capsys, "sim", "run", str(story), "--record", record)


@pytest.mark.parametrize(("clone", "words"), [(True, "'.[spark]'"), (False, "'roundelay[spark]'")])
def test_what_is_missing_is_named_in_words_that_work(clone, words, monkeypatch, capsys):
    def missing(*args: object, **more: object) -> None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark.sql")

    monkeypatch.setattr(extras, "from_clone", lambda: clone)
    monkeypatch.setattr("roundelay.cli.collect.run", missing)
    said = told(capsys, "collect", "x", "-o", "y")
    assert said == f"roundelay collect: this needs pyspark: pip install {words}\n"


@pytest.mark.skipif(not (ROOT / "src").is_dir(), reason="the package is tested, not its sources")
def test_here_it_is_a_clone():
    extras.from_clone.cache_clear()
    assert extras.from_clone()


def test_every_extra_that_brings_a_package_is_there():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for package, extra in extras.EXTRAS.items():
        if package != "py4j":  # Comes with pyspark.
            brought = " ".join(project["optional-dependencies"][extra])
            assert package in brought, package


# Verdicts and exit codes.


def test_what_is_undecided_is_no_violation(capsys):
    words = ["check", "--trace", "p!a p.a q.a", "--properties", "D7,L1"]
    assert main(words) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("nothing is violated, but 1 undecided: L1 (--strict makes this")
    assert main([*words, "--strict"]) == 1
    assert "exit code 1, as --strict asks" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["undecided"] == ["L1"]
    assert not document["ok"]


def test_what_is_violated_is(capsys):
    trace = "p!a q!b p.a p.b q.b q.a end{p,q}"
    assert main(["check", "--trace", trace, "--properties", "O5"]) == 1
    assert "nothing is violated" not in capsys.readouterr().out


# Scenarios by name.


def test_scenarios_are_found_by_name(capsys):
    assert main(["sim", "list", "totem/g0", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) > 3
    assert all(listed.values())
    assert main(["sim", "run", "totem/g07"]) == 0
    assert "again: roundelay sim run totem/g07" in capsys.readouterr().out
    assert "scenarios begin with 'totem/g'" in told(capsys, "sim", "run", "totem/g")
    assert "no scenario 'paxos'" in told(capsys, "sim", "run", "paxos")
    assert "no scenario begins with 'paxos'" in told(capsys, "sim", "list", "paxos")
    assert "--rewrite changes a file of yours" in told(
        capsys, "sim", "run", "totem/g07", "--rewrite"
    )


@pytest.mark.parametrize("number", ["nan", "inf", "x", ""])
def test_an_option_that_is_no_number(number):
    with pytest.raises(ValueError, match="is not of type float"):
        engine_config("totem", {"token_loss_s": number})


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e30", "0"])
def test_a_measurement_of_no_length_or_without_end(seconds, capsys):
    assert "--seconds must be 0.1 to 3600" in told(capsys, "bench", "ring", "--seconds", seconds)
