"""The schema: rows over several messages, and the table of columns."""

from roundelay.trace.schema import COLUMNS, NULLABLE, Row, expand, frame_key


def test_expand_makes_one_row_per_message() -> None:
    packed = Row("deliver", 1, 0, 4, gseq=9, m_src=0, m_inc=2, m_seq=10, count=3)._replace(
        k0=1, k1=0, k2=7, k3=2, digest=99, size=300
    )
    rows = list(expand([packed]))
    assert [(row.m_src, row.m_inc, row.m_seq) for row in rows] == [
        (0, 2, 10),
        (0, 2, 11),
        (0, 2, 12),
    ]
    assert [(row.k2, row.k3) for row in rows] == [(7, 2), (7, 3), (7, 4)]
    assert {(row.lseq, row.gseq, row.count, row.digest, row.size) for row in rows} == {
        (4, 9, 1, None, None)
    }


def test_expand_leaves_single_rows_and_rows_about_no_message() -> None:
    rows = [
        Row("deliver", 1, 0, 0, m_src=0, m_inc=0, m_seq=0, digest=5),
        Row("arrive", 1, 0, 1, count=3),
        Row("stable", 1, 0, 2, m_src=0, m_inc=0, m_seq=4, count=2),
    ]
    assert list(expand(rows))[:2] == rows[:2]
    assert [row.k3 for row in list(expand(rows))[2:]] == [None, None]


def test_the_table_of_columns_is_the_row() -> None:
    assert tuple(COLUMNS) == Row._fields
    always = {"kind", "proc", "inc", "lseq", "t_ns", "lam", "layer", "tag", "count"}
    assert set(COLUMNS) - NULLABLE == always


def test_packet_keys_fit_and_differ() -> None:
    keys = {frame_key(n, i, k) for n in (0, 1023) for i in (0, 1) for k in (0, 1 << 33)}
    assert len(keys) == 8
    assert all(0 <= key < 1 << 63 for key in keys)


def test_packet_keys_of_lives_with_random_incarnations_differ() -> None:
    """Whose numbers agree in the upper bits, which are the time of the start."""
    lives = [1_731_000_000_000 << 21 | chance for chance in (5, 6, 1 << 18)]
    keys = {frame_key(3, inc, number) for inc in lives for number in (0, 1, (1 << 34) - 1)}
    assert len(keys) == 9
    assert all(0 <= key < 1 << 63 for key in keys)
