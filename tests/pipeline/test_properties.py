"""Every property says how it is decided on Spark, and the page has the same table."""

import re
from itertools import groupby
from pathlib import Path

import pytest

from roundelay.check import PROPERTIES
from roundelay.pipeline.proofs.stitch import ABOUT_DELIVERIES
from roundelay.pipeline.properties import METHODS, Method, Proof, Slice, judged_on

ROOT = Path(__file__).parents[2]
PIPELINE = ROOT / "src" / "roundelay" / "pipeline"


def test_every_property_of_the_local_checker_is_declared():
    assert METHODS.keys() == PROPERTIES.keys()


@pytest.mark.parametrize("name", METHODS)
def test_a_proof_is_where_the_declaration_says(name):
    """In the text of that module, by the property's name."""
    method = METHODS[name]
    assert (method.proof is Proof.NONE) == (not method.module)
    if method.module:
        assert re.search(rf"\b{name}\b", (PIPELINE / f"{method.module}.py").read_text())


def test_slices_share_the_properties_among_them():
    """Each is counted on one kind of slice; suspects and gaps are besides that, of what is
    judged whole."""
    besides = (Slice.SUSPECTS, Slice.GAPS)
    kinds = [kind for kind in Slice if kind not in besides]
    assert sum(len(judged_on(kind)) for kind in kinds) == len(METHODS)
    assert judged_on(Slice.SUSPECTS) | judged_on(Slice.GAPS) < judged_on(Slice.WHOLE)


def test_what_a_run_without_deliveries_keeps_is_declared_as_proved():
    assert {METHODS[name].proof for name in ABOUT_DELIVERIES} == {Proof.FACTS, Proof.IMPLIED}


def documented(name: str, method: Method) -> tuple[str, str]:
    """Both columns beside the name of a property."""
    slices = [method.slice, method.also] if method.also is not Slice.NONE else [method.slice]
    names = ", ".join(slice_.name.lower() for slice_ in slices)
    if not method.module:
        return names, "-"
    link = f"[{method.module}](../src/roundelay/pipeline/{method.module}.py)"
    return names, f"{method.proof}: {link}"


def test_the_page_has_the_same_table():
    """If this fails: these are the lines that docs/pipeline.md should have."""
    rows = sorted(
        ((documented(name, method), name) for name, method in METHODS.items()),
        key=lambda row: (*row[0],),
    )
    lines = [
        f"| {' '.join(name for _, name in group)} | {columns[0]} | {columns[1]} |"
        for columns, group in groupby(rows, key=lambda row: row[0])
    ]
    page = (ROOT / "docs" / "pipeline.md").read_text()
    table = page.partition("| property | judged on | proved by |\n|---|---|---|\n")[2]
    assert table.partition("\n\n")[0].splitlines() == lines
