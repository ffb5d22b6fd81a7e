"""Plans: TOML files that say which cells to run.

    experiment = "load"            a paper, or load; default load
    seeds = 3                      0, 1 and 2; or a list of them
    claims = "totem"               whose claims the report judges by the results; default none
    traces = false                 whether to keep the trace of every run

    [common]                       parameters of all grids
    size = "500B"

    [[grid]]                       a value, or a list of them, for each parameter: all combinations.
    protocol = ["totem", "dtp"]    Several grids add up; one without lists is a single point
    nodes = [3, 5, 9]

    [grid.quick]                   with --quick, instead of what the grid above says
    nodes = 3

    [quick]                        the same for all grids, and for seeds
    seeds = 1

A cell that comes up twice is run once.
"""

import hashlib
import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from roundelay.experiments.plan_fields import Fields
from roundelay.experiments.registry import Paper, load_experiment, load_paper, paper_names
from roundelay.experiments.toml_lines import Lines

PAPERS = "papers/"
"""Plans of the package are called papers/NAME."""

CELLS_ASK = 10_000
"""More cells than these are run only if somebody said that they are meant."""
CELLS_MAX = 5_000_000
"""More are not run at all: the driver keeps a list of them."""

_KEYS = ("experiment", "seeds", "claims", "traces", "common", "grid", "quick")


class PlanError(ValueError):
    """A plan that makes no sense; the message names the line and says what to write."""


class PlannedRun(NamedTuple):
    """A cell with its seed."""

    cell: Any
    """Of the type `Cell` of the plan's experiment."""
    seed: int


@dataclass(frozen=True)
class SweepPlan:
    """A plan that was read, and makes sense."""

    name: str
    text: str
    quick: bool
    experiment: str
    claims: str
    traces: bool
    grids: tuple[tuple[int, Mapping[str, list[Any]]], ...]
    """The line and, by field, the values of each grid."""
    seeds: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many cells there are at most, not counting what comes up twice only once."""
        return sum(_size(axes, self.seeds) for _, axes in self.grids)

    @property
    def title(self) -> str:
        """Its name but for directories, which mean nothing elsewhere."""
        return self.name if self.name in papers() else Path(self.name).name

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def refuse_too_many(self, *, sure: bool) -> None:
        """PlanError if there are more cells than anybody writes on purpose, unless `sure`."""
        line, axes = max(self.grids, key=lambda grid: _size(grid[1], self.seeds))
        if self.size <= (CELLS_MAX if sure else CELLS_ASK):
            return
        factors = [f"{name} {len(values)}" for name, values in axes.items() if len(values) > 1]
        product = " x ".join([*factors, f"seeds {len(self.seeds)}"])
        way = "split the plan" if sure else "add --yes if all of them are meant"
        raise PlanError(
            f"{self.name} line {line}: {self.size:,} cells ({product} in this grid); shorten a "
            f"list, or {way}"
        )

    def runs(self) -> list[PlannedRun]:
        """Every cell with every seed, each once, in the order of the plan."""
        return list(dict.fromkeys(self._runs()))

    def _runs(self) -> Iterator[PlannedRun]:
        make = load_experiment(self.experiment).Cell
        for line, axes in self.grids:
            for values in itertools.product(*axes.values()):
                cell = _cell(make, dict(zip(axes, values, strict=True)), f"{self.name} line {line}")
                for seed in self.seeds:
                    yield PlannedRun(cell, seed)


def papers() -> list[str]:
    """Names of the plans that come with the package."""
    return [f"{PAPERS}{name}" for name in paper_names()]


def paper_plan(paper: Paper, *, full: bool, seeds: int | None = None) -> SweepPlan:
    """The plan of a paper, or its quick form; with `seeds`, as many seeds as that."""
    plan = parse(paper.plan, f"{PAPERS}{paper.name}", quick=not full)
    return plan if seeds is None else replace(plan, seeds=tuple(range(seeds)))


def read(name: str, *, quick: bool = False) -> SweepPlan:
    """The plan of a file, or one of the package."""
    if name in papers():
        return parse(load_paper(name.removeprefix(PAPERS)).plan, name, quick)
    if name.startswith(PAPERS) and not Path(name).exists():
        raise PlanError(f"there is no plan {name}; there are: {', '.join(papers())}")
    try:
        return parse(Path(name).read_text(), name, quick)
    except (OSError, UnicodeDecodeError) as e:
        why = getattr(e, "strerror", None) or "it is no text"
        raise PlanError(
            f"cannot read the plan {name}: {why}; name a TOML file, or one of: "
            f"{', '.join(papers())}"
        ) from None


def parse(text: str, name: str = "plan", quick: bool = False) -> SweepPlan:
    """The plan that a text describes; `name` is for messages."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as e:
        why, line = _syntax(e, text)
        raise PlanError(f"{name} line {line}: this is not TOML: {why}") from None
    return _Reader(table, text, name, quick).plan()


