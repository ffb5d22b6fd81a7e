"""Scenarios that come with Roundelay, by name: `totem/g07_safe_delivered_by_the_dead`.

They are the scenarios of `tests/scenarios`, which a wheel has in the package, and those of
`roundelay demo --simulated`.
"""

from importlib.resources import files
from pathlib import Path

SUFFIX = ".txt"


class NoScenarioError(Exception):
    """No scenario has the name, or several begin with it. The message is a sentence for the
    user."""


def shipped() -> dict[str, Path]:
    """Every scenario, by its name."""
    found: dict[str, Path] = {}
    package = Path(str(files("roundelay.sim") / "scenarios"))
    for home in (package, Path(__file__).parents[3] / "tests" / "scenarios"):
        for path in sorted(home.rglob(f"*{SUFFIX}")):
            found[path.relative_to(home).with_suffix("").as_posix()] = path
    return dict(sorted(found.items()))


def find(name: str) -> Path:
    """The scenario of that name, or the only one whose name begins with it."""
    known = shipped()
    wanted = name.removesuffix(SUFFIX)
    if wanted in known:
        return known[wanted]
    fitting = [other for other in known if wanted and other.startswith(wanted)]
    if len(fitting) == 1:
        return known[fitting[0]]
    if fitting:
        shown = ", ".join(fitting[:6]) + (", ..." if len(fitting) > 6 else "")
        raise NoScenarioError(f"{len(fitting)} scenarios begin with {name!r}: {shown}")
    raise NoScenarioError(f"there is no file and no scenario {name!r}; `sim list` lists those")


def summary(path: Path) -> str:
    """The first paragraph of a scenario's opening comment."""
    lines = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#") or not line.strip("# "):
            break
        lines.append(line.lstrip("# ").rstrip())
    return " ".join(lines)
