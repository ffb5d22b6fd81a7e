"""A trace in pieces, for those who read it while the run goes on.

    NAME.000000.parquet, NAME.000001.parquet ...    files, each whole as soon as it is there
    NAME.manifest.json                              one for all; `pieces` counts whole files

A Parquet file cannot be read before its end is written, so the piece that is being written has
another name. Lines can be read at any time: a piece of lines has its name from its first row on,
and it is whole once the manifest counts it.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from roundelay.trace.manifest import Manifest
from roundelay.trace.writer import BATCH_ROWS, Format, Writer, piece_name

UNFINISHED = ".new"
"""Ends the name of a piece that cannot be read yet."""


class PieceWriter(Writer):
    """Writes a trace whose rows are in whole files after each `roll`.

    `name` is that of no earlier trace in the directory. The rest is as in `Writer`.
    """

    def __init__(
        self,
        directory: str | Path,
        manifest: Manifest,
        *,
        name: str,
        unclosed: Mapping[str, str],
        format: Format = "auto",
        batch_rows: int = BATCH_ROWS,
    ) -> None:
        self._name = name
        self._unclosed = unclosed
        self._filled = False
        """Whether the present piece has rows."""
        super().__init__(
            directory,
            manifest,
            format=format,
            name=name,
            batch_rows=batch_rows,
            hashed=False,
            unclosed=unclosed,
        )

    def _open(self) -> None:
        suffix = self._make_encoder.suffix
        name = f"{piece_name(self._name, self.manifest.pieces)}{suffix}"
        self._final = self.directory / name
        self.path = self.directory / f"{name}{UNFINISHED}"
        self._filled = False
        super()._open()

    def _write(self, encode: Callable[[], None]) -> None:
        super()._write(encode)
        self._filled = True
        if self._encoder.divisible:
            self._reveal()

    def roll(self) -> None:
        """Make a whole file of the rows since the last one, if there are any, and count it in the
        manifest."""
        if not self._end_filled():
            return
        try:
            early = dataclasses.replace(self.manifest, rows=None, ended=self._unclosed)
            self._write_manifest(early)
            self._open()
        except OSError as e:
            raise self._cannot_write(e) from None

    def close(self, **fields: Any) -> Manifest:
        # One manifest counts the last piece and all rows: who has read the piece needs no other.
        self._end_filled()
        return super().close(**fields)

    def _end_filled(self) -> bool:
        """Make the present piece whole if it has rows; whether it had."""
        self.flush()
        if not self._filled:
            return False
        try:
            self._end_piece()
        except OSError as e:
            raise self._cannot_write(e) from None
        return True

    def _close_file(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._filled:
            self._end_piece()
        elif not self._file.closed:
            self._end_file()
            self.path.unlink()

    def _end_piece(self) -> None:
        self._end_file()
        self._reveal()
        self._filled = False
        self._kept = self._counts.copy()
        self.manifest = dataclasses.replace(self.manifest, pieces=self.manifest.pieces + 1)

    def _end_file(self) -> None:
        try:
            self._encoder.write_end("")
        finally:
            self._file.close()

    def _reveal(self) -> None:
        """Give the piece its name."""
        if self.path != self._final:
            try:
                os.replace(self.path, self._final)
            except OSError as e:
                raise self._cannot_write(e) from None
            self.path = self._final
