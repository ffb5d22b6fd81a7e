"""`roundelay journal`: what it prints, its exit codes, and errors as sentences."""

import errno
import json
from pathlib import Path

import pytest
from tests.unit.journal.logs import (
    LOG,
    T1,
    T2,
    QuickFiles,
    checkpoint,
    die,
    entries,
    held,
    log_files,
    mark,
    open_journal,
    some,
    with_checkpoints,
)

from roundelay.cli import main
from roundelay.core.ids import ViewId
from roundelay.core.log import Mark, Place
from roundelay.journal.errors import JournalError
from roundelay.journal.generation import follow
from roundelay.journal.snapshots import Snapshots
from roundelay.membership.messages import Primary
from roundelay.membership.primary import Standing
from roundelay.membership.storage import pack, unpack


@pytest.fixture
def path(tmp_path):
    """`journal=PATH` of a node that was stopped: six entries of two terms, five committed."""
    journal = open_journal(tmp_path / "orders")
    journal.append([mark(), *some(4), mark(T2, 4)])
    journal.append([entries(4, 2, T2)])
    journal.committed = 5
    journal.set_able()
    journal.snapshots.take(LOG, 0, checkpoint(3), [b"state"])
    journal.close()
    return tmp_path


@pytest.mark.parametrize("writes", [1, 2])
def test_recovery_on_a_disk_that_has_become_full_says_so(path, writes):
    """The first write comes as the journal is opened; then it is able, and then closed in order."""

    class Filling(QuickFiles):
        left = writes

        def open(self, path: Path, *, create: bool = False) -> int:
            if path.name == "machine.new":
                if not self.left:
                    raise OSError(errno.ENOSPC, "no space left on device")
                self.left -= 1
            return super().open(path, create=create)

    die(open_journal(path / "orders", "off"))
    with pytest.raises(JournalError, match="is full; make room, and run this again"):
        follow(path / "orders", ("a", "b"), ViewId(9, "b"), Filling())
    follow(path / "orders", ("a", "b"), ViewId(9, "b"), QuickFiles())
    assert open_journal(path / "orders").kept.able


def run(capsys, *words: object) -> tuple[int, str, str]:
    code = main(["journal", *map(str, words)])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return code, out, err


def test_ls(path, capsys):
    code, out, _ = run(capsys, "ls", path)
    assert code == 0
    assert "node a of group orders, not in use" in out
    assert f"log {LOG.hex()}, generation 0" in out
    assert "entries 0 to 5, committed below 5" in out
    assert "policy always, closed in order\n  able\n" in out
    assert "term 2.b from 4, voters a, b" in out
    assert "snapshot at 3" in out
    (found,) = json.loads(run(capsys, "ls", path / "orders", "--json")[1])
    assert (found["length"], found["committed"], found["term"]) == (6, 5, "2.b")
    assert [term["base"] for term in found["terms"]] == [0, 4]
    assert found["able"] is True


def test_ls_of_a_running_node_and_of_one_that_is_not_able(path, capsys):
    journal = open_journal(path / "orders")
    assert "in use by a running node" in run(capsys, "ls", path)[1]
    journal.close()
    (path / "orders" / "machine").unlink()
    assert "not able: the file 'machine'" in run(capsys, "ls", path)[1]


def test_verify(path, capsys):
    assert run(capsys, "verify", path)[:2] == (0, "8 records and 1 snapshots are whole\n")
    found = json.loads(run(capsys, "verify", path, "--json")[1])
    assert (found["whole"], found["records"], found["bad"]) == (True, 8, None)


def test_verify_finds_the_first_bad_record_of_the_middle(tmp_path, capsys):
    journal = open_journal(tmp_path / "orders")
    journal.append(with_checkpoints(300, every=10))
    journal.committed = 300
    journal.close()
    for file in log_files(tmp_path / "orders")[:2]:
        data = bytearray(file.read_bytes())
        data[3000] ^= 1
        file.write_bytes(data)
    code, out, _ = run(capsys, "verify", tmp_path)
    assert code == 1
    assert f"{log_files(tmp_path / 'orders')[0]} is damaged at byte" in out
    before = log_files(tmp_path / "orders")[0].read_bytes()
    run(capsys, "verify", tmp_path, "--repair-tail")
    assert log_files(tmp_path / "orders")[0].read_bytes() == before


def test_a_torn_tail_is_repaired_and_damage_is_not(path, capsys):
    file = log_files(path / "orders")[0]
    journal = open_journal(path / "orders")
    journal.append([entries(6, 1, T2, size=500)])
    for segment in journal._segments:
        segment.close()
    journal._release()
    data = file.read_bytes().rstrip(b"\0")
    file.write_bytes(data[:-100])
    code, out, _ = run(capsys, "verify", path)
    assert code == 1
    assert "is torn at byte" in out
    assert "--repair-tail" in out
    assert file.read_bytes() == data[:-100]
    code, out, _ = run(capsys, "verify", path, "--repair-tail")
    assert code == 0
    assert "cut off:" in out
    assert run(capsys, "verify", path)[0] == 0
    broken = bytearray(file.read_bytes())
    broken[200] ^= 1
    file.write_bytes(broken)
    code, _, err = run(capsys, "verify", path, "--repair-tail")
    assert code == 2
    assert "no torn tail: nothing was changed" in err
    assert file.read_bytes() == broken


def test_verify_reads_snapshots(path, capsys):
    (snapshot,) = (path / "orders" / "snapshots").iterdir()
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    code, out, _ = run(capsys, "verify", path)
    assert code == 1
    assert f"the snapshot {snapshot} is damaged" in out


