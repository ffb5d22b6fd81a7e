"""Real nodes through everything that befalls real nodes; their traces, records and receipts."""

import signal
import time

import pytest
from tests.patience import until
from tests.process.cluster import Cluster, judge, unhonoured

from roundelay.check import check
from roundelay.core.effects import Kind
from roundelay.group.engines import engines_in_views
from roundelay.trace import reader
from roundelay.trace.schema import Row

pytestmark = pytest.mark.process

NODES = "abcde"


@pytest.mark.parametrize("engine", engines_in_views())
def test_crash_pause_partition_and_loss(tmp_path, engine):
    with Cluster(tmp_path, NODES, engine) as cluster:
        cluster.start()
        cluster.view()
        cluster.relay("loss 5%")
        cluster.relay("duplicate 5%")
        cluster.relay("reorder 10%")
        cluster.traffic()

        cluster.kill("e")
        cluster.view(*"abcd")
        cluster.start("e")
        cluster.view()

        cluster.signal("b", signal.SIGSTOP)
        cluster.view(*"acde")
        cluster.signal("b", signal.SIGCONT)
        cluster.view()

        cluster.relay("partition a,b,c d,e")
        cluster.view(*"abc")
        cluster.view(*"de")
        cluster.traffic()
        cluster.relay("heal")
        cluster.view()

        cluster.relay("loss 20%")
        cluster.traffic()
        cluster.relay("heal")
        cluster.view()
        cluster.traffic()
        judge(cluster)


@pytest.mark.parametrize("engine", engines_in_views())
def test_a_pause_shorter_than_the_timeout_changes_nothing(tmp_path, engine):
    """Who was stopped for a moment notices it, and suspects nobody for its own silence."""
    with Cluster(tmp_path, "abc", engine, relay=False, timeout_s=2.0) as cluster:
        cluster.start()
        cluster.view()
        before = {node: cluster.counters(node) for node in cluster.nodes}
        cluster.signal("b", signal.SIGSTOP)
        end = time.monotonic() + 1.0  # Half of the timeout, and twice what makes a pause.
        until(lambda: time.monotonic() > end, "the end of the pause")
        cluster.signal("b", signal.SIGCONT)
        until(lambda: cluster.counters("b")["pauses"], "b to notice")
        cluster.traffic()
        for node in cluster.nodes:
            counters = cluster.counters(node)
            for name in ("views", "suspicions"):
                assert counters[name] == before[node][name]
        assert "this process did nothing for" in cluster.log("b")


def test_fc_masks_a_pause_and_a_crash_and_delivers_meanwhile(tmp_path):
    """The view is the same during and after the pause; after the crash it changes late. Safe
    messages would wait for whoever is masked, and only the first message of a node is one. The
    timeout leaves seconds to spare, for what a busy machine takes to deliver a few messages."""
    with Cluster(tmp_path, "abc", "fc", relay=False, timeout_s=12.0, safe_every=10**6) as cluster:
        cluster.start()
        cluster.view()
        before = {node: cluster.counters(node) for node in cluster.nodes}

        def unchanged(*nodes: str) -> bool:
            now = {node: cluster.counters(node) for node in nodes}
            return all(
                now[node][name] == before[node][name]
                for node in nodes
                for name in ("views", "suspicions")
            )

        cluster.signal("b", signal.SIGSTOP)
        cluster.traffic("a", "c", messages=5)
        cluster.signal("b", signal.SIGCONT)
        cluster.traffic(messages=40)
        assert unchanged("a", "b", "c")
        cluster.kill("c")
        cluster.traffic("a", "b", messages=5)
        assert unchanged("a", "b")
        cluster.view("a", "b")
        cluster.start("c")
        cluster.view()
        judge(cluster)


def test_the_trial_convicts(tmp_path):
    """A delivery that is struck from the trace is missed, by the checker and by its receipt."""
    with Cluster(tmp_path, "ab", relay=False) as cluster:
        cluster.start()
        cluster.view()
        until(lambda: cluster.receipts, "a receipt")
        whole = reader.read(cluster.finish())
    sender, life, receipt = cluster.receipts[0]
    number = cluster.nodes.index(sender)

    def struck(row: Row) -> bool:
        if row.kind != Kind.DELIVER or row.m_src != number or row.proc == number:
            return False
        assert row.m_seq is not None
        return bool(row.m_seq <= receipt["number"] < row.m_seq + row.count)

    rows = [row for row in whole.rows if not struck(row)]
    assert len(rows) == len(whole.rows) - 1
    assert not check(rows, whole.manifest).ok
    assert unhonoured(whole.rows, cluster) == []
    other = cluster.nodes[1 - number]
    assert f"{other} lacks {sender}'{life}:{receipt['number']}" in unhonoured(rows, cluster)


@pytest.mark.parametrize("engine", engines_in_views())
def test_rolling_restart_under_load(tmp_path, engine):
    with Cluster(tmp_path, "abc", engine, relay=False) as cluster:
        cluster.start()
        cluster.view()
        for node in cluster.nodes:
            cluster.stop(node)
            cluster.view(*(n for n in cluster.nodes if n != node))
            cluster.start(node)
            cluster.view()
            cluster.traffic(messages=5)
        judge(cluster)
