"""How a breach is told: one sentence for each way in which a property can break.

The batch checker and the online checker find breaches in different ways and tell of them in the
same words. Arguments are names that `names` made: nodes, messages, views, keys. Where the batch
checker knows what came later, its sentence goes on.
"""

SOMEBODY = "somebody"
"""A node whose row the online checker does not remember any more."""


# T


def row_missing(log: str, row: int, expected: int) -> str:
    """`log` is a node in one incarnation; in the place of row `expected` there is `row`."""
    what = f"repeats row {row}" if row < expected else f"lacks row {expected}"
    return f"the log of {log} {what}"


def log_of(who: str, incarnation: int) -> str:
    return f"{who} in incarnation {incarnation}"


def never_crashed(who: str) -> str:
    return f"{who} recovers though it never crashed"


def same_life(who: str, incarnation: int) -> str:
    return f"{who} recovers as incarnation {incarnation}, which it was before"


def row_while_down(who: str, kind: str) -> str:
    return f"{who} has a row `{kind}` after it crashed"


def life_changes(who: str, before: int, after: int) -> str:
    return f"{who} changes from incarnation {before} to {after} without a recovery"


def sent_by_two(who: str, what: str, other: str) -> str:
    return f"{who} sends {what}, which {other} has sent"


def sent_twice(who: str, what: str) -> str:
    return f"{who} sends {what} twice without withdrawing it in between"


def sent_twice_in(who: str, what: str, view: str) -> str:
    return f"{who} sends {what} twice in {view}"


def unsent(who: str, verb: str, what: str, *, later: bool | None) -> str:
    """`verb` is receives or delivers. `later` says whether it is sent later; None is for a checker
    that cannot know that yet."""
    if later is None:
        return f"{who} {verb} {what}, which nobody has sent so far"
    return f"{who} {verb} {what}{' before it was sent' if later else ', which nobody sent'}"


# M


def not_in_view(who: str, view: str) -> str:
    return f"{who} installs {view} without being in it"


def view_goes_back(who: str, view: str, earlier: str) -> str:
    return f"{who} installs {view} after {earlier}"


def two_views(first_who: str, who: str, first: str, view: str) -> str:
    return f"{first_who} and {who} install two views under one identifier: {first} and {view}"


def past_a_primary(view: str, parent: str, first: str) -> str:
    return (
        f"{view} goes back to {parent} and not to {first}, which a majority of its voters "
        "installed in between"
    )


def two_primaries(first: str, second: str) -> str:
    return f"{first} and {second} are primary at the same time, each for a majority of its voters"


# D


def delivers(who: str, what: str) -> str:
    return f"{who} delivers {what}"


def delivered_twice(who: str, what: str, *, lives: bool) -> str:
    """`lives` says whether it did so in two incarnations."""
    return f"{who} delivers {what} twice{', in two incarnations' if lives else ''}"


def two_places(first_who: str, what: str, first: str, who: str, view: str) -> str:
    return f"{first_who} delivers {what} in {first}, {who} in {view}"


def not_addressed(who: str, what: str, destinations: str) -> str:
    return f"{who} delivers {what}, which is for {destinations} alone"


def other_bytes(who: str, what: str, sender: str) -> str:
    return f"{who} delivers {what} with other bytes than {sender} sent"


# O


def later_first(who: str, later: str, earlier: str, sender: str) -> str:
    return f"{who} delivers {later} before {earlier}, which {sender} sent earlier"


def delivers_at(who: str, what: str, key: str) -> str:
    return f"{who} delivers {what} at {key}"


def two_keys(first: str, second: str, first_ring: str, second_ring: str) -> str:
    """Two `delivers_at`; the views of the keys are told only if they differ."""
    if first_ring == second_ring:
        return f"{first}, {second}"
    return f"{first}, {second}, of view {first_ring} there and {second_ring} here"


def one_key_for_two(first: str, second: str) -> str:
    return f"{first}, {second} as well"


def key_goes_back(delivery: str, before: str, key: str) -> str:
    return f"{delivery} after {before} at {key}"


def in_order(who: str, verb: str, first: str, then: str) -> str:
    """A step of a circle."""
    return f"{who} {verb} {first} before {then}"


def two_at_one_index(
    index: int, view: str, first: str, first_who: str, second: str, who: str
) -> str:
    """`index` counts from 1; `view` is empty in a static group."""
    where = f" in {view}" if view else ""
    return f"number {index}{where} is {first} at {first_who} and {second} at {who}"


# S


def claims_received(who: str, what: str) -> str:
    return f"{who} claims that all have received {what}"


def claims_delivered(who: str, what: str) -> str:
    return f"{who} claims that all have delivered {what}"


def claims_level_1(who: str, what: str) -> str:
    return f"{who} claims that all have claimed {what}"


def delivers_on_level_1(who: str, what: str) -> str:
    return f"{who} delivers {what}, which all must have received"


def delivers_safe(who: str, what: str) -> str:
    return f"{who} delivers the safe {what}, which all must have received"


def too_few(who: str, what: str, having: str, resilience: int, needed: int) -> str:
    return f"{who} delivers {what} when only {having} had it; F = {resilience} demands {needed}"


# K


def assigns(who: str, key: str, what: str) -> str:
    return f"{who} assigns {key} to {what}"


def two_holders(who: str, holder: str) -> str:
    return f"{who} acquires the token while {holder} holds it"
