"""A case of an audit as a scenario, which `sim run` plays and `draw` draws."""

from textwrap import fill

from roundelay.experiments.audit.cases import ASSUMPTIONS, Case
from roundelay.experiments.audit.driver import names
from roundelay.experiments.audit.play import REQUESTS, play
from roundelay.sim.runner import ScenarioRunner
from roundelay.sim.scenario import rewrite


def story(case: Case, assumption: str, rules: str, k: int) -> str:
    """The scenario, up to the turn in which members first disagree, with what it prints."""
    commands = play(case, rules, k, until_divergence=True).commands
    first, *others = nodes = names(case.size)
    lines = [
        *_comment(case, assumption, rules, k),
        f"engine fc static rules={rules} k={k} batch_packets=1",
        "show suspects",
        f"nodes {' '.join(nodes)}",
        f"submit {first} r{first}",
        *(f"submit {node} r{node} times={REQUESTS}" for node in others),
        *(f"deliver all from={node}" for node in others),
        f"deliver all from={first} count={case.size - 1}",
        "----",
        "",
        *commands,
        "log",
        "check",
        "----",
    ]
    return rewrite("\n".join(lines) + "\n", ScenarioRunner().play)


def _comment(case: Case, assumption: str, rules: str, k: int) -> list[str]:
    text = f"Assumption {assumption} ({ASSUMPTIONS[assumption]}), rules {rules}, k={k}: "
    text += " and ".join(f"p{place + 1}" for place in case.failing)
    text += " crash" + "es" * (len(case.failing) == 1) if case.crash else " may be late"
    text += ". " + " ".join(_told(case))
    return fill(text, 98, initial_indent="# ", subsequent_indent="# ").splitlines()


def _told(case: Case) -> list[str]:
    said = [f"p{place + 1} has not decided then." for place in case.silent]
    for word, copies in (("lost", case.lost), ("late", case.late)):
        for maker in sorted({maker for maker, _ in copies} - set(case.silent)):
            who = ", ".join(f"p{to + 1}" for m, to in sorted(copies) if m == maker)
            said.append(f"p{maker + 1}'s decision is {word} on its way to {who}.")
    return [*said, "Members then confirm different decisions for one number."]
