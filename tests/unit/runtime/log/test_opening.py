"""What settings of the journal come to."""

import asyncio
import errno
from collections.abc import Sequence

import pytest
from tests.unit.journal import logs

from roundelay.journal.files import OsFiles
from roundelay.journal.snapshots import Snapshots
from roundelay.runtime.errors import DiskError, JournalError
from roundelay.runtime.log import opening
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


@pytest.mark.parametrize(("number", "ends"), [(errno.ENOSPC, False), (errno.EIO, True)])
def test_a_peers_snapshot_is_fetched_again_if_the_disk_is_full_and_a_failing_disk_ends_the_node(
    tmp_path, number, ends
):
    class Failing(OsFiles):
        failing = False

        def pwritev(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
            if self.failing:
                raise OSError(number, "what the disk says")
            super().pwritev(fd, parts, offset)

    donor, files = Snapshots(tmp_path / "donor"), Failing()
    donor.take(logs.LOG, 0, logs.checkpoint(7), [b"state"])
    data, _ = donor.read_part(7, 0, 1 << 20) or (b"", 0)
    journal = DiskJournal(logs.open_journal(tmp_path / "a", files=files))
    files.failing = True
    if ends:
        with pytest.raises(DiskError, match="what the disk says"):
            journal.write_snapshot(7, 0, data, last=True)
    else:
        assert not journal.write_snapshot(7, 0, data, last=True)
    files.failing = False
    assert journal.write_snapshot(7, 0, data, last=True)
    journal.close()


def test_a_node_starts_on_a_full_disk_as_the_reserve_is_given_up(tmp_path, monkeypatch):
    told = {"group": "g", "node": "a", "peers": {"a": "127.0.0.1:1"}, "journal": str(tmp_path)}

    def life() -> None:
        setup, _ = asyncio.run(open_journal(settings(told), Machine(), None))
        setup.journal.close()

    life()
    reserve = tmp_path / "g" / "reserve"
    files = logs.NoRoom(reserve)
    files.full = True
    monkeypatch.setattr(opening, "make_files", lambda: files)
    assert reserve.exists()
    life()
    assert not reserve.exists()
    files.reserve = None
    with pytest.raises(JournalError, match=r"its disk is full .*; free some space"):
        life()


def test_that_a_node_is_able_is_noted_once_there_is_room_and_a_full_disk_is_told(tmp_path, caplog):
    inner = logs.open_journal(tmp_path, "off")
    inner.append([logs.mark(), *logs.some(3)])
    logs.die(inner)
    files = logs.NoRoom(tmp_path / "reserve")
    journal = DiskJournal(logs.open_journal(tmp_path, files=files))
    files.full, files.reserve = True, None
    journal.set_able()
    journal.set_able()
    assert caplog.text.count("could not be noted that this node is able") == 1
    files.full = False
    journal.trim()
    logs.die(journal.inner)
    assert logs.open_journal(tmp_path).kept.able


def test_a_journal_on_a_full_disk_is_closed_and_says_that_it_was_not_in_order(tmp_path, caplog):
    files = logs.NoRoom(tmp_path / "reserve")
    journal = DiskJournal(logs.open_journal(tmp_path, files=files))
    files.full, files.reserve = True, None
    journal.close()
    assert "its next start is one after a crash" in caplog.text
