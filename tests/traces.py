"""Rows of traces, drawn at random."""

import json

from hypothesis import strategies as st

from roundelay.core.effects import Kind
from roundelay.trace.schema import ENTRY_KINDS, INDEX_KINDS, LAYERS, MESSAGE_KINDS, Row

NODES = ("a", "b", "c")


def small(bits: int, least: int | None = None) -> st.SearchStrategy[int]:
    limit = 1 << (bits - 1)
    return st.integers(-limit if least is None else least, limit - 1)


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    """Rows that a writer may meet: every column, and lseq without holes."""
    int64 = small(64)
    maybe = st.none() | int64
    node = st.integers(0, len(NODES) - 1)
    nodes = st.none() | st.lists(node, max_size=3).map(tuple)
    words = st.text(max_size=5).filter(lambda text: text.isprintable())
    view = st.tuples(int64, node, st.sampled_from([0, 1]))
    made: list[Row] = []
    counts: dict[tuple[int, int], int] = {}
    for place in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(Kind))
        writer = draw(st.integers(-1, 2)), draw(small(64, 0))
        counts[writer] = counts.get(writer, -1) + 1
        message = kind in MESSAGE_KINDS | ENTRY_KINDS or draw(st.booleans())
        c_seq, c_rep, c_kind = (
            draw(view) if kind is Kind.INSTALL or draw(st.booleans()) else (None, None, None)
        )
        needs_members = kind in (Kind.INSTALL, Kind.END, Kind.OPEN)
        index, name = st.integers(0, (1 << 63) - 1), words.filter(bool)
        has_index = kind in INDEX_KINDS or draw(st.booleans())
        has_object = kind in ENTRY_KINDS | {Kind.INVOKE, Kind.REPLY} or draw(st.booleans())
        made.append(
            Row(
                kind=draw(st.sampled_from([kind, kind.value])),
                proc=writer[0],
                inc=writer[1],
                lseq=counts[writer],
                gseq=place,
                t_ns=draw(int64),
                wall_ns=draw(maybe),
                lam=draw(int64),
                layer=draw(st.sampled_from(LAYERS)),
                tag=draw(words),
                m_src=draw(node) if message else None,
                m_inc=draw(small(64)) if message else None,
                m_seq=draw(int64) if message else None,
                svc=draw(st.none() | st.integers(0, 3)),
                dst=draw(nodes),
                k0=draw(maybe),
                k1=draw(maybe),
                k2=draw(maybe),
                k3=draw(maybe),
                level=draw(st.none() | small(8)),
                c_seq=c_seq,
                c_rep=c_rep,
                c_kind=c_kind,
                members=draw(nodes) or (() if needs_members else None),
                prev_c=draw(st.none() | view),
                voters=draw(nodes),
                primary=draw(st.none() | st.booleans()),
                digest=draw(maybe),
                size=draw(st.none() | small(32)),
                count=draw(small(32, 1)),
                pkt=draw(maybe),
                peer=draw(st.none() | small(16)),
                cause=draw(maybe),
                x=draw(st.none() | words.map(json.dumps)),
                idx=draw(index) if has_index else None,
                obj=draw(name) if has_object else None,
                op=draw(st.none() | name),
                arg=draw(maybe),
                res=draw(maybe),
            )
        )
    return made
