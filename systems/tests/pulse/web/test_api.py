"""The API: submit, list, show, pause, resume, cancel and delete jobs; limits; what bad input answers."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from systems.tests.pulse.client import client
from systems.tests.pulse.support import children_of, ingest_only, put, text_of

from perdure import JobState
from perdure.testing import Sandbox
from perdure_systems.pulse.jobs import app, records
from perdure_systems.pulse.log_lines import job_id_of, public_id
from perdure_systems.pulse.standins import ModelStandin

AT = "/api/pulse/jobs"


async def test_a_posted_document_is_ingested_and_its_result_is_shown(box: Sandbox) -> None:
    page = "<html><head><title>Engines</title><script>x()</script></head><body><p>Engines turn.</p></body></html>"
    async with client() as http:
        created = await http.post(AT, json={"source": "page.html", "text": page})
        assert created.status_code == 201
        assert created.json()["id"].startswith("JB_")
        again = await http.post(AT, json={"source": "page.html", "text": page})
        assert (again.status_code, again.json()["id"]) == (200, created.json()["id"])
        await box.drain()
        shown = (await http.get(f"{AT}/{created.json()['id']}")).json()
    assert (shown["job"]["state"], shown["job"]["phase"]) == ("completed", "aggregate")
    assert shown["result"]["summary"] == "Engines turn."
    assert [child["parent"] for child in shown["children"]] == [created.json()["id"]]


async def test_the_files_of_a_folder_are_ingested(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("a.txt", "One."), ("b.md", "# Two\n\nTwo."), ("c.html", "<p>Three.</p>"), ("d.pdf", "no")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "a-broken.txt").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("PULSE_DOCUMENTS", str(tmp_path))
    async with client() as http:
        one = await http.post(AT, json={"source": "b.md", "handler": "topics"})
        assert one.status_code == 201
        found = await http.post("/api/pulse/scan")
        assert [job["source"] for job in found.json()["jobs"]] == ["a.txt", "b.md", "c.html"]
        assert len(found.json()["refused"]) == 1
        assert found.json()["refused"][0].startswith("source 'a-broken.txt' is not UTF-8"), "the others are ingested"
        await box.drain()
        listed = (await http.get(f"{AT}?state=completed&per_page=3")).json()
    assert (len(listed["jobs"]), listed["more"]) == (3, True)


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("body", "field", "detail"),
    [
        ({"text": "x"}, "source", "missing required field `source`"),
        ({"source": "x.txt", "text": 1}, "text", "Expected `str | null`, got `int`"),
        ({"source": "x.txt", "text": "x", "more": 1}, "more", "unknown field `more`"),
        ({"source": "x.pdf", "text": "x"}, "source", "must end with one of .txt"),
        ({"source": "a\0b.txt", "text": "x"}, "source", "must have 1 to 200 printable characters"),
        ({"source": "x" * 300 + ".txt", "text": "x"}, "source", "must have 1 to 200 printable characters, got 304"),
        ({"source": "", "text": "x"}, "source", "must have 1 to 200 printable characters"),
        ({"source": "x.txt", "text": "  "}, "source", "has no text"),
        ({"source": "x.txt", "text": "x", "handler": "dance"}, "handler", "must be one of summary, topics, index"),
        ({"source": "../../etc/passwd.txt"}, "source", "outside of the folder"),
        ({"source": "gone.txt"}, "source", "not a file"),
    ],
)
async def test_bad_documents_are_refused_by_field_and_nothing_is_stored(
    box: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: dict[str, object], field: str, detail: str
) -> None:
    monkeypatch.setenv("PULSE_DOCUMENTS", str(tmp_path))
    async with client() as http:
        refused = await http.post(AT, json=body)
    assert (refused.status_code, refused.json()["field"]) == (400, field)
    assert detail in refused.json()["detail"]
    assert (await (await app.desk("test")).count()).jobs == 0
    del box


@pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
async def test_unknown_jobs_states_and_methods_are_refused(box: Sandbox) -> None:
    async with client() as http:
        for path in (f"{AT}/JB_nothing", f"{AT}/{public_id('01a1ee2e-2266-79ec-a9e6-6e3c9e300000')}", f"{AT}/%00"):
            assert (await http.get(path)).status_code == 404
            assert (await http.post(f"{path}/pause")).status_code == 404
            assert (await http.delete(path)).status_code == 404
        refused = await http.get(f"{AT}?state=odd")
        assert (refused.status_code, refused.json()["field"]) == (400, "state")
        for page in ("0", "900000"):
            refused = await http.get(f"{AT}?page={page}")
            assert (refused.status_code, refused.json()["field"]) == (400, "page")
        assert (await http.put(AT)).status_code == 405
    del box


async def test_an_operator_pauses_and_resumes_a_parent_with_its_children(box: Sandbox, standin: ModelStandin) -> None:
    submitted = await put(3)
    await ingest_only(box)
    one = f"{AT}/{public_id(submitted.job_id)}"
    async with client() as http:
        assert (await http.post(f"{one}/pause")).status_code == 200
        assert (await http.post(f"{one}/pause")).status_code == 409
        await box.drain(travel="10s")
        assert standin.asked == []
        shown = (await http.get(one)).json()
        assert {(child["state"], child["reason"]) for child in shown["children"]} == {("paused", "paused_by_operator")}
        assert (await http.post(f"{one}/resume")).status_code == 200
        assert (await http.post(f"{one}/resume")).status_code == 409
    await box.drain()
    assert (await box.job(submitted.job_id)).state is JobState.SUCCEEDED


async def test_a_job_is_cancelled_and_deleted_over_the_api(box: Sandbox, standin: ModelStandin) -> None:
    submitted, other = await put(2), await put(1, "other.txt")
    async with client() as http:
        one = f"{AT}/{public_id(submitted.job_id)}"
        assert (await http.post(f"{one}/cancel")).json()["state"] == "cancelled"
        assert (await http.post(f"{one}/cancel")).status_code == 409
        assert (await http.post(f"{one}/pause")).status_code == 409
        document = (await box.job(submitted.job_id)).arguments["document"]
        assert (await http.delete(one)).status_code == 204
        assert (await http.get(one)).status_code == 404
        assert await records.document(document) is None
        await box.drain()
        assert [job["id"] for job in (await http.get(AT)).json()["jobs"]] == [public_id(other.job_id)]
    assert len(standin.asked) == 1


async def test_limits_are_shown_and_set(box: Sandbox) -> None:
    async with client() as http:
        shown = (await http.get("/api/pulse/budget")).json()
        assert [window["limit"] for window in shown["windows"]] == [5.0, 20.0, 50.0]
        changed = await http.put("/api/pulse/budget", json={"daily": 1.5, "weekly": 0, "calls_per_minute": 7})
        assert [window["limit"] for window in changed.json()["windows"]] == [1.5, None, 50.0]
        assert changed.json()["calls_per_minute"] == 7
        for body, field in (
            ({"daily": -1}, "daily"),
            ({"daily": "much"}, "daily"),
            ({"calls_per_minute": 0}, "calls_per_minute"),
            ({"yearly": 1}, "yearly"),
        ):
            refused: httpx.Response = await http.put("/api/pulse/budget", json=body)
            assert (refused.status_code, refused.json()["field"]) == (400, field)
        assert (await http.get("/api/pulse/budget")).json() == changed.json(), "bad input has changed nothing"
    del box


def test_ids_are_shown_and_read_back() -> None:
    job_id = "01a1ee2e-2266-79ec-a9e6-6e3c9e300000"
    assert public_id(job_id) == "JB_01a1ee2e226679eca9e66e3c9e300000"
    assert job_id_of(public_id(job_id)) == job_id
    for odd in ("", "JB_", "JB_x", job_id, public_id(job_id).upper()):
        assert job_id_of(odd) == odd


async def test_children_have_pages_of_their_own(box: Sandbox) -> None:
    submitted = await put(1)
    await box.drain()
    [child] = await children_of(submitted.job_id)
    async with client() as http:
        shown = (await http.get(f"{AT}/{public_id(child.id)}")).json()
    assert (shown["job"]["source"], shown["result"]["summary"]) == ("piece 1", text_of(1).split(". ")[0] + ".")
