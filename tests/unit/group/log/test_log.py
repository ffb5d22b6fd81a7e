"""The log of whole stacks: what is appended is committed, in one order, and survives."""

from tests.unit.group.log.cluster import Cluster


def test_a_group_founds_a_log_and_commits():
    cluster = Cluster("abc")
    cluster.run(1)
    assert cluster.states("abc") == ["open"] * 3
    assert cluster["a"].append("x") == 0
    assert cluster["b"].append("y") == 0
    assert cluster["a"].append("z") == 1
    cluster.run(1)
    assert len({tuple(cluster[n].texts) for n in "abc"}) == 1
    assert sorted(cluster["a"].texts) == ["x", "y", "z"]
    assert [cluster[n].committed for n in "abc"] == [3, 3, 3]
