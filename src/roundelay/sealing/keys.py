"""Group keys: the secret that all nodes of a group share, and the file that holds it.

    key 64 hexadecimal digits     the newest key
    old 64 hexadecimal digits     the one before it, while a group changes its key

Lines that begin with # and empty lines are skipped.
"""

from collections.abc import Iterable

from roundelay.sealing.ciphers import KEY_BYTES, Cipher, derive

SEAL_VERSION = 1
KEY_ID_BYTES = 8

_COMMENT = "# A key of Roundelay. Whoever can read this file can read and forge all of its group.\n"


class KeyFileError(ValueError):
    """A key file cannot be used. The message is a sentence for the user."""


class GroupKey:
    """One secret. Its value never shows in logs and tracebacks."""

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(secret)}")
        self._secret = secret

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GroupKey) and self._secret == other._secret

    def __hash__(self) -> int:
        return hash(self._secret)

    def __repr__(self) -> str:
        return "GroupKey(...)"

    def id(self, group: str) -> bytes:
        """Names this key in the datagrams of a group, and tells nothing about it."""
        info = b"roundelay key id %d " % SEAL_VERSION + group.encode()
        return derive(self._secret, b"", info, KEY_ID_BYTES)

    def boot_key(self, group: str, cipher: Cipher, boot: bytes) -> bytes:
        """The key with which one boot of one node seals: no two boots share one, so no nonce is
        ever used twice, whatever a node forgot when it was restarted."""
        info = b"roundelay boot key %d %d " % (SEAL_VERSION, cipher) + group.encode()
        return derive(self._secret, boot, info)

    def line(self, word: str) -> str:
        return f"{word} {self._secret.hex()}\n"


KeyRing = tuple[GroupKey, ...]
"""The keys that a node accepts, the newest first: one, or two while the group changes its key."""


def key_file(keys: KeyRing) -> str:
    """The text of a key file."""
    return _COMMENT + "".join(key.line("old" if at else "key") for at, key in enumerate(keys))


def parse_key_file(text: str) -> KeyRing:
    """The keys in the text of a key file, or KeyFileError."""
    found: dict[str, GroupKey] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, _, digits = line.partition(" ")
        if word not in ("key", "old") or word in found:
            raise KeyFileError(f"line {number} is not `key` or `old`, each once")
        try:
            found[word] = GroupKey(bytes.fromhex(digits))
        except ValueError:
            raise KeyFileError(f"line {number} does not have {2 * KEY_BYTES} digits") from None
    if "key" not in found:
        raise KeyFileError("there is no line `key`")
    if found.get("old") == found["key"]:
        raise KeyFileError("both keys are the same")
    return tuple(found[word] for word in ("key", "old") if word in found)


def rotated(keys: KeyRing, secret: bytes) -> KeyRing:
    """A new key, and the newest of these as the old one."""
    return (GroupKey(secret), keys[0])


def ids(keys: Iterable[GroupKey], group: str) -> tuple[bytes, ...]:
    return tuple(key.id(group) for key in keys)
