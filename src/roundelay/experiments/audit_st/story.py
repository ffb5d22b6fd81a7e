"""A case of an audit of ST as a scenario, which `sim run` plays and `draw` draws."""

from textwrap import fill

from roundelay.experiments.audit_st.cases import Case
from roundelay.experiments.audit_st.play import happenings, label, nodes, setup
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import rewrite

RUN = "300ms"


def story(case: Case, rules: str) -> str:
    """The scenario under these rules, with what it prints."""
    lines = [
        *_comment(case, rules),
        *setup(case, rules),
        *happenings(case),
        f"run {RUN}",
        "end after=100ms",
        "log",
        "check",
        "----",
    ]
    return rewrite("\n".join(lines) + "\n", ScenarioRunner().play)


def _comment(case: Case, rules: str) -> list[str]:
    names = nodes(case)
    missed = [
        f"{label(number)} at {' and '.join(names[member] for member in sent.lost)}"
        for number, sent in enumerate(case.messages)
        if sent.lost
    ]
    text = (
        f"Case {case.number} of the audit of ST, {case.size} members, {case.loss_percent:g} % "
        f"loss, rules={rules}. Missed by members that it is for: {', '.join(missed)}."
    )
    return fill(text, 98, initial_indent="# ", subsequent_indent="# ").splitlines()
