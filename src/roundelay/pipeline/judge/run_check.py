"""One run while it is checked: what is proved of it, what is still open, and what follows."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundelay.check import PROPERTIES, Profile, Report, Validity, Verdict
from roundelay.check.checker import conclude
from roundelay.pipeline.judge import layer_below
from roundelay.pipeline.judge.plan import CheckPlan, skipped_layers
from roundelay.pipeline.judge.traits import Traits
from roundelay.pipeline.proofs.accused import Message
from roundelay.pipeline.proofs.causality import Implied
from roundelay.pipeline.proofs.stitch import RINGS, RunProofs
from roundelay.pipeline.properties import METHODS, Proof, Slice, judged_on
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import LOWER_LAYER

Judged = dict[tuple[str, str], Verdict]
"""By run and property: the verdicts of slices, put together, and of joins."""

NEVER = "its premise never occurred"
"""The reason of a vacuous verdict."""


@dataclass(frozen=True, slots=True)
class RunReport:
    """The verdicts on one run."""

    run: str
    manifest: Manifest | None
    problems: list[str]
    report: Report


@dataclass(frozen=True, slots=True)
class RunCheck:
    """One run while it is checked."""

    run: str
    manifest: Manifest | None
    profile: Profile
    problems: list[str]
    proofs: RunProofs
    traits: Traits | None
    """None if the run has no rows."""
    whole_rows: int

    @property
    def total(self) -> bool:
        return not any(log.unplaced for log in self.proofs.logs)

    @property
    def message_rows(self) -> int:
        return sum(log.message_rows for log in self.proofs.logs)

    @property
    def proved(self) -> dict[str, int]:
        """What the facts prove: by property, how often its premise occurred."""
        if not self._by_facts:
            return {}
        return {
            name: instances
            for name, instances in self.proofs.proved.items()
            if name == RINGS or METHODS[name].proof in (Proof.FACTS, Proof.IMPLIED)
        }

    @property
    def _by_facts(self) -> bool:
        """Whether the facts are about the rows that the run is judged by, which are those of all
        layers but the one below the ordering; else the facts prove nothing."""
        if self.traits is None:
            return False
        skipped = skipped_layers(self.traits.layers, self.profile.layer)
        return skipped.intersection(self.traits.layers) == {LOWER_LAYER} & {*self.traits.layers}

    @property
    def _large(self) -> bool:
        return self.message_rows > self.whole_rows

    def held_to(self, name: str) -> bool:
        return any(entry.property == name for entry in self.profile.entries)

    def asks(self, name: str) -> bool:
        """Whether a property is asked for that is too much for one piece here."""
        return self.held_to(name) and self._large and self._by_facts

    @property
    def _implied(self) -> list[Implied]:
        """What may be concluded without judging it. A run that fits into one piece is judged."""
        return self.proofs.implied if self._large and self._by_facts else []

    def plan(self, judged: Judged, accused: Sequence[Message]) -> CheckPlan | None:
        """What is still open, if anything; joins have judged some, and accuse some messages."""
        names = [e.property for e in self.profile.entries]
        names += [name for name in self.profile.envelope if name not in names]
        needs = [need for one in self._implied for need in one.needs if one.property in names]
        names += [name for name in dict.fromkeys(needs) if name not in names and name in PROPERTIES]
        unjudged = judged_on(Slice.NONE)
        names = [name for name in names if name not in self.proved and name not in unjudged]
        names = [name for name in names if (self.run, name) not in judged]
        if self._in_parts and "E5" in names:
            names = [*(name for name in names if name != "E5"), *layer_below.PARTS]
        if self.traits is None or not names:
            return None
        return CheckPlan(
            self.run,
            self.manifest,
            tuple(names),
            self.profile.layer,
            self.message_rows,
            self.traits.token_rows,
            1 + max((log.last_place for log in self.proofs.logs), default=0),
            self.total,
            self.traits.layers,
            self._processes,
            self.traits.claims,
            self.traits.rings,
            self.traits.frames,
            self.whole_rows,
            tuple(self.proofs.suspects),
            tuple(dict.fromkeys([*accused, *self.proofs.accused])),
            tuple(self.proofs.gap),
        )

    @property
    def _in_parts(self) -> bool:
        """Whether E5 is put together from verdicts on its parts."""
        return self._large and self.traits is not None and LOWER_LAYER in self.traits.layers

    @property
    def _processes(self) -> tuple[int, ...]:
        assert self.traits is not None
        named = range(len(self.manifest.nodes)) if self.manifest is not None else ()
        return tuple(sorted({*named, *self.traits.processes}))

    def decides(self, verdict: Verdict) -> bool:
        """Whether a verdict from slices is one on the run: suspects can convict, and not acquit."""
        method = METHODS.get(verdict.property)
        suspects = self._large and method is not None and (method.suspects or method.gaps)
        return not suspects or verdict.validity is Validity.VIOLATED

    def _concluded(self, judged: Judged) -> dict[str, int]:
        """What is proved, and what follows from that and from what was judged."""
        found = dict(self.proved)
        for name, instances, needs in self._implied:
            if all(need in found or _fine(judged.get((self.run, need))) for need in needs):
                found.setdefault(name, instances)
        return found

    def report(self, judged: Judged) -> RunReport:
        proved = self._concluded(judged)

        def verdict(name: str) -> Verdict:
            if name in proved:
                return holds(name, proved[name])
            found = judged.get((self.run, name))
            if name == "E5" and self._in_parts:
                parts = {p: v for (run, p), v in judged.items() if run == self.run}
                found = layer_below.put_together(parts, self.proofs.below)
            if found is not None:
                return found
            if self.traits is None:
                return Verdict(name, Validity.VACUOUS, reason=NEVER)
            reason = (
                f"the run has {self.message_rows:,} rows about messages, and {name} can be judged "
                f"in one piece only, up to {self.whole_rows:,}"
            )
            return Verdict(name, Validity.INCONCLUSIVE, reason=reason)

        report = conclude(
            self.profile, self.manifest, verdict, total=self.total, problems=self.problems
        )
        return RunReport(self.run, self.manifest, self.problems, report)


def holds(name: str, instances: int) -> Verdict:
    """The verdict on a property that was proved."""
    if not instances:
        return Verdict(name, Validity.VACUOUS, reason=NEVER)
    return Verdict(name, Validity.OK, instances)


def _fine(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.validity in (Validity.OK, Validity.VACUOUS)
