"""The manifest: what a run was, and how many rows its trace must have."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from roundelay.trace.schema import SCHEMA_VERSION


class TraceError(Exception):
    """A trace that cannot be read. Its message is one sentence for the user, and says what next."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Written beside every trace; JSON, one document."""

    run: str
    nodes: tuple[str, ...]
    """Names by number: a node's `proc` is its index here."""
    protocol: str = ""
    rules: str = "safe"
    """`safe`, `paper` or `link`: which reading of the paper ran."""
    resilience: int | None = None
    """F of the DTP family."""
    mode: str = "static"
    """`static` (an engine alone on a fixed group) or `views`."""
    seed: int | None = None
    revision: str = ""
    """Version of Roundelay that wrote it."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Everything else that decides the run: the scenario, the network, engine options."""
    envelope: Mapping[str, Any] = field(default_factory=dict)
    """What faults the run allowed itself, for properties that hold under assumptions only."""
    bound_ns: int | None = None
    """How long after the faults stopped everything must have happened that must happen."""
    rows: Mapping[str, int] | None = None
    """Rows per writer, as {"proc.inc": count}; the only way to notice that a trace was cut."""
    sha256: str = ""
    """Over the rows in canonical form: see `writer.canonical`."""
    schema: int = SCHEMA_VERSION

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=2, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Manifest":
        try:
            fields = json.loads(text)
        except ValueError as e:
            raise TraceError(
                f"the manifest is not JSON ({e}); the trace was cut short or is not one of ours"
            ) from None
        known = {f.name for f in dataclasses.fields(cls)}
        if not isinstance(fields, dict) or not {"run", "nodes", "schema"} <= fields.keys():
            raise TraceError("the manifest lacks run, nodes or schema; it is not one of ours")
        if not isinstance(fields["schema"], int) or fields["schema"] > SCHEMA_VERSION:
            raise TraceError(
                f"the trace has schema {fields['schema']}, this version reads up to "
                f"{SCHEMA_VERSION}; update roundelay"
            )
        if unknown := sorted(fields.keys() - known):
            raise TraceError(f"the manifest has unknown fields: {', '.join(unknown)}")
        fields["nodes"] = tuple(fields["nodes"])
        return cls(**fields)
