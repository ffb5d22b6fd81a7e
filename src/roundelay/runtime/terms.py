"""The terms of a node: the settings that it tells its peers, as texts; and how two nodes differ.

The core compares these texts and keeps nodes with different settings apart. A text has at most 255
bytes; the part that does not fit is replaced by a hash, so that different settings still give
different texts.
"""

import hashlib
from collections.abc import Mapping

from roundelay.core.ids import NodeId, Terms
from roundelay.group.engines import describe, engine_config
from roundelay.runtime.settings import Settings
from roundelay.runtime.tuning import shared_options

TEXT_BYTES_MAX = 255
"""Longest text, in bytes; the wire format allows no more. Too small: settings are replaced by a
hash, and the log cannot name the difference."""
SEPARATOR = "; "
MORE = "and more, #"


def terms_of(settings: Settings, datagram_bytes: int, tuned: Mapping[str, str]) -> Terms:
    """The terms of this node; `tuned` are its engine's options without those of `settings`.
    ValueError if the engine does not know an option, or one makes no sense for these peers."""
    usual = engine_config(settings.engine, tuned)
    given = engine_config(settings.engine, {**tuned, **settings.options})
    describe(settings.engine).check_options(given, sorted(settings.peers))
    told = {
        "engine": settings.engine,
        "datagram_bytes": str(datagram_bytes),
        "timeout_s": f"{settings.timeout_s:g}",
    }
    if settings.multicast is not None:
        told["multicast"] = settings.multicast
    if settings.journal is not None:
        told["journal"] = "yes"
    shared = shared_options(settings.engine)
    for name in sorted(settings.options):
        value = _shown(getattr(given, name))
        if name in shared and value != _shown(getattr(usual, name)):
            told[f"option {name}"] = value
    text = SEPARATOR.join(f"{name}={value}" for name, value in told.items())
    return Terms(_fitted(text), _fitted(",".join(sorted(settings.peers))))


def _shown(value: object) -> str:
    """A value as text; numbers that differ by rounding only are the same text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _fitted(text: str) -> str:
    """The text, if it is short enough; otherwise its beginning and a hash of it all."""
    raw = text.encode()
    if len(raw) <= TEXT_BYTES_MAX:
        return text
    mark = f"{SEPARATOR}{MORE}{hashlib.sha256(raw).hexdigest()[:16]}"
    return raw[: TEXT_BYTES_MAX - len(mark)].decode(errors="ignore") + mark


def settings_differ(node: NodeId, ours: Terms, theirs: Terms) -> str:
    """In words: which settings differ, both values, and what to do."""
    here, there = _table(ours.settings), _table(theirs.settings)
    names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
    shown = [
        f"{name} {there.get(name, 'not given')}, this node {here.get(name, 'not given')}"
        for name in names
    ]
    return (
        f"{node} runs with {'; with '.join(shown)}: the two do not meet; give both the same "
        f"{' and '.join(names)}"
    )


def peers_differ(node: NodeId, ours: Terms, theirs: Terms) -> str:
    """In words: whom one of two nodes lists in `peers` and the other does not."""
    if MORE in ours.peers or MORE in theirs.peers:
        return f"{node} has another list of peers than this node: give every node the same peers"
    here, there = set(ours.peers.split(",")), set(theirs.peers.split(","))
    shown = [
        f"{who} lists {', '.join(sorted(more))}, {other} does not"
        for who, other, more in (
            (node, "this node", there - here),
            ("this node", node, here - there),
        )
        if more
    ]
    return f"{'; '.join(shown)}: give every node the same peers"


def _table(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(SEPARATOR))
    return {name: value or "otherwise" for name, _, value in pairs}
