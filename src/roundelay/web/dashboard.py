"""All parts of the dashboard, put together."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from roundelay.web import now
from roundelay.web.application import application
from roundelay.web.chronicle import Chronicle
from roundelay.web.history import History
from roundelay.web.live import Live
from roundelay.web.moments import Moments
from roundelay.web.play import Own, Play
from roundelay.web.relays import Relays
from roundelay.web.serving import Serving
from roundelay.web.tables import Tables
from roundelay.web.watching import Watching


class Dashboard:
    """What one command shows."""

    def __init__(
        self,
        *,
        paths: Sequence[Path] = (),
        group: str | None = None,
        relays: Sequence[Path] = (),
        tables: Sequence[Path] = (),
        allow_faults: bool = False,
        own: Own | None = None,
    ) -> None:
        """`paths` are control sockets of nodes, and `relays` those of relays; without any, all that
        run here are shown. `tables` are directories of the pipeline, and `own` is a group that the
        command itself started."""
        self.watching = Watching(paths, group)
        self._relays = Relays(relays)
        self._tables = Tables(tables)
        chronicle = Chronicle()
        self.watching.on_told += [now.check, chronicle.on_told]
        self.watching.on_state.append(chronicle.on_state)
        self._live = Live(self.watching)
        self._moments = Moments(self.watching, chronicle)
        self._working = (self.watching, self._relays, self._moments)
        self._history = History(chronicle, self._moments)
        self._play = Play(
            self.watching,
            self._relays,
            allowed=allow_faults,
            own=own,
            on_fault=chronicle.on_fault,
        )
        self._live.extras |= {"play": self._play.told, "history": self._history.told}

    def serve(self, serving: Serving, token: str, on_start: Callable[[], None]) -> None:
        """Serve the page until the command is interrupted; `on_start` may tell where it is."""
        with_routes = (self._live, self._history, self._play, self._tables)
        parts = [route for part in with_routes for route in part.routes()]
        app = application(token=token, host=serving.host, parts=parts)
        self.start()
        try:
            serving.run(app, on_start=on_start, on_stop=self._live.stop)
        finally:
            self.stop()

    def start(self) -> None:
        """Watch from now on."""
        for one in self._working:
            one.start()

    def stop(self) -> None:
        for one in self._working:
            one.stop()

    def document(self) -> dict[str, Any]:
        """All groups as the page shows them now."""
        return self._live.document()
