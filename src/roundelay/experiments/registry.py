"""Papers and experiments by name.

An *experiment* is a module with two names in it:

    Cell              a frozen dataclass: the parameters of a run, without its seed. Units are in
                      the names of its fields. It may have a `cost`: a number that grows with the
                      time that the run takes
    run(cell, seed)   the measures of that run, by name. The same arguments give the same measures

so that it can be run anywhere: in this process, in other processes, on a cluster. An experiment
that can keep traces has `manifest(cell, seed)` too, and its `run` takes a third argument `append`,
which is given every row.

A *paper* is a folder of `experiments.papers` with an experiment in it; `papers/__init__.py` lists
its modules. Both are found by their names in the package.
"""

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from types import ModuleType

from roundelay.experiments import papers
from roundelay.experiments.claims import Findings
from roundelay.experiments.results import Result

OTHER_EXPERIMENTS = {"load": "roundelay.experiments.load"}
"""Experiments that belong to no paper, by name: their modules."""

PLAN = "plan.toml"
FIGURES = "figures"
REFERENCE = "REFERENCE"
"""What the package of a paper calls who wrote it and where it appeared, if it says so."""


@dataclass(frozen=True, slots=True)
class Paper:
    """One paper: its modules, loaded."""

    name: str
    runs: ModuleType
    """Its experiment."""
    claims: ModuleType
    figures: ModuleType | None
    """None if the paper has no figures."""
    about: str = ""
    """The paper's key, and the part of it that has the claims: `[Totem95], section 9`."""
    reference: str = ""
    """Who wrote it, and where it appeared."""

    @property
    def plan(self) -> str:
        """The text of its plan: `experiments.plan` reads it."""
        return (files(_module(self.name)) / PLAN).read_text(encoding="utf-8")

    def findings_of(self, results: Sequence[Result]) -> Findings:
        """Judge every claim and make the figures. ValueError if a run is missing that one needs."""
        drawn = () if self.figures is None else self.figures.figures_of(results)
        return Findings(self.claims.claims_of(results), drawn)


def paper_names() -> list[str]:
    """The papers, sorted by name."""
    return sorted(module.name for module in pkgutil.iter_modules(papers.__path__) if module.ispkg)


def load_paper(name: str) -> Paper:
    """The paper of that name. ValueError if there is none."""
    if name not in paper_names():
        known = ", ".join(paper_names())
        raise ValueError(f"no claims are known of {name!r}; there are those of: {known}")
    package = importlib.import_module(_module(name))
    inside = {module.name for module in pkgutil.iter_modules(package.__path__)}
    return Paper(
        name,
        importlib.import_module(f"{_module(name)}.runs"),
        importlib.import_module(f"{_module(name)}.claims"),
        importlib.import_module(f"{_module(name)}.{FIGURES}") if FIGURES in inside else None,
        (package.__doc__ or "").partition(":")[0].strip(),
        getattr(package, REFERENCE, ""),
    )


def experiment_names() -> list[str]:
    """The experiments, sorted by name: one for each paper, and the others."""
    return sorted([*paper_names(), *OTHER_EXPERIMENTS])


def load_experiment(name: str) -> ModuleType:
    """The module of an experiment. ValueError if there is none of that name."""
    if name in OTHER_EXPERIMENTS:
        return importlib.import_module(OTHER_EXPERIMENTS[name])
    if name not in paper_names():
        known = ", ".join(experiment_names())
        raise ValueError(f"no experiment is called {name!r}; there are: {known}")
    return importlib.import_module(f"{_module(name)}.runs")


def _module(paper: str) -> str:
    return f"{papers.__name__}.{paper}"
