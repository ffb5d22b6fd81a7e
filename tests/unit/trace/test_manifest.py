"""The manifest: back from JSON as it was, and refused in one sentence otherwise."""

import dataclasses
import json

import pytest

from roundelay.trace.manifest import Manifest, TraceError

MANIFEST = Manifest(
    run="r",
    nodes=("a", "b"),
    protocol="totem",
    resilience=1,
    mode="views",
    seed=7,
    config={"deep": [1, {"er": None}]},
    rows={"0.0": 4, "-1.0": 2},
    sha256="ab",
)


def test_it_survives_json() -> None:
    assert Manifest.from_json(MANIFEST.to_json()) == MANIFEST


def test_manifests_of_two_lives_are_put_together() -> None:
    one = dataclasses.replace(MANIFEST, machine="boot 1")
    two = dataclasses.replace(
        MANIFEST, rows={"1.7": 3}, machine="boot 2", ended={"1.7": "its disk was full"}
    )
    both = one.joined(two)
    assert both.rows == {"0.0": 4, "-1.0": 2, "1.7": 3}
    assert both.clocks() == {"0.0": "boot 1", "-1.0": "boot 1", "1.7": "boot 2"}
    assert both.cut_short() == ["the trace of node b ends early, its disk was full"]
    assert both.sha256 == ""
    third = both.joined(dataclasses.replace(MANIFEST, rows={"0.1": 1}))
    assert third.clocks() == both.clocks()
    assert Manifest.from_json(third.to_json()) == third


def test_names_for_people() -> None:
    assert [MANIFEST.name(proc) for proc in (0, 1, -1, 5)] == ["a", "b", "world", "node number 5"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", "{}", '{"run": "r"}', "[" * 10**5])
def test_what_is_no_manifest(text: str) -> None:
    with pytest.raises(TraceError, match="restore"):
        Manifest.from_json(text)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("run", 3),
        ("nodes", "ab"),
        ("nodes", [1, 2]),
        ("nodes", ["a", "a"]),
        ("protocol", None),
        ("mode", "often"),
        ("seed", "7"),
        ("seed", True),
        ("config", []),
        ("rows", {"0": 3}),
        ("rows", {"0.0": -1}),
        ("rows", {"0.0": 1.5}),
        ("rows", [4]),
        ("ended", {"0": "its disk was full"}),
        ("ended", {"0.0": 1}),
        ("machine", None),
        ("machines", {"b": "x"}),
        ("schema", "1"),
        ("schema", 0),
        ("schema", True),
    ],
)
def test_values_of_the_wrong_kind(field: str, value: object) -> None:
    fields = dataclasses.asdict(MANIFEST) | {field: value}
    with pytest.raises(TraceError, match=rf"{field}.*; restore the original"):
        Manifest.from_json(json.dumps(fields))


def test_a_newer_version() -> None:
    newer = dataclasses.replace(MANIFEST, schema=99)
    with pytest.raises(TraceError, match="has schema 99, this version reads up to 3; update"):
        Manifest.from_json(newer.to_json())


def test_a_field_of_the_future() -> None:
    fields = dataclasses.asdict(MANIFEST) | {"mood": "fine"}
    with pytest.raises(TraceError, match=r"does not know \(mood\); update roundelay"):
        Manifest.from_json(json.dumps(fields))
