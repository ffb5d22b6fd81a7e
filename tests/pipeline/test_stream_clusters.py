"""The log as a stream on executors in processes of their own."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from tests.patience import LIMIT_S
from tests.pipeline.processes import die_with_parent
from tests.pipeline.stream_logs import numbered

pytest.importorskip("pyspark")

from tests.pipeline.stream_cluster import ENTRIES, lose_an_executor

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_a_cluster_that_loses_an_executor_reads_each_entry_once(tmp_path):
    with ProcessPoolExecutor(1, get_context("spawn"), die_with_parent) as pool:
        found = pool.submit(lose_an_executor, str(tmp_path)).result(LIMIT_S * 2)
    assert found == list(enumerate(numbered(ENTRIES)))