def test_cat(path, capsys):
    code, out, _ = run(capsys, "cat", path)
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == [f"{n} a" for n in range(5)]
    assert run(capsys, "cat", path, "--from", 2, "--to", 3)[1].count("\n") == 2
    lines = run(capsys, "cat", path, "--from", 4, "--json")[1].splitlines()
    assert [json.loads(line)["index"] for line in lines] == [4]
    assert run(capsys, "cat", path, "--from", 3, "--to", 2)[0] == 2


def test_cat_of_what_was_removed(tmp_path, capsys):
    journal = open_journal(tmp_path / "orders")
    journal.reset(checkpoint(20, T2), mark(T2, 15))
    journal.append([entries(20, 2, T2)])
    journal.committed = 22
    journal.close()
    assert run(capsys, "cat", tmp_path)[1].startswith("20 a: ")
    code, _, err = run(capsys, "cat", tmp_path, "--from", 19)
    assert code == 2
    assert "begin at 20" in err


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_export(path, tmp_path, capsys, form):
    output = tmp_path / "out"
    code, out, _ = run(capsys, "export", path, "-o", output, "--format", form, "--from", 1)
    assert code == 0
    file = output / f"entries.{form}"
    assert out == f"{file} holds 4 entries\n"
    if form == "parquet":
        import pyarrow.parquet as pq

        table = pq.read_table(file).to_pydict()
        assert table["index"] == [1, 2, 3, 4]
        assert table["payload"][0][:6] == b"000001"
        assert table["term"] == ["1.a", "1.a", "1.a", "2.b"]
    else:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        assert [row["index"] for row in rows] == [1, 2, 3, 4]
    assert [p.name for p in output.iterdir()] == [file.name]


def test_no_journal_and_several(path, capsys):
    code, _, err = run(capsys, "ls", path / "nowhere")
    assert code == 2
    assert "there is no journal in" in err
    open_journal(path / "other").close()
    assert run(capsys, "ls", path)[0] == 0
    code, _, err = run(capsys, "cat", path)
    assert code == 2
    assert "several groups" in err


def test_recover_asks_and_explains(path, capsys):
    before = log_files(path / "orders")[0].read_bytes()
    words = ("recover", path, "--survivors", "a")
    code, out, err = run(capsys, *words)
    assert code == 2
    assert "confirmed from index 6 on may be gone" in out
    assert "nodes b must never be started with their old journals" in out
    assert "add --force" in err
    code, _, err = run(capsys, *words, "--force")
    assert code == 2
    assert f"no terminal to ask at; add --log {LOG.hex()}" in err
    code, _, err = run(capsys, *words, "--force", "--log", "00")
    assert (code, "nothing was changed" in err) == (2, True)
    code, _, err = run(capsys, "recover", path, "--survivors", "b,c", "--force", "--log", LOG.hex())
    assert (code, "none of the survivors b, c" in err) == (2, True)
    assert log_files(path / "orders")[0].read_bytes() == before
    journal = open_journal(path / "orders")
    assert "stop all nodes" in run(capsys, *words, "--force", "--log", LOG.hex())[2]
    journal.close()


def test_recover_removes_snapshots_of_what_is_lost(path, capsys):
    """With `interval` a snapshot may be on the disk, and the end of the log that it is of not."""
    snapshots = Snapshots(path / "orders" / "snapshots")
    for index in (6, 7):
        snapshots.take(LOG, 0, checkpoint(index), [b"state"])
    words = ("recover", path, "--force", "--survivors", "a", "--log", LOG.hex())
    assert run(capsys, *words)[0] == 0
    assert snapshots.indexes() == [6]


def test_recover_begins_a_generation(path, capsys):
    directory = path / "orders"
    old = Standing(True, Primary(T2, ("a", "b")), (Primary(ViewId(400, "b"), ("a", "b")),))
    (directory / "core").write_bytes(pack(800, old))
    code, out, _ = run(capsys, "recover", path, "--force", "--survivors", "d,a", "--log", LOG.hex())
    assert code == 0
    assert "generation 1 begins at 6" in out
    journal = open_journal(directory)
    last = held(journal)[-1]
    journal.close()
    assert isinstance(last, Mark)
    assert (last.base, last.voters, last.generation, last.lossy) == (6, ("a",), 1, True)
    assert last.members == ("a", "d")
    assert last.term.seq > 800
    assert last.term.rep == "a"
    found = unpack((directory / "core").read_bytes())
    assert found is not None
    seq, standing = found
    assert seq >= last.term.seq
    assert (standing.able, standing.attempts) == (True, ())
    assert standing.last == Primary(last.term, ("a",)), "without a nobody goes on"
    assert f"--follow {last.term}" in out
    assert "-- generation 1" not in run(capsys, "cat", path)[1]  # Not committed yet.
    assert "after a loss" in run(capsys, "ls", path)[1]

    # At the other survivor the log stays as it is.
    other = open_journal(path / "d" / "orders")
    other.append([mark(), *some(3)])
    other.close()
    (path / "d" / "orders" / "identity").write_text('{"group": "orders", "node": "d"}')
    follow = ("--follow", str(last.term))
    words = ("recover", path / "d", "--force", "--survivors", "a,d", "--log", LOG.hex())
    code, out, _ = run(capsys, *words, *follow)
    assert code == 0
    found = unpack((path / "d" / "orders" / "core").read_bytes())
    assert found is not None
    assert found[1].last == standing.last
    listed = json.loads(run(capsys, "ls", path / "d", "--json")[1])[0]
    assert (listed["able"], listed["generation"], listed["length"]) == (True, 0, 3)
    assert run(capsys, *words, "--follow", "nothing")[0] == 2
    assert run(capsys, *words, "--follow", "1.a")[0] == 2
    assert Place(T1, 3) < Place(last.term, 0)
