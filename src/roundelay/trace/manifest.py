"""The manifest: how a run was set up, and how many rows its trace must have."""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from roundelay.trace.schema import SCHEMA_VERSION, WORLD


class TraceError(Exception):
    """A trace cannot be read. The message is a sentence for the user and says what to do next."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Written beside every trace; JSON, one document."""

    run: str
    nodes: tuple[str, ...]
    """Names by number: a node's `proc` is its index here."""
    protocol: str = ""
    rules: str = "safe"
    """Which variant of the protocol ran: `safe`, `paper` or `link`."""
    resilience: int | None = None
    """F of the DTP family."""
    mode: str = "static"
    """`static` (an engine alone on a fixed group) or `views`."""
    seed: int | None = None
    revision: str = ""
    """The version of Roundelay that wrote it."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Everything else that decides the run: the scenario, the network, engine options."""
    envelope: Mapping[str, Any] = field(default_factory=dict)
    """Which faults the run allows, for properties that hold only under assumptions about faults."""
    fsync: str = ""
    """The policy of the journals, "always", "interval" or "off"; empty if the run keeps no
    replicated log."""
    bound_ns: int | None = None
    """How long after the last fault everything that must happen must have happened, in
    nanoseconds."""
    rows: Mapping[str, int] | None = None
    """The number of rows of each writer, as {"proc.inc": count}. Without it nobody can tell whether
    rows are missing at the end."""
    ended: Mapping[str, str] = field(default_factory=dict)
    """By writer, as {"proc.inc": reason}: the writers whose rows end before their life did, and
    why. The reason completes "the trace of node b ends early, ..."."""
    machine: str = ""
    """Names one boot of the machine that wrote this file. The times of two files with the same name
    are of one clock. Empty if it is not known."""
    machines: Mapping[str, str] = field(default_factory=dict)
    """The boot by writer, if files of several lives were put together."""
    sha256: str = ""
    """The hash of the rows in canonical form: see `writer.canonical`."""
    pieces: int = 0
    """How many whole files a trace in pieces has so far, see `trace.pieces`; 0 if it is one file.
    The field `sha256` is then empty."""
    schema: int = SCHEMA_VERSION

    def name(self, proc: int) -> str:
        """The node's name, for messages to people; also for numbers that no node has."""
        if 0 <= proc < len(self.nodes):
            return self.nodes[proc]
        return "world" if proc == WORLD else f"node number {proc}"

    def clocks(self) -> dict[str, str]:
        """By writer, as "proc.inc", the boot of the machine whose clock its rows have."""
        alone = dict.fromkeys(self.rows or (), self.machine) if self.machine else {}
        return {**alone, **self.machines}

    def cut_short(self) -> list[str]:
        """The writers whose rows end early; a sentence for the user about each."""
        return [
            f"the trace of node {self.name(int(writer.partition('.')[0]))} ends early, {reason}"
            for writer, reason in sorted(self.ended.items())
        ]

    def joined(self, other: "Manifest") -> "Manifest":
        """The manifest of two files of one run."""
        rows = None
        if self.rows is not None and other.rows is not None:
            rows = dict(Counter(self.rows) + Counter(other.rows))
        return dataclasses.replace(
            self,
            rows=rows,
            ended={**self.ended, **other.ended},
            machine="",
            machines={**self.clocks(), **other.clocks()},
            sha256="",
            pieces=0,
        )

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as e:
            raise TraceError(
                f"the manifest is not JSON ({e}); restore it, or move it away to read the rows "
                "without it"
            ) from None
        known = {f.name for f in dataclasses.fields(cls)}
        if not isinstance(fields, dict) or not {"run", "nodes", "schema"} <= fields.keys():
            raise TraceError(
                "the manifest lacks run, nodes or schema; restore the one that was written with "
                "the trace"
            )
        if type(fields["schema"]) is not int or fields["schema"] < 1:
            raise TraceError("the manifest has no number for its schema; restore the original")
        check_schema_version(fields["schema"])
        if unknown := sorted(fields.keys() - known):
            raise TraceError(
                f"the manifest has fields this version does not know ({', '.join(unknown)}); "
                "update roundelay"
            )
        if wrong := sorted(n for n, v in fields.items() if not _VALID.get(n, _text)(v)):
            raise TraceError(
                f"the manifest has a value of the wrong kind in {', '.join(wrong)}; restore the "
                "original"
            )
        fields["nodes"] = tuple(fields["nodes"])
        return cls(**fields)


def check_schema_version(version: int) -> None:
    """Raise TraceError if a trace of this schema would be misread."""
    if version > SCHEMA_VERSION:
        raise TraceError(
            f"the trace has schema {version}, this version reads up to {SCHEMA_VERSION}; "
            "update roundelay"
        )


def _text(value: object) -> bool:
    return isinstance(value, str)


def _number(value: object) -> bool:
    return value is None or type(value) is int


def _object(value: object) -> bool:
    return isinstance(value, dict)


def _names(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return False
    return len(set(value)) == len(value)


def _by_writer(value: object) -> bool:
    return isinstance(value, dict) and all(
        re.fullmatch(r"-?[0-9]+\.[0-9]+", writer) for writer in value
    )


def _counts(value: object) -> bool:
    return value is None or (
        isinstance(value, dict)
        and _by_writer(value)
        and all(type(count) is int and count >= 0 for count in value.values())
    )


def _words(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _by_writer(value)
        and all(isinstance(v, str) for v in value.values())
    )


_VALID: Mapping[str, Callable[[object], bool]] = {
    "nodes": _names,
    "resilience": _number,
    "mode": lambda value: value in ("static", "views"),
    "seed": _number,
    "config": _object,
    "envelope": _object,
    "bound_ns": _number,
    "rows": _counts,
    "ended": _words,
    "machines": _words,
    "pieces": lambda value: type(value) is int and value >= 0,
    "schema": _number,
}
"""Checks the value of a field that is not a text."""
