"""`roundelay keygen`: makes the key file of a group, or puts a new key into it."""

import argparse
import secrets
from pathlib import Path

from roundelay.cli.errors import UserError
from roundelay.runtime.errors import RoundelayError
from roundelay.runtime.key_files import read_keys, write_keys
from roundelay.sealing.ciphers import KEY_BYTES
from roundelay.sealing.keys import GroupKey, rotated


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="the file with the key"
    )
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--rotate",
        action="store_true",
        help="put a new key into FILE; the one it holds stays as the old one",
    )
    change.add_argument(
        "--retire", action="store_true", help="take the old key out of FILE after a rotation"
    )


def run(args: argparse.Namespace) -> int:
    path: Path = args.output
    try:
        if args.rotate:
            write_keys(path, rotated(read_keys(path), secrets.token_bytes(KEY_BYTES)), replace=True)
            print(
                f"{path} holds a new key and the old one: copy it to every node; then run "
                "`roundelay key reload` at all of them within 30 seconds; then take the old key "
                f"out with `roundelay keygen --retire -o {path}`, and copy it again"
            )
        elif args.retire:
            write_keys(path, read_keys(path)[:1], replace=True)
            print(f"{path} holds the newest key only")
        else:
            write_keys(path, (GroupKey(secrets.token_bytes(KEY_BYTES)),), replace=False)
            print(
                f"{path} holds a new key: copy it to every node, and start each with --key {path}"
            )
    except RoundelayError as e:
        raise UserError(str(e)) from None
    except FileExistsError:
        raise UserError(
            f"{path} exists already, and a group may use it; change its key with --rotate, or name "
            "another file"
        ) from None
    except OSError as e:
        raise UserError(f"cannot write {path}: {e.strerror}; name another file") from None
    return 0
