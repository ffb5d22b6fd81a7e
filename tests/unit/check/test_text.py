"""Reports for people."""

from dataclasses import replace

from roundelay.check import Validity, Verdict, check
from roundelay.check.text import table, witness_lines
from roundelay.trace import mini
from roundelay.trace.manifest import Manifest
from roundelay.trace.schema import Row

TWICE = "p!a q?a p.a q.a q.a end{p,q}"


def test_a_table():
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=["T1", "D1", "D2", "M1", "M2"])
    assert table(report, manifest) == (
        "mini, held to the properties named: 1 violated, 2 ok, 2 vacuous\n"
        "\n"
        "     verdict   instances  promise\n"
        "D2   violated          3  Nobody delivers a message twice\n"
        "               q delivers a twice\n"
        "T1   ok                3  Every node's rows are all there, numbered without a gap\n"
        "D1   ok                3  What is delivered was sent before\n"
        "\n"
        "vacuous, never put to the test: M1 M2\n"
    )


def test_everything():
    manifest, rows = mini.parse(TWICE)
    report = check(rows, manifest, profile=["D2", "M1"])
    text = table(report, everything=True)
    assert "M1   vacuous " in text
    assert "never put to the test" not in text


def test_many_verdicts_with_one_reason_take_one_line():
    manifest, rows = mini.parse(TWICE)
    manifest = replace(manifest, protocol="totem")
    report = check(rows, manifest, problems=["a file is damaged"])
    text = table(report, manifest)
    assert text.count("a file is damaged") == 1
    assert max(map(len, text.splitlines())) <= 100


def test_an_optional_violation_is_marked():
    manifest, rows = mini.parse("p+V1{p}! q+V2{q}!")
    manifest = replace(manifest, protocol="vs")
    assert "M10  violated (optional)" in table(check(rows, manifest), manifest)


def lines(name: str, text: str) -> list[str]:
    manifest, rows = mini.parse(text)
    return witness_lines(check(rows, manifest, profile=[name])[name], manifest)


def test_a_witness():
    assert lines("D7", "p+V1{p,q} q+V1{p,q} p!a p.a p+V2{p,q} q+V2{p,q}!") == [
        "0.000 ms  p  installs R1{p,q}",
        "0.001 ms  q  installs R1{p,q}",
        "0.003 ms  p  delivers a in R1",
        "0.004 ms  p  installs R2{p,q}",
        "0.005 ms  q  installs R2{p,q}, primary",
    ]


def test_what_an_end_and_a_destination_say():
    assert lines("D10", "p!a/s{q,r} q.a end{p,q,r}") == [
        "0.000 ms  p  originates a for q,r, safe",
        "0.002 ms     a quiet end with p,q,r up and connected",
    ]


def test_checksums_are_shown_where_they_matter():
    assert lines("D11", "p!a%x q.a%y") == [
        "0.000 ms  p  originates a, checksum 8cdc1683",
        "0.001 ms  q  delivers a, checksum fbdb2615",
    ]


def test_every_kind_of_row_has_words():
    text = "p+V1{p} p!a q?a p#a=7.2 p$a=7 p.a=7 p*a:2 p-a p( p) p/V3 pX p^9 pX p^- "
    manifest, rows = mini.parse(text + "p+V4{p}!{p,q} end{p}")
    rows += [
        Row("fault", -1, 0, 1, tag="heal"),
        Row("fault", -1, 0, 2, tag="partition"),
        Row("send", 0, 0, 99, tag="TOKEN"),
        Row("submit", 0, 0, 100, m_src=0, m_inc=1, m_seq=3, count=4),
    ]
    said = [
        line.split("  ", 2)[2].strip()
        for line in witness_lines(Verdict("D1", Validity.VIOLATED, witness=tuple(rows)), manifest)
    ]
    assert said == [
        "installs R1{p}",
        "originates a in R1",
        "receives a",
        "gives a the key 7.2",
        "confirms a with key 7",
        "delivers a with key 7 in R1",
        "claims a stable, level 2",
        "withdraws a",
        "acquires the token",
        "releases the token",
        "accepts the Commit token of R3 and freezes its view",
        "crashes",
        "recovers as incarnation 1, with view number 9 from storage",
        "crashes",
        "recovers as incarnation 2, its standing lost",
        "installs R4{p}, primary with voters p,q",
        "a quiet end with p up and connected",
        "the faults end",
        "fault: partition",
        "send TOKEN",
        "submits p'1:3..6",
    ]


def test_without_a_manifest_nodes_have_numbers():
    verdict = Verdict("D1", Validity.VIOLATED, witness=(Row("deliver", 3, 0, 0, m_src=1, m_seq=2),))
    assert witness_lines(verdict, None) == ["0.000 ms  #3  delivers #1:2"]
    assert witness_lines(verdict, Manifest("r", ("a", "b", "c", "d"))) == [
        "0.000 ms  d  delivers b:2"
    ]