class _Reader:
    """Reads one plan, and knows where its words stand."""

    def __init__(self, table: Mapping[str, Any], text: str, name: str, quick: bool) -> None:
        self._table = table
        self._text = text
        self._name = name
        self._lines = Lines(text)
        self._quick = self._section("quick") if quick else {}
        self._is_quick = quick

    def plan(self) -> SweepPlan:
        for key in self._table:
            if key not in _KEYS:
                raise self._error(
                    f"{key!r} means nothing here; write one of: {', '.join(_KEYS)}", key
                )
        experiment = self._text_of("experiment", "load")
        try:
            fields = Fields(load_experiment(experiment).Cell)
        except ValueError as e:
            raise self._error(str(e), "experiment") from None
        judged = self._text_of("claims", "")
        if judged and judged not in paper_names():
            known = ", ".join(paper_names())
            raise self._error(f"no claims are known of {judged!r}; write one of: {known}", "claims")
        traces = self._table.get("traces", False)
        if not isinstance(traces, bool):
            raise self._error("traces is true or false", "traces")
        if traces and not hasattr(load_experiment(experiment), "manifest"):
            raise self._error(f"{experiment} keeps no traces; leave this line out", "traces")
        return SweepPlan(
            name=self._name,
            text=self._text,
            quick=self._is_quick,
            experiment=experiment,
            claims=judged,
            traces=traces,
            grids=self._grids(fields),
            seeds=self._seeds(),
        )

    def _grids(self, fields: Fields) -> tuple[tuple[int, Mapping[str, list[Any]]], ...]:
        common = self._axes(fields, "common", 0, self._section("common"))
        grids = self._table.get("grid", [{}] if common else [])
        if not isinstance(grids, list) or not all(isinstance(grid, dict) for grid in grids):
            raise self._error("a grid is a table; write [[grid]] and its parameters below", "grid")
        if not grids:
            raise PlanError(
                f"{self._name} line 1: the plan has no cells; write [[grid]] and parameters below, "
                'like protocol = "totem"'
            )
        shorter = {key: value for key, value in self._quick.items() if key != "seeds"}
        shorter_axes = self._axes(fields, "quick", 0, shorter)
        found = []
        if self._is_quick and not self._quick and not any("quick" in grid for grid in grids):
            raise PlanError(
                f"{self._name} does not say what is quick; write a table [quick], or leave out "
                "--quick"
            )
        for index, grid in enumerate(grids):
            quick = grid.pop("quick", {})
            axes = common | self._axes(fields, "grid", index, grid)
            if self._is_quick:
                axes |= shorter_axes | self._axes(fields, "grid.quick", index, quick)
            found.append((self._lines.find("grid", index), axes))
        return tuple(found)

    def _axes(
        self, fields: Fields, table: str, index: int, given: Mapping[str, Any]
    ) -> dict[str, list[Any]]:
        axes: dict[str, list[Any]] = {}
        for key, value in given.items():
            try:
                name = fields.field(key)
                if name in axes:
                    raise ValueError(f"{name} is given twice; write it once")
                axes[name] = fields.axis(key, value)
            except ValueError as e:
                raise self._error(str(e), key, table, index) from None
        return axes

    def _seeds(self) -> tuple[int, ...]:
        quick = "seeds" in self._quick
        given = self._quick["seeds"] if quick else self._table.get("seeds", 1)
        table = "quick" if quick else ""
        if type(given) is int and given > 0:
            return tuple(range(given))
        if isinstance(given, list) and given and all(type(s) is int and s >= 0 for s in given):
            return tuple(dict.fromkeys(given))
        raise self._error(
            f"seeds = {given!r} runs nothing; write how many, like 3, or a list, like [0, 7]",
            "seeds",
            table,
        )

    def _section(self, key: str) -> Mapping[str, Any]:
        section = self._table.get(key, {})
        if not isinstance(section, dict):
            raise self._error(f"{key} is a table; write [{key}] and its parameters below", key)
        return section

    def _text_of(self, key: str, default: str) -> str:
        given = self._table.get(key, default)
        if not isinstance(given, str):
            raise self._error(f'{key} is a name; write it as {key} = "load"', key)
        return given

    def _error(self, what: str, key: str, table: str = "", index: int = 0) -> PlanError:
        line = self._lines.find(table, index, key)
        if not table:  # A table that is not one is found by its header.
            line = max(line, self._lines.find(key))
        return PlanError(f"{self._name} line {line}: {what}")


def _cell(make: type, fields: Mapping[str, Any], place: str) -> Any:
    try:
        return make(**fields)
    except ValueError as e:
        raise PlanError(f"{place}: {e}") from None
    except TypeError as e:  # What has no default was left out.
        missing = ", ".join(re.findall(r"'(\w+)'", str(e)))
        raise PlanError(f"{place}: this grid does not say {missing}; write that too") from None


def _size(axes: Mapping[str, list[Any]], seeds: tuple[int, ...]) -> int:
    return math.prod(len(values) for values in axes.values()) * len(seeds)


def _syntax(error: tomllib.TOMLDecodeError, text: str) -> tuple[str, int]:
    """What is wrong with a text that is no TOML, and on which line."""
    why, _, place = str(error).partition(" (at ")
    line = re.search(r"line (\d+)", place)
    return why, int(line[1]) if line else len(text.splitlines())
