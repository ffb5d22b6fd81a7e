"""The process in which scenarios are run, so that the server goes on answering meanwhile.

It reads requests from its standard input, one JSON document on a line, and answers each on standard
output: a line with the outcome and the length, and so many bytes of JSON. It ends when its input
does.
"""

import contextlib
import hashlib
import json
import os
import resource
import sys
from collections import OrderedDict
from typing import Any, BinaryIO

from roundelay.web.lab import catalogue
from roundelay.web.lab.comparison import choices, compare, read_load
from roundelay.web.lab.errors import LaboratoryError
from roundelay.web.lab.walkthrough import Walkthrough, walk

KEPT_MAX = 4
"""How many walkthroughs are kept to draw from. Fewer: switching between scenarios plays them again;
more: memory."""
MEMORY_BYTES_MAX = 2 << 30
"""The most memory of the process. Less: the longest scenarios fail; more: the machine may swap."""
NICENESS = 5
"""So much less is it preferred to other processes, such as the nodes that the dashboard shows."""

TEXT_MAX = 50_000
"""The most characters of a scenario of the reader's own. Fewer: a long one cannot be changed; more:
nobody reads it."""
OWN = "own:"
"""Begins the names of runs of the reader's own; no scenario that is shipped has such a name."""

DONE, REFUSED = b"done", b"refused"
"""The outcomes: an answer, or a document that says what is wrong."""


class Worker:
    """Answers requests, one after the other."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Walkthrough] = OrderedDict()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The document that is asked for; LaboratoryError if there is none."""
        match request:
            case {"ask": "scenarios"}:
                return catalogue.document() | {"comparison": choices()}
            case {"ask": "walkthrough", "scenario": str(name)}:
                return self._walk(name).document
            case {"ask": "play", "text": str(text)}:
                return self._play(text).document
            case {"ask": "diagram", "scenario": str(name), "step": int(step)}:
                return {"svg": self._walk(name).diagram(step)}
            case {"ask": "witness", "scenario": str(name), "property": str(violated)}:
                return {"svg": self._walk(name).witness(violated)}
            case {"ask": "comparison", "one": str(one), "two": str(two), "load": dict(load)}:
                return compare((one, two), read_load(load))
        raise LaboratoryError("the laboratory does not know what is asked for")

    def _walk(self, name: str) -> Walkthrough:
        """The run of a shipped scenario, or one of the reader's own that is still kept."""
        walked = self._kept.pop(name, None)
        if walked is None and name.startswith(OWN):
            raise LaboratoryError("this run is not kept any more; play it again")
        return self._keep(name, walked or walk(name, catalogue.text_of(name)))

    def _play(self, text: str) -> Walkthrough:
        """The run of a scenario that the reader wrote."""
        if len(text) > TEXT_MAX:
            raise LaboratoryError(f"a scenario of your own has {TEXT_MAX} characters at most")
        name = OWN + hashlib.sha256(text.encode()).hexdigest()[:16]
        walked = self._kept.pop(name, None)
        return self._keep(name, walked or walk(name, text))

    def _keep(self, name: str, walked: Walkthrough) -> Walkthrough:
        self._kept[name] = walked
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return walked


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until there are no more requests."""
    worker = Worker()
    for line in requests:
        try:
            outcome, document = DONE, worker.answer(json.loads(line))
        except LaboratoryError as e:
            outcome, document = REFUSED, {"error": str(e)}
        except Exception as e:  # Whatever a core raises, the next request is answered.
            what = str(e) if isinstance(e, AssertionError) else f"{type(e).__name__}: {e}"
            outcome, document = REFUSED, {"error": f"the run broke off: {what}"}
        body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        answers.write(b"%s %d\n" % (outcome, len(body)) + body)
        answers.flush()


def main() -> None:
    os.nice(NICENESS)
    with contextlib.suppress(OSError, ValueError):  # Not every system has such a limit.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    serve(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
