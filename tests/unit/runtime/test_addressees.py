"""For whom a message is."""

import pytest

from roundelay.runtime.addressees import addressees
from roundelay.runtime.errors import SendError

PEERS = {"a": "", "b": "", "c": ""}


def test_names_of_peers_are_taken_each_once_and_in_order():
    assert addressees(None, PEERS) is None
    assert addressees(iter(["c", "a", "c"]), PEERS) == ("a", "c")


@pytest.mark.parametrize(
    ("to", "sentence"),
    [
        ([], r"names nobody; name some of the peers \(a, b, c\), or leave it out"),
        (["a", "zz"], "names 'zz', which is no peer; the peers are a, b, c"),
        ("ab", "is a list of names, not 'ab'; the peers are a, b, c"),
        ([7], r"is a list of names, not \[7\]"),
    ],
)
def test_others_are_refused_with_a_sentence(to, sentence):
    with pytest.raises(SendError, match=sentence):
        addressees(to, PEERS)
