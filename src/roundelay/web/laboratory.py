"""The laboratory: scenarios in the simulator, step by step, and two engines side by side."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from roundelay.web.asked import document
from roundelay.web.lab.asking import Laboratory
from roundelay.web.lab.errors import LaboratoryError

STEP_DIGITS_MAX = 9
"""The most digits of the number of a step."""


def routes(laboratory: Laboratory | None = None) -> list[Route]:
    """The routes below `/api/laboratory/`. The worker ends when they are gone."""
    answers = _Answers(laboratory or Laboratory())
    return [
        Route("/api/laboratory/scenarios", answers.scenarios),
        Route("/api/laboratory/walkthrough", answers.walkthrough),
        Route("/api/laboratory/play", answers.play, methods=["POST"]),
        Route("/api/laboratory/diagram", answers.diagram),
        Route("/api/laboratory/witness", answers.witness),
        Route("/api/laboratory/comparison", answers.comparison),
    ]


class _Answers:
    def __init__(self, laboratory: Laboratory) -> None:
        self._laboratory = laboratory

    async def scenarios(self, request: Request) -> Response:
        return await self._answer({"ask": "scenarios"})

    async def walkthrough(self, request: Request) -> Response:
        return await self._answer({"ask": "walkthrough", "scenario": _told(request, "scenario")})

    async def play(self, request: Request) -> Response:
        text = (await document(request)).get("text")
        if not isinstance(text, str):
            return JSONResponse({"error": "write the scenario as the text of a JSON document"}, 400)
        return await self._answer({"ask": "play", "text": text})

    async def diagram(self, request: Request) -> Response:
        step = _told(request, "step")
        if not (step.isascii() and step.isdigit() and len(step) <= STEP_DIGITS_MAX):
            return JSONResponse({"error": f"{step!r} is not the number of a step"}, 400)
        asked = {"ask": "diagram", "scenario": _told(request, "scenario"), "step": int(step)}
        return await self._answer(asked)

    async def witness(self, request: Request) -> Response:
        asked = {name: _told(request, name) for name in ("scenario", "property")}
        return await self._answer({"ask": "witness", **asked})

    async def comparison(self, request: Request) -> Response:
        load = {key: value for key, value in request.query_params.items() if key not in _ENGINES}
        engines = {name: _told(request, name) for name in _ENGINES}
        return await self._answer({"ask": "comparison", **engines, "load": load})

    async def _answer(self, asked: Mapping[str, Any]) -> Response:
        try:
            body = await self._laboratory.ask(asked)
        except LaboratoryError as e:
            return JSONResponse({"error": str(e)}, 400)
        return Response(body, media_type="application/json")


_ENGINES = ("one", "two")


def _told(request: Request, name: str) -> str:
    return request.query_params.get(name, "")
