"""The laboratory asks a real process, which may be slow, busy or gone."""

import asyncio
import json

import httpx
import pytest
from tests.patience import holds, play

pytest.importorskip("starlette")
pytestmark = pytest.mark.process

from starlette.applications import Starlette  # noqa: E402

from roundelay.web.asked import AskedWrongError, refuse  # noqa: E402
from roundelay.web.lab import asking  # noqa: E402
from roundelay.web.lab.asking import Laboratory  # noqa: E402
from roundelay.web.lab.errors import LaboratoryError  # noqa: E402
from roundelay.web.laboratory import routes  # noqa: E402

X1 = "fc/x1_two_fail"
LONG = "totem/bad_link_of_five"


def test_answers_come_to_those_who_asked():
    async def story() -> None:
        laboratory = Laboratory()
        asked = [
            {"ask": "walkthrough", "scenario": name}
            for name in (X1, "template/loss", "dtp_two_holders")
        ]
        bodies = await asyncio.gather(*map(laboratory.ask, asked))
        assert [json.loads(body)["name"] for body in bodies] == [a["scenario"] for a in asked]
        laboratory.close()

    play(story)


@pytest.mark.parametrize("scenario", [X1, "log/r01_sender_cut_off"])
def test_every_process_tells_the_same_of_a_run(scenario, monkeypatch):
    """Nothing depends on the order of sets, which is another one in each process."""

    async def story() -> None:
        told = []
        for seed in ("1", "2"):
            monkeypatch.setenv("PYTHONHASHSEED", seed)
            laboratory = Laboratory()
            told.append(await laboratory.ask({"ask": "walkthrough", "scenario": scenario}))
            laboratory.close()
        assert told[0] == told[1]

    play(story)


def test_a_run_that_takes_too_long_is_given_up_and_the_next_is_not():
    async def story() -> None:
        laboratory = Laboratory(answer_s_max=0.001)  # No process starts as fast.
        with pytest.raises(LaboratoryError, match=r"more than 0\.001 s"):
            await laboratory.ask({"ask": "walkthrough", "scenario": LONG})
        laboratory.close()
        patient = Laboratory()
        assert await patient.ask({"ask": "walkthrough", "scenario": X1})
        patient.close()

    play(story)


def test_a_worker_that_died_is_started_anew():
    async def story() -> None:
        laboratory = Laboratory()
        first = await laboratory.ask({"ask": "walkthrough", "scenario": X1})
        process = laboratory._process
        assert process is not None
        process.kill()
        process.wait()
        with pytest.raises(LaboratoryError):
            await laboratory.ask({"ask": "walkthrough", "scenario": X1})
        assert await laboratory.ask({"ask": "walkthrough", "scenario": X1}) == first
        laboratory.close()

    play(story)


def test_who_goes_away_leaves_no_answer_to_the_next():
    async def story() -> None:
        laboratory = Laboratory()
        gone = asyncio.create_task(laboratory.ask({"ask": "walkthrough", "scenario": LONG}))
        await holds(lambda: laboratory._process is not None)
        gone.cancel()
        body = await laboratory.ask({"ask": "walkthrough", "scenario": X1})
        assert json.loads(body)["name"] == X1
        assert gone.cancelled()
        laboratory.close()

    play(story)


def test_not_more_than_a_few_may_wait(monkeypatch):
    monkeypatch.setattr(asking, "WAITING_MAX", 2)

    async def story() -> None:
        laboratory = Laboratory()
        asked = {"ask": "walkthrough", "scenario": X1}
        answers = await asyncio.gather(
            *(laboratory.ask(asked) for _ in range(4)), return_exceptions=True
        )
        refused = [answer for answer in answers if isinstance(answer, LaboratoryError)]
        assert len(refused) == 2
        assert "busy" in str(refused[0])
        laboratory.close()

    play(story)


def test_the_end_of_the_laboratory_ends_the_worker():
    async def story() -> None:
        laboratory = Laboratory()
        await laboratory.ask({"ask": "scenarios"})
        process = laboratory._process
        assert process is not None
        del laboratory
        assert process.wait(timeout=60) != 0

    play(story)


def test_routes_answer_and_refuse():
    async def story() -> None:
        laboratory = Laboratory()
        transport = httpx.ASGITransport(
            Starlette(routes=routes(laboratory), exception_handlers={AskedWrongError: refuse})
        )
        home = "http://127.0.0.1/api/laboratory/"
        async with httpx.AsyncClient(transport=transport, base_url=home) as client:
            walkthrough = await client.get("walkthrough", params={"scenario": X1})
            assert walkthrough.status_code == 200
            assert walkthrough.json()["engine"] == "fc"
            drawn = await client.get("diagram", params={"scenario": X1, "step": "36"})
            assert drawn.json()["svg"].startswith("<svg")
            witness = await client.get("witness", params={"scenario": X1, "property": "O6"})
            assert "number 1 is" in witness.json()["svg"]
            asked = {"one": "totem", "two": "dtp", "messages": "6"}
            own = await client.post("play", json={"text": "nodes a b\nsubmit a x\n----\n"})
            assert own.json()["steps"][0]["said"] == "a submits a:0: x"
            for wrong in (b"x", b"[]", b'{"text": 3}'):
                assert (await client.post("play", content=wrong)).status_code == 400
            assert (await client.get("play")).status_code == 405
            both = await client.get("comparison", params=asked)
            assert [side["engine"] for side in both.json()["sides"]] == ["totem", "dtp"]
            for path, sentence in [
                ("walkthrough", "no scenario is called ''"),
                ("walkthrough?scenario=../../etc/passwd", "no scenario is called"),
                (f"diagram?scenario={X1}&step=x", "'x' is not the number of a step"),
                (f"diagram?scenario={X1}&step=4000", "this run has no step 4001"),
                (f"witness?scenario={X1}&property=O1", "O1 is not violated"),
                ("comparison?one=totem&two=dtp&nodes=99", "not between 2 and 7"),
            ]:
                answer = await client.get(path)
                assert answer.status_code == 400
                assert sentence in answer.json()["error"]
        laboratory.close()

    play(story)
