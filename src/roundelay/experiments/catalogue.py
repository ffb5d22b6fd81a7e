"""Experiments by name, and what comes of them.

An experiment is a module `NAME_runs` of this package with two things in it:

    Cell              a frozen dataclass: one run but for its seed. Units are in the names of its
                      fields. It may have a `cost`, a number that grows with how long it takes
    run(cell, seed)   what comes of it, by name: a pure function of both

so that whoever knows the two words can run it anywhere: here, in other processes, on a cluster.
"""

import importlib
import pkgutil
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from roundelay import experiments

Measures = dict[str, float]

_SUFFIX = "_runs"


@dataclass(frozen=True, slots=True)
class Result:
    """A cell that was run, and what came of it."""

    cell: Any
    """Of the type `Cell` of its experiment."""
    seed: int
    measures: Measures


def names() -> list[str]:
    """Experiments that can be run cell by cell."""
    found = (module.name for module in pkgutil.iter_modules(experiments.__path__))
    return sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX))


def load(name: str) -> ModuleType:
    """The module of an experiment."""
    if name not in names():
        raise ValueError(f"no experiment is called {name!r}; there are: {', '.join(names())}")
    return importlib.import_module(f"{experiments.__name__}.{name}{_SUFFIX}")


def cost(cell: Any) -> float:
    """How long a cell takes, next to others of its experiment."""
    return float(getattr(cell, "cost", 1.0))
