"""Making the seal of a node from its settings. Only nodes with a key import this module: it needs
the package `cryptography`.
"""

import asyncio
from functools import partial

from roundelay.core.contract import Boot
from roundelay.runtime.key_files import read_keys
from roundelay.runtime.machine import Machine
from roundelay.runtime.sealing import SealSetup
from roundelay.runtime.settings import Settings
from roundelay.runtime.tuning import SEAL_BYTES
from roundelay.sealing.ciphers import Cipher
from roundelay.sealing.seal import OVERHEAD_BYTES, Seal

CIPHERS = {"aes": Cipher.AES, "chacha": Cipher.CHACHA}

assert SEAL_BYTES == OVERHEAD_BYTES


def seal_setup(settings: Settings, boot: Boot, machine: Machine) -> SealSetup:
    """The seal of a node whose settings name a key file, or a StartError or ConfigError."""
    assert settings.key is not None
    usual = Cipher.AES if machine.has_aes() else Cipher.CHACHA
    read = partial(read_keys, settings.key)
    seal = Seal(
        boot,
        settings.peers,
        read(),
        machine.random_bytes,
        asyncio.get_running_loop().time(),
        usual if settings.cipher is None else CIPHERS[settings.cipher],
    )
    return SealSetup(seal, read)
