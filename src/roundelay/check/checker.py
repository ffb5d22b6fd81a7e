"""Checking a trace: which properties, in which order, and when a verdict may count."""

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from roundelay.check.model import read_model
from roundelay.check.profiles import Profile, Promise, Standing, place, profile
from roundelay.check.property import PROPERTIES
from roundelay.check.verdict import Validity, Verdict
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

NO_MANIFEST = "no manifest: lost rows at the end would not be noticed"
NO_TOTAL_ORDER = "not asked of a trace without a total order of events"
NO_COUNTS = "the manifest does not count rows: lost rows at the end would not be noticed"

_SEVERITY = (
    Validity.VIOLATED,
    Validity.OUTSIDE,
    Validity.INCONCLUSIVE,
    Validity.VACUOUS,
    Validity.OK,
)
"""Worst first."""


Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do."""


@dataclass(frozen=True, slots=True)
class Report:
    """The verdicts on one trace, in the order of the profile."""

    profile: Profile
    verdicts: tuple[Verdict, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the run. Vacuous verdicts do not; nor do optional ones."""
        fine = (Validity.OK, Validity.VACUOUS)
        return all(
            verdict.validity in fine or entry.standing is Standing.OPTIONAL
            for verdict, entry in zip(self.verdicts, self.profile.entries, strict=True)
        )

    @property
    def violated(self) -> tuple[Verdict, ...]:
        """The verdicts with a witness, optional properties included."""
        return tuple(v for v in self.verdicts if v.validity is Validity.VIOLATED)

    @property
    def worst(self) -> Validity:
        """The gravest verdict on a property that is not optional; ok if there is none at all."""
        found = {
            verdict.validity
            for verdict, entry in zip(self.verdicts, self.profile.entries, strict=True)
            if entry.standing is not Standing.OPTIONAL
        }
        return next((validity for validity in _SEVERITY if validity in found), Validity.OK)

    def __getitem__(self, name: str) -> Verdict:
        """The verdict on one property."""
        for verdict in self.verdicts:
            if verdict.property == name:
                return verdict
        raise KeyError(name)


