"""Trials of small traces, for the tests beside this file."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from roundelay.check import Validity, Verdict, check
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

CORPUS = Path(__file__).with_name("corpus.txt")


@dataclass(frozen=True, slots=True)
class Case:
    """A line of the corpus."""

    head: tuple[str, ...]
    """The broken property and its parameter, or `clean` and the words of a profile."""
    text: str

    @property
    def clean(self) -> bool:
        return self.head[0] == "clean"

    @property
    def resilience(self) -> int | None:
        return next((int(w.removeprefix("F=")) for w in self.head if w.startswith("F=")), None)

    @property
    def envelope(self) -> dict[str, int]:
        return {w[0]: int(w[2:]) for w in self.head if w.startswith("k=")}

    @property
    def exceptions(self) -> tuple[str, ...]:
        return self.head[self.head.index("but") + 1 :] if "but" in self.head else ()

    def trace(self) -> tuple[Manifest, list[Row]]:
        manifest, rows = mini.parse(self.text)
        return replace(manifest, resilience=self.resilience, envelope=self.envelope), rows

    def __str__(self) -> str:
        return "-".join(self.head)


def corpus() -> Iterator[Case]:
    for line in CORPUS.read_text().splitlines():
        if line and not line.startswith("#"):
            head, _, text = line.partition(": ")
            yield Case(tuple(head.split()), text)


def judge(name: str, text: str, resilience: int | None = None) -> Verdict:
    """One property's verdict on a trace in the mini-language."""
    manifest, rows = mini.parse(text)
    manifest = replace(manifest, resilience=resilience)
    return check(rows, manifest, profile=[name]).verdicts[0]


def judge_rows(name: str, manifest: Manifest | None, rows: list[Row]) -> Verdict:
    return check(rows, manifest, profile=[name]).verdicts[0]


def recounted(manifest: Manifest, rows: list[Row]) -> Manifest:
    """The manifest with the number of rows that there are."""
    counts: dict[str, int] = {}
    for row in rows:
        writer = f"{row.proc}.{row.inc}"
        counts[writer] = counts.get(writer, 0) + 1
    return replace(manifest, rows=counts)


def without_gseq(rows: list[Row]) -> list[Row]:
    """As real nodes would have written them: no total order."""
    return [row._replace(gseq=None) for row in rows]


def expect(verdict: Verdict, validity: Validity) -> None:
    assert verdict.validity is validity, verdict
