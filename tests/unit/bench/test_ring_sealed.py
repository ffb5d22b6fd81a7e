"""How sealed and plain groups are compared, and what of it is refused."""

import pytest

from roundelay.bench.ring import runs, sealed
from roundelay.bench.ring.cluster import SplitError
from roundelay.bench.ring.jobs import Cell
from roundelay.bench.ring.runs import Load
from roundelay.cli import main
from roundelay.cli.bench import ring_sealed
from roundelay.cli.bench.ring_sealed import headline


def quiet(done, total):
    pass


def test_ratios_are_taken_within_a_round_and_every_other_round_is_turned_around(monkeypatch):
    rates = {
        "none": iter((100.0, 400.0, 100.0)),
        "aes": iter((90.0, 320.0, 100.0)),
        "chacha": iter((50.0, 100.0, 75.0)),
    }
    asked = []

    def load(system, cell, seconds):
        asked.append(cell.cipher)
        return Load(next(rates[cell.cipher]), 1000, 1.5 if cell.cipher == "aes" else 1.0, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    aes, chacha = sealed.throughput([Cell(datagram=1400)], 1.0, 3, quiet)
    assert asked == ["none", "aes", "chacha", "chacha", "aes", "none", "none", "aes", "chacha"]
    assert (aes.cell.cipher, aes.cell.datagram, chacha.cell.cipher) == ("aes", 1400, "chacha")
    assert (aes.plain_msgs_per_s, aes.msgs_per_s) == (100.0, 100.0)
    assert (aes.ratio, aes.lowest, aes.highest) == (0.9, 0.8, 1.0)
    assert (chacha.ratio, chacha.cpu_ratio) == (0.5, 1.0)
    assert aes.cpu_ratio == 1.5


def test_a_round_that_split_counts_for_nothing_but_is_told(monkeypatch):
    outcomes = {"none": iter((100.0, 100.0)), "aes": iter((None, 80.0)), "chacha": iter((1.0, 1.0))}

    def load(system, cell, seconds):
        if (rate := next(outcomes[cell.cipher])) is None:
            raise SplitError("a false suspicion")
        return Load(rate, 1000, 1.0, 10.0, 0)

    monkeypatch.setattr(runs, "load", load)
    aes, chacha = sealed.throughput([Cell()], 1.0, 2, quiet)
    assert (aes.ratio, aes.splits, chacha.splits) == (0.8, 1, 0)


def test_the_delay_is_the_median_of_differences_within_a_round(monkeypatch):
    times = {
        "none": iter((1.0, 5.0, 2.0)),
        "aes": iter((1.25, 5.5, 2.25)),
        "chacha": iter((1.0, 1.0, 1.0)),
    }

    def latencies(system, cell, per_s, seconds):
        return [next(times[cell.cipher]) / 1000]

    monkeypatch.setattr(runs, "latencies", latencies)
    aes, _ = sealed.latency([Cell()], 100.0, 1.0, 3, quiet)
    assert aes.more_ms == pytest.approx(0.25)
    assert (aes.plain_p50_ms, aes.p50_ms) == (2.0, 2.25)


def test_the_document_has_ratios_by_datagram_and_cipher():
    entry = {"cpu_ratio": 1.1, "splits": 0}
    document = {
        "throughput": [
            {"cell": {"datagram": 60_000, "cipher": "aes"}, "ratio": 0.9, **entry},
            {"cell": {"datagram": 1400, "cipher": "aes"}, "ratio": 0.8, **entry},
            {"cell": {"datagram": 1400, "cipher": "aes"}, "ratio": 0.1, **entry},
        ],
        "latency": [{"cell": {"cipher": "aes"}, "more_ms": 0.05}],
    }
    head = headline(document)
    assert head["sealed_ratio"] == {"60000": {"aes": 0.9}, "1400": {"aes": 0.8}}
    assert head["cpu_ratio"]["1400"] == {"aes": 1.1}
    assert head["p50_more_ms"] == {"aes": 0.05}


@pytest.mark.parametrize(
    "words",
    [
        ["--cipher", "aes"],
        ["--peer", "none"],
        ["--full"],
        ["--profile"],
        ["--only", "idle"],
        ["--rounds", "0"],
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_sentence(words, capsys):
    assert main(["bench", "ring", "--sealed", *words]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("roundelay bench: ")
    assert captured.err.count("\n") == 1


def test_a_sealed_cell_says_so():
    assert str(Cell(cipher="aes")).endswith("sealed with aes")
    assert "sealed" not in str(Cell())


@pytest.mark.parametrize(
    ("words", "sizes"),
    [([], [60_000, 1400]), (["--nodes", "5"], [60_000, 1400]), (["--datagram", "8900"], [8900])],
)
def test_both_sizes_of_datagrams_are_compared_unless_others_are_given(words, sizes, monkeypatch):
    asked: list[int] = []

    def measure(cells, args, machine):
        asked.extend(cell.datagram for cell in cells)
        assert args.rounds == 9
        return 0

    monkeypatch.setattr(ring_sealed, "measure", measure)
    assert main(["bench", "ring", "--sealed", *words]) == 0
    assert asked == sizes
