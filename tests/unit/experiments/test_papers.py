"""Every paper has the same shape, and is found by the name of its folder."""

import dataclasses
import inspect
from importlib.resources import files

import pytest

from roundelay.experiments import load, papers, registry
from roundelay.experiments.plan import paper_plan, read
from roundelay.experiments.registry import load_experiment, load_paper, paper_names

REQUIRED = {"__init__.py", "runs.py", "plan.toml", "claims.py"}
OPTIONAL = {"figures.py", "results.py", "formulas.py", "accelerated.py"}
"""Figures, a look-up of results that claims and figures share, what the paper computes, and runs of
a second paper about the same engine."""


def test_papers_are_found_by_their_folders():
    folders = {path.name for path in files(papers).iterdir() if path.is_dir()}
    assert set(paper_names()) == folders - {"__pycache__"}
    with pytest.raises(
        ValueError, match="no claims are known of 'isis'; there are those of: atop, dtp, fc"
    ):
        load_paper("isis")


@pytest.mark.parametrize("name", paper_names())
def test_a_paper_has_the_modules_that_every_paper_has(name):
    inside = {path.name for path in (files(papers) / name).iterdir()} - {"__pycache__"}
    assert inside >= REQUIRED
    assert inside <= REQUIRED | OPTIONAL
    assert (load_paper(name).figures is not None) == ("figures.py" in inside)


@pytest.mark.parametrize("name", paper_names())
def test_the_modules_of_a_paper_have_the_same_names_in_them(name):
    paper = load_paper(name)
    assert dataclasses.is_dataclass(paper.runs.Cell)
    assert list(inspect.signature(paper.runs.run).parameters)[:2] == ["cell", "seed"]
    assert list(inspect.signature(paper.claims.claims_of).parameters) == ["results"]
    if paper.figures is not None:
        assert list(inspect.signature(paper.figures.figures_of).parameters) == ["results"]


@pytest.mark.parametrize("name", paper_names())
def test_the_plan_of_a_paper_is_of_its_own_runs_and_claims(name):
    paper = load_paper(name)
    for full in (True, False):
        plan = paper_plan(paper, full=full)
        assert (plan.experiment, plan.claims) == (name, name)
        assert plan == read(f"papers/{name}", quick=not full)
        assert all(isinstance(planned.cell, paper.runs.Cell) for planned in plan.runs())
    assert paper_plan(paper, full=False, seeds=2).seeds == (0, 1)


def test_an_experiment_is_a_paper_or_one_of_the_others():
    assert registry.experiment_names() == sorted([*paper_names(), "load"])
    assert load_experiment("load") is load
    assert load_experiment("totem") is load_paper("totem").runs
    with pytest.raises(
        ValueError, match="no experiment is called 'atom'; there are: atop, dtp, fc, load"
    ):
        load_experiment("atom")
