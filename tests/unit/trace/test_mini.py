"""The mini-language: every form of token, the identities it gives, and its inverse."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay.core.effects import Kind
from roundelay.core.ids import Service
from roundelay.trace.manifest import Manifest, TraceError
from roundelay.trace.mini import parse, render
from roundelay.trace.schema import REGULAR, TRANSITIONAL, WORLD, Row


def only(text: str) -> Row:
    """The row of the last token."""
    return parse(text)[1][-1]


def message(row: Row) -> tuple[int | None, int | None, int | None]:
    return row.m_src, row.m_inc, row.m_seq


def test_install_carries_the_view_entered_and_the_view_left() -> None:
    _, rows = parse("p+V2{q,p}! p~T3{p}")
    first, second = rows
    assert (first.kind, first.c_seq, first.c_rep, first.c_kind) == (Kind.INSTALL, 2, 0, REGULAR)
    assert first.members == (0, 1)
    assert first.prev_c is None
    assert first.primary is True
    assert (second.c_seq, second.c_rep, second.c_kind) == (3, 0, TRANSITIONAL)
    assert second.members == (0,)
    assert second.prev_c == (2, 0, REGULAR)
    assert second.primary is False


def test_a_primary_view_may_name_its_voters() -> None:
    _, rows = parse("p+V2{p,q}!{r,p,q} q+V2{p,q}!")
    assert [row.voters for row in rows] == [(0, 1, 2), None]
    assert [row.primary for row in rows] == [True, True]


def test_freeze_names_the_ring_being_formed_and_stays_in_the_old_view() -> None:
    row = only("p+V2{p} p/V7")
    assert (row.kind, row.k0, row.k1, row.k2) == (Kind.FREEZE, 7, 0, None)
    assert (row.c_seq, row.c_kind) == (2, REGULAR)


def test_a_recovery_says_whether_standing_was_kept() -> None:
    _, rows = parse("pX p^ pX p^9 pX p^-")
    told = [(row.level, row.k0) for row in rows if row.kind == Kind.RECOVER]
    assert told == [(1, None), (1, 9), (0, None)]


def test_one_view_number_is_one_view() -> None:
    _, (p, q) = parse("p+V1{p,q} q+V1{q}")
    assert (p.c_seq, p.c_rep) == (q.c_seq, q.c_rep)
    assert p.members != q.members


def test_other_rows_carry_the_view_they_happened_in() -> None:
    _, rows = parse("p!a p+V1{p} p.a p~T2{p} p.b pX p^ p!c")
    views = [(row.c_seq, row.c_kind) for row in rows]
    assert views == [
        (None, None),
        (1, REGULAR),
        (1, REGULAR),
        (2, TRANSITIONAL),
        (2, TRANSITIONAL),
        (2, TRANSITIONAL),
        (None, None),
        (None, None),
    ]


def test_crash_ends_an_incarnation_and_recover_opens_the_next() -> None:
    _, rows = parse("p!a pX p^9 p!b pX p^")
    assert [(row.kind, row.inc, row.lseq) for row in rows] == [
        ("originate", 0, 0),
        ("crash", 0, 1),
        ("recover", 1, 0),
        ("originate", 1, 1),
        ("crash", 1, 2),
        ("recover", 2, 0),
    ]
    assert [row.k0 for row in rows] == [None, None, 9, None, None, None]
    assert message(rows[3]) == (0, 1, 0)


@pytest.mark.parametrize(
    ("token", "service", "dst", "digest"),
    [
        ("p!a", Service.AGREED, None, None),
        ("p!a/s", Service.SAFE, None, None),
        ("p!a/f", Service.FIFO, None, None),
        ("p!a/c", Service.CAUSAL, None, None),
        ("p!a{r,q}", Service.AGREED, (1, 2), None),
        ("p!a{}", Service.AGREED, (), None),
        ("p!a%x", Service.AGREED, None, crc32(b"x")),
        ("p!a%0000002a", Service.AGREED, None, 42),
        ("p!a/s{q,r}%x", Service.SAFE, (1, 2), crc32(b"x")),
    ],
)
def test_originate(
    token: str, service: Service, dst: tuple[int, ...] | None, digest: int | None
) -> None:
    row = only(f"q?z r?z {token}")
    assert (row.kind, row.svc, row.dst, row.digest) == (Kind.ORIGINATE, service, dst, digest)
    assert message(row) == (0, 0, 0)


@pytest.mark.parametrize(
    ("token", "kind", "key", "digest", "level"),
    [
        ("p?a", Kind.RECEIVE, None, None, None),
        ("p#a=7", Kind.ORDER, (0, 0, 7, 0), None, None),
        ("p$a=7", Kind.CONFIRM, (0, 0, 7, 0), None, None),
        ("p.a", Kind.DELIVER, None, None, None),
        ("p.a=7", Kind.DELIVER, (0, 0, 7, 0), None, None),
        ("p.a=7.2", Kind.DELIVER, (0, 0, 7, 2), None, None),
        ("p.a%x", Kind.DELIVER, None, crc32(b"x"), None),
        ("p.a=7%x", Kind.DELIVER, (0, 0, 7, 0), crc32(b"x"), None),
        ("p*a", Kind.STABLE, None, None, 1),
        ("p*a:2", Kind.STABLE, None, None, 2),
        ("p-a", Kind.WITHDRAW, None, None, None),
    ],
)
def test_what_is_told_of_a_message(
    token: str, kind: Kind, key: tuple[int, ...] | None, digest: int | None, level: int | None
) -> None:
    row = only(f"p!a {token}")
    assert row.kind == kind
    assert message(row) == (0, 0, 0)
    assert (row.k0, row.k1, row.k2, row.k3) == (key or (None,) * 4)
    assert (row.digest, row.level) == (digest, level)


def test_keys_name_the_regular_view_also_in_the_transitional_one() -> None:
    row = only("p+V4{p} p!a p~T5{p} p.a=7")
    assert (row.k0, row.k1, row.k2, row.k3) == (4, 0, 7, 0)
    assert row.c_seq == 5


def test_receivers_repeat_service_and_destinations() -> None:
    _, (received, _, delivered, unknown) = parse("q?a p!a/s{q} q.a q?b")
    assert (received.svc, received.dst) == (delivered.svc, delivered.dst) == (Service.SAFE, (1,))
    assert (unknown.svc, unknown.dst) == (None, None)


def test_token_and_end() -> None:
    manifest, rows = parse("p( p) end{p,q}{r}")
    assert [(row.kind, row.tag) for row in rows[:2]] == [("token", "acquire"), ("token", "release")]
    assert [(row.kind, row.proc, row.members) for row in rows[2:]] == [
        ("end", WORLD, (0, 1)),
        ("end", WORLD, (2,)),
    ]
    assert manifest.nodes == ("p", "q", "r")


def test_a_node_may_be_called_end() -> None:
    assert [row.proc for row in parse("end!a end.a end{end}")[1]] == [0, 0, WORLD]


def test_messages_are_numbered_per_sender_by_their_first_originate() -> None:
    _, rows = parse("q?b p!a q!c p!b q.b q.a")
    assert [message(row) for row in rows] == [
        (0, 0, 1),
        (0, 0, 0),
        (1, 0, 0),
        (0, 0, 1),
        (0, 0, 1),
        (0, 0, 0),
    ]


def test_a_message_originated_twice_is_one_message() -> None:
    _, (first, second, other) = parse("p!a q!a q!b")
    assert message(first) == message(second) == (0, 0, 0)
    assert (first.proc, second.proc) == (0, 1)
    assert message(other) == (1, 0, 0)


def test_a_message_that_nobody_originates_is_the_worlds() -> None:
    _, rows = parse("p+V1{p} p.a p?b p.a")
    assert [message(row) for row in rows[1:]] == [(WORLD, 0, 0), (WORLD, 0, 1), (WORLD, 0, 0)]


def test_rows_are_placed_as_the_simulator_would() -> None:
    manifest, rows = parse("p!a q?a q.a end{p,q}", run="tiny")
    assert [row.gseq for row in rows] == [0, 1, 2, 3]
    assert [row.t_ns for row in rows] == [0, 1000, 2000, 3000]
    assert [row.lseq for row in rows] == [0, 0, 1, 0]
    assert manifest.rows == {"0.0": 1, "1.0": 2, "-1.0": 1}
    assert (manifest.run, manifest.nodes, manifest.mode) == ("tiny", ("p", "q"), "static")


def test_an_install_makes_it_a_run_with_views() -> None:
    assert parse("p+V1{p}")[0].mode == "views"


def test_comments_and_line_ends_are_free() -> None:
    text = """# p is slow
    p!a   # sends a
      p#a=7
    q?a #q
    """
    assert parse(text)[1] == parse("p!a p#a=7 q?a")[1]


def test_an_empty_text_is_an_empty_trace() -> None:
    manifest, rows = parse(" \n# nothing\n")
    assert (manifest.nodes, rows) == ((), [])


@pytest.mark.parametrize(
    ("token", "example"),
    [
        ("p!!a", "p!a"),
        ("p!", "p!a"),
        ("P!a", "names are lower-case"),
        ("p!A", "names are lower-case"),
        ("p+V2", "p+V2{p,q}"),
        ("p+T2{p}", "p+V2{p,q}"),
        ("p~V2{p}", "p~T3{p}"),
        ("p+V2{p", "p+V2{p,q}"),
        ("p+V12345678901234567890{p}", "p+V2{p,q}"),
        ("p#a", "p#a=7"),
        ("p$a=x", "p$a=7"),
        ("p*a:", "p*a:2"),
        ("p.a=", "p.a=7"),
        ("p^x", "p^9"),
        ("pXX", "pX"),
        ("p?", "p?a"),
        ("p(a", "p("),
        ("end", "end{p,q}{r}"),
        ("end{p}r", "end{p,q}{r}"),
        ("hello", "p!a"),
        ("\N{SNOWMAN}!a", "p!a"),
        ("p!a%\N{SNOWMAN}", "p!a"),
        ("x" * 1000, "p!a"),
    ],
)
def test_what_is_no_token_is_named_with_its_place_and_an_example(token: str, example: str) -> None:
    with pytest.raises(TraceError) as e:
        parse(f"p!a\n  {token} q?a")
    sentence = str(e.value)
    assert sentence.startswith(f"line 2, column 3: '{token[:30]}")
    assert example in sentence
    assert len(sentence) < 200
    assert "\n" not in sentence


def test_a_set_names_nobody_twice() -> None:
    with pytest.raises(TraceError, match="names q twice"):
        parse("p+V1{p,q,q}")


@given(st.text(alphabet="pq!?.#$*+~VTX^{},=:%/()- end17\n@&<>|[]", max_size=40))
def test_any_text_is_a_trace_or_an_error(text: str) -> None:
    try:
        _, rows = parse(text)
    except TraceError:
        return
    assert [row.gseq for row in rows] == list(range(len(rows)))


def sets() -> st.SearchStrategy[str]:
    names = st.lists(st.sampled_from("pqr"), unique=True, max_size=3)
    return names.map(lambda chosen: "{" + ",".join(chosen) + "}")


def tokens() -> st.SearchStrategy[str]:
    node, name = st.sampled_from("pqr"), st.sampled_from(["a", "b", "c", "x1"])
    number = st.integers(0, 20).map(str)
    key = st.one_of(number, st.builds("{}.{}".format, number, st.integers(1, 3)))
    digest = st.sampled_from(["", "%x", "%00ff00ff"])
    return st.one_of(
        st.builds("{}+V{}{}{}".format, node, number, sets(), st.sampled_from(["", "!"])),
        st.builds("{}+V{}{}!{}".format, node, number, sets(), sets()),
        st.builds("{}/V{}".format, node, number),
        st.builds("{}^-".format, node),
        st.builds("{}~T{}{}".format, node, number, sets()),
        st.builds("{}X".format, node),
        st.builds("{}^{}".format, node, st.one_of(st.just(""), number)),
        st.builds(
            "{}!{}{}{}{}".format,
            node,
            name,
            st.sampled_from(["", "/s", "/f", "/c"]),
            st.one_of(st.just(""), sets()),
            digest,
        ),
        st.builds("{}{}{}".format, node, st.sampled_from("?-"), name),
        st.builds("{}{}{}={}".format, node, st.sampled_from("#$"), name, key),
        st.builds("{}.{}{}".format, node, name, digest),
        st.builds("{}.{}={}{}".format, node, name, key, digest),
        st.builds("{}*{}{}".format, node, name, st.sampled_from(["", ":2"])),
        st.builds("{}{}".format, node, st.sampled_from("()")),
        st.builds("end{}{}".format, sets(), sets()),
        of_log(),
    )


def of_log() -> st.SearchStrategy[str]:
    """Tokens of the replicated log."""
    node, entry = st.sampled_from("pqr"), st.sampled_from(["a", "b", "s.0", "s.7", "t.1"])
    number, digest = st.integers(0, 20).map(str), st.sampled_from(["", "%x", "%00ff00ff"])
    term, more = st.sampled_from(["", "/3"]), st.sampled_from(["", "..21", "..24"])
    text = st.sampled_from(["", ".x", ".00ff00ff"])
    return st.one_of(
        st.builds("{}+{}".format, node, st.sampled_from(["a", "b", "c"])),
        st.builds("{}={}@{}{}{}{}".format, node, entry, number, more, term, digest),
        st.builds("{}{}{}".format, node, st.sampled_from(">|<:"), number),
        st.builds("{}&V{}={}{}".format, node, number, number, sets()),
        st.builds("{}{}".format, node, st.sampled_from(["X!", "X-"])),
        st.builds("{}@{}{}{}".format, node, st.sampled_from(["", "!"]), number, digest),
        st.builds("{}[{}.get{}{}".format, node, st.sampled_from("mo"), text, st.sampled_from("~ ")),
        st.builds("{}]{}{}@{}".format, node, st.sampled_from("mo"), text, number),
        st.builds("{}+V{}{}!{}*".format, node, number, sets(), sets()),
    )


@given(st.lists(tokens(), max_size=30))
def test_render_undoes_parse(words: list[str]) -> None:
    manifest, rows = parse(" ".join(words))
    assert parse(render(rows, manifest)) == (manifest, rows)


def test_render_gives_the_text_back() -> None:
    text = "p+V1{p,q}! q+V1{p,q}! p!x/s{q} q?x p#x=7 q.x=7 p-x pX p^9 q~T2{q} end{p}{q}"
    manifest, rows = parse(text)
    assert render(rows, manifest) == text


def test_render_keeps_the_names_in_a_part_of_a_trace() -> None:
    manifest, rows = parse("p!a p!b p!c q.c q.b")
    assert render(rows[3:], manifest) == "q.c q.b"


def test_render_names_what_a_real_run_left_nameless() -> None:
    manifest = Manifest(run="r", nodes=("Node-1", "Node-2"))
    rows = [
        Row("send", 0, 0, 0, tag="MSG"),
        Row("originate", 0, 0, 1, m_src=0, m_inc=0, m_seq=5, count=2, digest=1),
        Row("confirm", 0, 0, 2, k0=1, k1=0, k2=9, k3=0),
        Row("deliver", 1, 0, 0, m_src=0, m_inc=0, m_seq=6, k0=1, k1=0, k2=3, k3=1),
    ]
    assert render(rows, manifest) == "node1!a node1!b node2.b=3.1"


def test_render_numbers_views_anew_where_two_share_a_number() -> None:
    manifest = Manifest(run="r", nodes=("p", "q"))
    rows = [
        Row("install", 0, 0, 0, c_seq=8, c_rep=0, c_kind=0, members=(0,)),
        Row("install", 1, 0, 0, c_seq=8, c_rep=1, c_kind=0, members=(1,)),
    ]
    assert render(rows, manifest) == "p+V1{p} q+V2{q}"


def test_render_tells_nodes_of_similar_names_apart() -> None:
    manifest = Manifest(run="r", nodes=("a-1", "a1"))
    assert render([Row("crash", 0, 0, 0), Row("crash", 1, 0, 0)], manifest) == "n0X n1X"


def test_names_of_messages_do_not_collide_with_given_ones() -> None:
    manifest, rows = parse("p!a p!b")
    foreign = Row("receive", 0, 0, 9, m_src=0, m_inc=3, m_seq=0)
    assert render([*rows, foreign], manifest) == "p!a p!b p?c"
