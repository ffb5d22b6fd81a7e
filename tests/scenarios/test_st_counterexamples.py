"""What the scenarios of ST must show, whatever `--rewrite` has put into them.

The paper's figures and examples end as printed, and its rules break the order where the safe rules
keep the channel's.
"""

import re
from pathlib import Path

import pytest

from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import rewrite

HERE = Path(__file__).parent / "st"
COUNTEREXAMPLES = sorted(
    path.stem.removesuffix("_paper") for path in HERE.glob("st_[xe][0-9]*_paper.txt")
)
FIGURE_3B = ["x c p z", "a x b y q", "a x c z q"]


def play(name: str) -> tuple[dict[str, list[str]], str]:
    """What each node delivered, and what was printed."""
    runner = ScenarioRunner()
    printed = rewrite((HERE / f"{name}.txt").read_text(), runner.play)
    return runner.log, printed


def violated(printed: str) -> set[str]:
    return set(re.findall(r"^(\w+) violated: ", printed, re.MULTILINE))


def submitted(name: str) -> list[tuple[float, str, list[str]]]:
    """When, what, and for whom: frames go onto the channel in this order."""
    text = (HERE / f"{name}.txt").read_text()
    found = re.findall(r"^at ([\d.]+)ms submit \w+ (\w+) to=([\w,]+)$", text, re.MULTILINE)
    return sorted((float(time), what, to.split(",")) for time, what, to in found)


def test_there_are_seven():
    assert [name.split("_")[1] for name in COUNTEREXAMPLES] == [
        "e12",
        "x1",
        "x2",
        "x3",
        "x4",
        "x5",
        "x6",
    ]


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_the_rules_of_the_paper_break_the_order(name):
    _, printed = play(f"{name}_paper")
    wrong = violated(printed)
    assert "O5" in wrong
    assert ("O5p" in wrong) == (name != "st_x2_cycle")


@pytest.mark.parametrize("name", COUNTEREXAMPLES)
def test_the_safe_rules_keep_the_order_of_the_channel(name):
    logs, printed = play(f"{name}_safe")
    assert not violated(printed)
    sent = submitted(f"{name}_safe")
    assert sent == submitted(f"{name}_paper")
    for node, log in logs.items():
        assert log == [what for _, what, to in sent if node in to]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("g1_fifo_is_no_st", ["c x z p", "x a q b y", "a x c z q"]),
        ("g2_one_order", FIGURE_3B),
        ("g4_failure_section", FIGURE_3B),
        ("g5_sort_line", FIGURE_3B),
        ("g6_insertion", FIGURE_3B),
        ("g7_sorting", ["x z c p", "a x b y q", "a x z c q"]),
        ("g7_union", FIGURE_3B),
        ("g9_three_losses", ["a c", "a b", "b c"]),
    ],
)
def test_figures_and_examples_end_as_printed(name, expected):
    logs, printed = play(f"st_{name}")
    assert [" ".join(log) for log in logs.values()] == expected
    if "fifo" not in name:
        assert not violated(printed)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("g3_acceptance", ["preq = [3, 1, 1]", "treq = [4, 1, 1]"]),
        ("g3_acceptance", ["preq = [4, 1, 1]", "treq = [6, 1, 1]"]),
        ("g3_acceptance", ["RST epoch 0: <6,1,1>"]),
        ("g5_sort_line", ["RST epoch 0: <3,3,4>"]),
        ("g5_sort_line", ["RST_PAK epoch 0: <3,1,3>", "<4,3,4>", "<3,3,4>"]),
        ("g5_sort_line", ["1: x\n", "2: a x b y\n", "3: a x\n"]),
        ("g5_sort_line", ["rrl = [1.3, 2.1, 3.3]", "rrl = [2.2]", "rrl = [1.3, 3.3, 2.2]"]),
        ("g7_sorting", ["RST_PAK epoch 0: <3,1,3>", "<4,3,2>", "RST_ACK epoch 0: <3,1,2>"]),
        ("g7_sorting", ["order 3,1,2"]),
        ("g7_sorting", ["rrl = [3.3, 1.3, 2.1]", "rrl = [3.2, 2.2]", "rrl = [3.3, 1.3, 2.2]"]),
    ],
)
def test_figures_and_examples_go_as_printed(name, lines):
    """These come about in this order."""
    _, printed = play(f"st_{name}")
    output = "\n".join(block.partition("\n\n")[0] for block in printed.split("\n----\n")[1:])
    at = -1
    for line in lines:
        at = output.find(line, at + 1)
        assert at >= 0, line
