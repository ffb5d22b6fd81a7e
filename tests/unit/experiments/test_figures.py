"""Figures as tables and as plots."""

import pytest

from roundelay.experiments.figures import Figure, Point, Series, draw, point, to_csv

FIGURE = Figure(
    "figure7",
    "Time and again",
    "nodes",
    "time (ms)",
    (
        Series("DTP", "slow", (Point(5, 2.0, 1.5, 2.25), Point(10, 3.0, 3.0, 3.0))),
        Series("DTP", "quick", (Point(5, 1.0, 1.0, 1.0), Point(10, 2.0, 2.0, 2.0))),
        Series("CM", "slow", (Point(5, 4.0, 4.0, 4.0), Point(10, 6.0, 6.0, 6.0))),
    ),
)


def test_a_point_is_the_mean_and_the_extremes():
    assert point(5, [1.0, 2.0, 6.0]) == Point(5, 3.0, 1.0, 6.0)


def test_a_table_has_a_line_for_each_point():
    lines = to_csv(FIGURE).splitlines()
    assert lines[0] == "subject,variant,nodes,time (ms),min,max"
    assert lines[1] == "DTP,slow,5,2.0,1.5,2.25"
    assert len(lines) == 7


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_same_figure_gives_the_same_plot(suffix, tmp_path):
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    draw(FIGURE, first)
    draw(FIGURE, second)
    assert first.read_bytes() == second.read_bytes()


def test_a_plot_names_its_axes_and_every_curve(tmp_path):
    draw(FIGURE, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    for word in ("Time and again", "nodes", "time (ms)", "DTP, slow", "DTP, quick", "CM, slow"):
        assert f"<!-- {word} -->" in text


def test_a_logarithmic_axis_has_no_zero(tmp_path):
    draw(Figure("f", "t", "x", "y", FIGURE.series, log=True), tmp_path / "log.svg")
    draw(Figure("f", "t", "x", "y", FIGURE.series), tmp_path / "linear.svg")
    assert "<!-- 0 -->" not in (tmp_path / "log.svg").read_text()
    assert "<!-- 0 -->" in (tmp_path / "linear.svg").read_text()
