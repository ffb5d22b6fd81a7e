"""The repository itself: what it promises to hold true of every file."""

import dis
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

import roundelay
from roundelay import cli
from roundelay.cli import audit, bench, journal, key, kv, main, sim

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
COMMAND_MODULES = {*cli.COMMANDS, *audit.COMMANDS, *bench.COMMANDS, *journal.COMMANDS}
COMMAND_MODULES |= {*key.COMMANDS, *kv.COMMANDS, *sim.COMMANDS}
SCENARIOS = sorted([*(ROOT / "tests").rglob("*.txt"), *(ROOT / "src").rglob("*.txt")])
SCENARIOS = [path for path in SCENARIOS if "scenarios" in path.parts]


def compiled(path: Path) -> CodeType:
    return compile(path.read_text(), path, "exec")


def test_every_exported_name_is_loaded_on_first_use():
    for name in roundelay.__all__:
        assert hasattr(roundelay, name)


def test_the_version_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == roundelay.__version__


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_says_what_it_is_for(path):
    code = compiled(path)
    assert "__doc__" in code.co_names, "no module docstring"
    docstring = code.co_consts[0]
    assert len(docstring) > 10


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.name)
def test_every_scenario_opens_with_its_story(path):
    assert path.read_text().startswith("# ")


def test_no_file_is_past_seven_hundred_lines():
    for path in SOURCES:
        assert len(path.read_text().splitlines()) <= 700, path.name


def test_no_module_is_dead():
    """Every module is imported by another, is a command, an engine or part of a paper, or is run by
    its name."""
    imported = {name for path in SOURCES for name in _imports(compiled(path))}
    text = "\n".join(path.read_text() for path in SOURCES)
    for path in SOURCES:
        relative = path.relative_to(ROOT / "src").with_suffix("")
        name = ".".join(part for part in relative.parts if part != "__init__")
        command = "cli" in relative.parts and relative.name in COMMAND_MODULES
        paper = relative.parent.parent.name == "papers"  # Found by its folder's name.
        known = name in imported or command or relative.name in ("__init__", "__main__")
        engine = relative.parts[1] == "protocols" and "DESCRIPTION" in path.read_text()
        known = known or paper or engine
        assert known or f'"{name}"' in text, f"nothing imports {name}"


def _imports(code: CodeType) -> Iterator[str]:
    """Modules, and what is taken from them; inside functions too."""
    module = ""
    for step in dis.get_instructions(code):
        if step.opname == "IMPORT_NAME":
            module = step.argval
            yield module
        elif step.opname == "IMPORT_FROM":
            yield f"{module}.{step.argval}"
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant)


@pytest.mark.parametrize(
    "words",
    [
        *cli.COMMANDS,
        *(f"bench {command}" for command in bench.COMMANDS),
        *(f"sim {command}" for command in sim.COMMANDS),
    ],
)
def test_every_command_has_help(words, capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*words.split(), "--help"])
    assert f"usage: roundelay {words}" in capsys.readouterr().out


def test_links_in_documents_lead_somewhere():
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text()):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_constraints_are_names_and_versions_only():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9_.\-]+==[A-Za-z0-9_.]+", line), line
