"""What settings of the journal come to."""

import asyncio

from roundelay.runtime.log.opening import DiskJournal, open_journal
from roundelay.runtime.machine import Machine
from roundelay.runtime.settings import settings


def test_the_journal_keeps_what_settings_say(tmp_path):
    told = {"retain_bytes": 1 << 28, "segment_bytes": 1 << 21, "retain_s": 60.0}
    known = {"group": "g", "node": "a", "peers": {"a": "127.0.0.1:1"}, "journal": str(tmp_path)}
    setup, storage = asyncio.run(open_journal(settings({**known, **told}), Machine(), None))
    assert isinstance(setup.journal, DiskJournal)
    config = setup.journal.inner.config
    assert {name: getattr(config, name) for name in told} == told
    setup.journal.close()
    storage.close()
