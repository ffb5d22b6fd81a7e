"""The checker: which of its promises a run kept, and a witness for each that it broke.

    report = check(rows, manifest)
    report.ok, report.violated

A property is a function from the indexed trace to a finding (`property`), registered by the module
that declares it; a profile says which of them a protocol is held to (`profiles`). Only `ok` is a
pass. A trace that may lack rows shows nothing, a property that crashes shows nothing, and a
protocol outside its assumptions promised nothing: each has a verdict of its own.
"""

from roundelay.check import (
    causal,
    delivery,
    envelope,
    keys,
    liveness,
    membership,
    order,
    primacy,
    stability,
    tokens,
    wellformed,
)
from roundelay.check.checker import Report, check, profile_of
from roundelay.check.log import agreement, evidence, objects, openings
from roundelay.check.log import liveness as log_liveness
from roundelay.check.model import Model, read_model
from roundelay.check.profiles import Profile, Standing, profile
from roundelay.check.property import PROPERTIES, Scope
from roundelay.check.verdict import Validity, Verdict

__all__ = [
    "PROPERTIES",
    "Model",
    "Profile",
    "Report",
    "Scope",
    "Standing",
    "Validity",
    "Verdict",
    "check",
    "profile",
    "profile_of",
    "read_model",
]

_DECLARING = (
    wellformed,
    membership,
    primacy,
    delivery,
    order,
    causal,
    keys,
    stability,
    tokens,
    liveness,
    envelope,
    agreement,
    openings,
    evidence,
    log_liveness,
    objects,
)
"""Modules that fill PROPERTIES as they are imported."""
