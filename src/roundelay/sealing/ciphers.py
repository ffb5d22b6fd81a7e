"""Ciphers and the keys that are derived for them. All cryptography comes from `cryptography`."""

from collections.abc import Callable
from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

__all__ = ["KEY_BYTES", "TAG_BYTES", "Cipher", "Crypt", "InvalidTag", "aead", "derive"]

KEY_BYTES = 32
TAG_BYTES = 16
NONCE_BYTES = 12

Crypt = Callable[[bytes, bytes | memoryview, bytes], bytes]
"""Encrypts or decrypts: nonce, data, and what is authenticated beside it. To decrypt what was not
encrypted with this key raises InvalidTag."""


class Cipher(IntEnum):
    """The numbers stand in datagrams: they never change."""

    AES = 1
    CHACHA = 2

    @property
    def title(self) -> str:
        return "AES-256-GCM" if self is Cipher.AES else "ChaCha20-Poly1305"


def aead(cipher: Cipher, key: bytes) -> tuple[Crypt, Crypt]:
    """What encrypts with this key, and what decrypts."""
    made = AESGCM(key) if cipher is Cipher.AES else ChaCha20Poly1305(key)
    return made.encrypt, made.decrypt


def derive(secret: bytes, salt: bytes, info: bytes, size: int = KEY_BYTES) -> bytes:
    """A key, or an id, that tells nothing about the secret (HKDF with SHA-256)."""
    return HKDF(algorithm=SHA256(), length=size, salt=salt, info=info).derive(secret)