def check(
    rows: Iterable[Row],
    manifest: Manifest | None = None,
    *,
    profile: Profile | Sequence[str] | None = None,
    problems: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """Check a trace.

    `profile` is a profile, a list of names of properties, or nothing, if the manifest names the
    protocol. `problems` are what the reader of the trace said about it: unless it is only that
    nobody counted the rows, nothing can be concluded. `progress` is told how many properties of
    how many are done.

    ValueError, for the user, if a property or protocol has no such name.
    """
    held = resolve(profile, manifest)
    with no_collection():
        model = read_model(rows, manifest, layer=held.layer)

        def verdict_of(name: str) -> Verdict:
            return PROPERTIES[name].verdict_on(model)

        return conclude(
            held, manifest, verdict_of, total=model.total, problems=problems, progress=progress
        )


def conclude(
    held: Profile,
    manifest: Manifest | None,
    verdict_of: Callable[[str], Verdict],
    *,
    total: bool,
    problems: Sequence[str] = (),
    progress: Progress | None = None,
) -> Report:
    """What follows from the verdicts on single properties, whoever made them.

    `verdict_of` is asked for one property after the other, for none whose verdict would not count.
    `total` says whether the trace has a total order of its events.
    """
    evaluation = _Evaluation(held, manifest, verdict_of, total, progress)
    return Report(held, tuple(evaluation.verdicts(_serious(problems, manifest))))


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector away: an indexed trace is millions of objects without a cycle,
    and to look through them again and again takes longer than to index them."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def profile_of(manifest: Manifest | None) -> Profile:
    """The profile of the run that a manifest describes; ValueError if it names no protocol."""
    if manifest is None or not manifest.protocol:
        raise ValueError("the trace does not say which protocol wrote it; name a profile")
    return profile(
        manifest.protocol,
        manifest.rules,
        manifest.resilience,
        manifest.mode,
        len(manifest.nodes),
        log=bool(manifest.fsync),
    )


def resolve(given: Profile | Sequence[str] | None, manifest: Manifest | None) -> Profile:
    """The profile that is meant; ValueError, for the user, if there is no such."""
    if given is None:
        given = profile_of(manifest)
    elif not isinstance(given, Profile):
        entries = tuple(Promise(name, Standing.PROMISED) for name in dict.fromkeys(given))
        given = Profile("the properties named", entries)
    if unknown := [e.property for e in given.entries if e.property not in PROPERTIES]:
        names = ", ".join(sorted(PROPERTIES, key=place))
        raise ValueError(f"there is no property {unknown[0]!r}; choose from {names}")
    return given


_UNCOUNTED = ("there is no manifest", "the manifest does not count")
"""How the reader begins when rows may be missing at the end, and only there."""


def _serious(problems: Sequence[str], manifest: Manifest | None) -> str:
    """The first problem after which nothing can be concluded."""
    counted = manifest is not None and manifest.rows is not None
    for problem in problems:
        if counted or not problem.startswith(_UNCOUNTED):
            return problem
    return ""


class _Evaluation:
    """Runs the properties of a profile in the order in which they depend on each other."""

    def __init__(
        self,
        held: Profile,
        manifest: Manifest | None,
        verdict_of: Callable[[str], Verdict],
        total: bool,
        progress: Progress | None,
    ) -> None:
        self._held = held
        self._manifest = manifest
        self._verdict_of = verdict_of
        self._total = total
        self._names = [entry.property for entry in held.entries]
        self._found: dict[str, Verdict] = {}
        self._progress = progress

    def verdicts(self, problem: str) -> list[Verdict]:
        for name in self._names:
            if name.startswith("T"):
                self._run(name)
        self._excuse(problem)
        if reason := problem or self._malformed():
            for name in self._names:
                self._found.setdefault(name, _inconclusive(name, reason))
        else:
            for name in self._held.envelope:
                self._run(name)
            self._check_promises()
        return [_uncounted(self._manifest, self._found[name]) for name in self._names]

    def _excuse(self, problem: str) -> None:
        """Where rows are missing, a message that nobody sent may be one whose sending is lost; and
        if lives of a node cannot be put in order, nor can what it sent and received. Whatever else
        is not well-formed in a trace that ends early may be so for what is missing."""
        lost = problem or self._reason("T1", Validity.VIOLATED)
        tangled = self._reason("T2", Validity.INCONCLUSIVE)
        for name, reason in (("T3", tangled), ("T4", lost or tangled)):
            if reason and self._reason(name, Validity.VIOLATED):
                self._found[name] = _inconclusive(name, reason)
        if self._manifest is not None and self._manifest.ended:
            cut = self._manifest.cut_short()[0]
            for name in self._found:
                if reason := self._reason(name, Validity.VIOLATED):
                    self._found[name] = _inconclusive(name, f"{cut}; maybe that is why {reason}")

    def _reason(self, name: str, validity: Validity) -> str:
        """The reason of a verdict, if there is one and it is this."""
        verdict = self._found.get(name)
        return verdict.reason if verdict is not None and verdict.validity is validity else ""

    def _malformed(self) -> str:
        for verdict in self._found.values():
            if verdict.validity in (Validity.VIOLATED, Validity.INCONCLUSIVE):
                return f"the trace is not well-formed: {verdict.reason}"
        return ""

    def _check_promises(self) -> None:
        """What holds only inside the envelope. If nobody knows whether the run stayed inside, a
        violation is none; what holds, holds."""
        assumed = [self._found[name] for name in self._held.envelope]
        broken = next((v for v in assumed if v.validity is Validity.VIOLATED), None)
        unsure = any(v.validity is Validity.INCONCLUSIVE for v in assumed)
        for name in self._names:
            if name in self._found:
                continue
            if broken is not None:
                reason = f"{broken.property} does not hold: {broken.reason}"
                self._found[name] = Verdict(name, Validity.OUTSIDE, reason=reason)
                continue
            if name in self._held.simulated and not self._total:
                self._found[name] = Verdict(name, Validity.VACUOUS, reason=NO_TOTAL_ORDER)
                continue
            verdict = self._run(name)
            if verdict.validity is Validity.VIOLATED and unsure:
                reason = f"it may be outside its assumptions, but {verdict.reason}"
                self._found[name] = _inconclusive(name, reason)

    def _run(self, name: str) -> Verdict:
        try:
            verdict = self._verdict_of(name)
        except Exception as e:  # A check that fails has shown nothing, whatever the failure.
            verdict = _inconclusive(name, f"the check itself failed: {type(e).__name__}: {e}")
        self._found[name] = verdict
        if self._progress is not None:
            self._progress(len(self._found), len(self._names))
        return verdict


def _inconclusive(name: str, reason: str) -> Verdict:
    return Verdict(name, Validity.INCONCLUSIVE, reason=reason)


def _uncounted(manifest: Manifest | None, verdict: Verdict) -> Verdict:
    """Nothing is fine in a trace whose end may be missing."""
    if verdict.validity is not Validity.OK:
        return verdict
    if manifest is None:
        return replace(verdict, validity=Validity.INCONCLUSIVE, reason=NO_MANIFEST)
    if manifest.rows is None:
        return replace(verdict, validity=Validity.INCONCLUSIVE, reason=NO_COUNTS)
    return verdict
