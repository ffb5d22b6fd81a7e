"""Forged frames that follow from bytes, and the fuzzer that coverage guides."""

import json
import shlex
from random import Random

import pytest

from roundelay.bench.fuzz import guided
from roundelay.bench.fuzz.run import INPUT_FRAMES, replay
from roundelay.cli import main
from roundelay.trace import extras


def fuzz_command(*words: str) -> list[str]:
    return ["bench", "fuzz", "--engine", "totem", *words]


@pytest.mark.parametrize("static", [False, True])
def test_an_input_forges_the_same_frames_again(static):
    data = Random(1).randbytes(1024)
    runs = [replay("totem", data, static=static) for _ in range(2)]
    assert runs[0].frames == runs[1].frames
    assert 20 < runs[0].frames < 2 * INPUT_FRAMES
    assert runs[0].drops == runs[1].drops
    assert runs[0].phases == runs[1].phases
    assert runs[0].judged == (0 if static else 1)
    other = replay("totem", Random(2).randbytes(1024), static=static)
    assert (other.frames, other.drops) != (runs[0].frames, runs[0].drops)


def test_bytes_decide_what_is_forged_under_the_same_load():
    load = b"\x01\x02"
    first, second = (replay("totem", load + Random(i).randbytes(800)) for i in (1, 2))
    assert first.drops != second.drops


def test_an_input_that_raises_is_told_with_the_command_that_plays_it_again(monkeypatch, capsys):
    def receive(self, origin, message):
        raise KeyError("planted")

    with monkeypatch.context() as planted:
        planted.setattr("roundelay.protocols.totem.TotemEngine.receive", receive)
        tally = replay("totem", Random(3).randbytes(300), static=True)
        assert tally.exceptions == 1
        again = shlex.split(tally.failures[0].again)
        assert again[:2] == ["roundelay", "bench"]
        assert main([*again[1:], "--json"]) == 1
        told = json.loads(capsys.readouterr().out)
        assert told["failures"][0]["input"] == tally.failures[0].input
        assert "planted" in told["failures"][0]["what"]
    assert main(again[1:]) == 0, "nothing is planted any more"


def test_a_group_that_an_input_leaves_stuck_is_found(monkeypatch):
    monkeypatch.setattr("roundelay.bench.fuzz.arena.Arena.recover", lambda self: False)
    tally = replay("fifo", b"")
    assert tally.stuck == 1
    assert tally.failures[0].again == "roundelay bench fuzz --engine fifo --input ''"


def test_without_atheris_one_sentence_says_how_to_get_it(monkeypatch, capsys):
    monkeypatch.setattr(guided, "available", lambda: False)
    monkeypatch.setattr(extras, "from_clone", lambda: True)
    assert main(fuzz_command("--guided")) == 2
    said = capsys.readouterr().err
    assert said == "roundelay bench: this needs atheris: pip install '.[fuzz]'\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--guided", "--seconds", "0"], "--seconds 0.0 is no time"),
        (["--guided", "--seconds", "nan"], "--seconds nan is no time"),
        (["--guided", "--first", "3"], "--first counts groups of a seed"),
        (["--seconds", "5"], "--seconds bounds a guided run"),
        (["--input", "xyz"], "--input is the hexadecimal"),
    ],
)
def test_options_that_do_not_go_together(words, sentence, capsys):
    assert main(fuzz_command(*words)) == 2
    assert sentence in capsys.readouterr().err


def test_a_process_that_ends_early_is_told(monkeypatch):
    """Without atheris the process that would be guided ends at its first import."""
    monkeypatch.setattr(guided, "_fuzzer", lambda place, seed: ["-help=1"])
    with pytest.raises(guided.GuideError, match="atheris ended early"):
        guided.fuzz_guided("fifo", 10, 1, seconds=5)


def test_an_input_that_ends_the_process_is_a_failure(monkeypatch):
    def watch(job, log, frames, report):
        log.write_text("#9 NEW cov: 77 ft: 8\n==1== ERROR: libFuzzer: timeout after 60 seconds\n")
        (log.parent / "input-timeout-1").write_bytes(b"\x01\x02\x03")
        return 120

    monkeypatch.setattr(guided, "_watch", watch)
    tally = guided.fuzz_guided("cm", 1000, 1, seconds=5, static=True)
    assert not tally.sound
    assert (tally.frames, tally.edges) == (120, 77)
    assert "timeout after 60 seconds" in tally.failures[0].where
    assert tally.failures[0].again.endswith("--engine cm --static --input 010203")


@pytest.mark.process
def test_a_guided_run_counts_branches(capsys):
    pytest.importorskip("atheris")
    assert main(fuzz_command("--guided", "--frames", "2500", "--seconds", "60", "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["guided"]
    assert told["edges"] > 500
    assert told["frames"] >= 2500
    assert told["judged"] == told["groups"] > 5
    assert told["failures"] == []
