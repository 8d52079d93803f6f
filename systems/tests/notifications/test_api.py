"""The routes and answers of the API, and the same dead letters in the command line."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Callable
from typing import Any

import httpx
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from typer.testing import CliRunner

from perdure import App
from perdure.desk import asgi
from perdure.surfaces.cli.commands import command_line
from perdure.testing import Sandbox
from perdure_systems.notifications.jobs import app, notify
from perdure_systems.notifications.standins import StandIns
from perdure_systems.notifications.system import SYSTEM

LIST = "/api/v1/notifications"
NEW = {"channel": "slack", "subject": "Certificate expires", "body": "api.example.com: 7 days left"}


async def dead_letter(box: Sandbox, refuse: Callable[..., None]) -> str:
    refuse(-1)
    handle = await notify.enqueue(channel="slack", subject="dead", body="b")
    await box.drain(travel=True)
    refuse(0)
    return handle.id


async def test_a11_create_get_and_list(box: Sandbox, client: httpx.AsyncClient, receivers: StandIns) -> None:
    created = await client.post(LIST, json=NEW | {"severity": "error"})
    assert created.status_code == 201
    made = created.json()
    assert created.headers["location"] == f"{LIST}/{made['id']}"
    assert (made["status"], made["severity"], made["read"]) == ("pending", "error", False)
    await box.drain()
    shown = await client.get(f"{LIST}/{made['id']}")
    assert (shown.status_code, shown.json()["status"]) == (200, "sent")
    listed = (await client.get(LIST)).json()
    assert listed == {"data": [shown.json()], "total": 1, "page": 1, "per_page": 50}


async def test_a11_the_list_is_filtered_by_status(
    box: Sandbox, client: httpx.AsyncClient, receivers: StandIns, refuse: Callable[..., None]
) -> None:
    dead = await dead_letter(box, refuse)
    sent = (await client.post(LIST, json=NEW)).json()["id"]
    await box.drain()
    refuse(-1)
    failed = (await client.post(LIST, json=NEW)).json()["id"]
    await box.drain()
    pending = (await client.post(LIST, json=NEW)).json()["id"]
    await client.post(f"{LIST}/{sent}/read")

    async def ids(status: str) -> list[str]:
        page = (await client.get(LIST, params={"status": status})).json()
        assert page["total"] == len(page["data"])
        return [one["id"] for one in page["data"]]

    assert await ids("") == [pending, failed, sent, dead]
    assert [await ids(status) for status in ("dead", "sent", "failed", "pending", "read", "cancelled")] == [
        [dead],
        [sent],
        [failed],
        [pending],
        [sent],
        [],
    ]


async def test_a11_a_page_has_50_by_default_and_500_at_most(box: Sandbox, client: httpx.AsyncClient) -> None:
    await app.enqueue_many([notify.call(channel="slack", subject=str(at), body="b") for at in range(520)])

    async def page(**asked: int) -> dict[str, Any]:
        answer: dict[str, Any] = (await client.get(LIST, params=asked)).json()
        return answer

    first, second = await page(), await page(page=2)
    assert (len(first["data"]), len(second["data"]), first["total"]) == (50, 50, 520)
    assert not {one["id"] for one in first["data"]} & {one["id"] for one in second["data"]}
    assert len((await page(per_page=500))["data"]) == 500
    assert len((await page(per_page=500, page=2))["data"]) == 20
    assert (await page(page=99))["data"] == []
    too_many = await client.get(LIST, params={"per_page": 501})
    assert (too_many.status_code, too_many.json()["field"]) == (400, "per_page")


async def test_a11_mark_read_and_requeue_answer_as_ever(
    box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None], receivers: StandIns
) -> None:
    dead = await dead_letter(box, refuse)
    marked = await client.post(f"{LIST}/{dead}/read")
    assert (marked.status_code, marked.json()) == (200, {"status": "marked_as_read"})
    shown = (await client.get(f"{LIST}/{dead}")).json()
    assert (shown["read"], shown["status"]) == (True, "dead")
    requeued = await client.post(f"{LIST}/{dead}/requeue")
    assert (requeued.status_code, requeued.json()) == (200, {"status": "requeued"})
    await box.drain()
    assert len(receivers.taken["slack"]) == 1


BAD: list[tuple[dict[str, Any], str]] = [
    ({"channel": "fax"}, "channel"),
    ({"channel": None}, "channel"),
    ({"subject": ""}, "subject"),
    ({"subject": "x" * 301}, "subject"),
    ({"body": 5}, "body"),
    ({"severity": "awful"}, "severity"),
    ({"colour": "red"}, "colour"),
    ({"channel": "email", "recipient": "nobody"}, "recipient"),
    ({"channel": "email", "recipient": "a@b.example\r\nBcc: c@d.example"}, "recipient"),
]


async def test_a11_400_names_the_field_and_nothing_is_stored(client: httpx.AsyncClient) -> None:
    for change, field in BAD:
        answer = await client.post(LIST, json=NEW | change)
        assert (answer.status_code, answer.json().get("field")) == (400, field), answer.text
        assert field in answer.json()["detail"]
    assert (await client.get(LIST)).json()["total"] == 0


async def test_a11_400_for_what_cannot_be_read(
    box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None], receivers: StandIns
) -> None:
    cases = [
        await client.post(LIST, content=b"{"),
        await client.post(LIST, json={"subject": "s", "body": "b"}),
        await client.get(LIST, params={"status": "lost"}),
        await client.get(LIST, params={"page": "0"}),
        await client.get(LIST, params={"per_page": "many"}),
        await client.get(LIST, params={"page": "900000"}),
        await client.get(f"{LIST}/12"),
        await client.post(f"{LIST}/12/requeue"),
        await client.post(f"{LIST}/12/read"),
    ]
    fields = [answer.json().get("field") for answer in cases]
    assert [answer.status_code for answer in cases] == [400] * len(cases)
    assert fields == ["body", "channel", "status", "page", "per_page", "page", "id", "id", "id"]


async def test_a11_400_for_a_requeue_of_one_that_is_not_dead(
    box: Sandbox, client: httpx.AsyncClient, receivers: StandIns
) -> None:
    """A sent one is not sent again."""
    made = (await client.post(LIST, json=NEW)).json()["id"]
    await box.drain()
    answer = await client.post(f"{LIST}/{made}/requeue")
    assert (answer.status_code, answer.json()["detail"]) == (
        400,
        "the notification is sent: only a dead one is requeued",
    )
    await box.drain()
    assert len(receivers.taken["slack"]) == 1


async def test_a11_404_for_an_unknown_id_and_for_a_job_of_another_kind(
    engine_url: str, client: httpx.AsyncClient
) -> None:
    other = App(engine_url)

    @other.job(name="flags.apply", queue="notifications")
    async def apply() -> None: ...

    foreign = (await apply.enqueue()).id
    await other.close()
    for unknown in (str(uuid.uuid4()), foreign):
        answers = [
            await client.get(f"{LIST}/{unknown}"),
            await client.post(f"{LIST}/{unknown}/requeue"),
            await client.post(f"{LIST}/{unknown}/read"),
        ]
        assert [answer.status_code for answer in answers] == [404, 404, 404]
        assert answers[0].json()["detail"] == f"there is no notification {unknown}"


async def test_a11_405_says_what_is_allowed(client: httpx.AsyncClient) -> None:
    one = f"{LIST}/{uuid.uuid4()}"
    answers = [
        await client.put(LIST),
        await client.delete(one),
        await client.get(f"{one}/requeue"),
        await client.get(f"{one}/read"),
    ]
    assert [answer.status_code for answer in answers] == [405] * 4
    allowed = [set(answer.headers["allow"].split(", ")) for answer in answers]
    assert allowed == [{"GET", "HEAD", "POST"}, {"GET", "HEAD"}, {"POST"}, {"POST"}]


async def test_a11_500_when_the_store_is_broken_and_it_gives_nothing_away(
    client: httpx.AsyncClient, run_sql: Callable[[str, str], None]
) -> None:
    run_sql("ALTER TABLE perdure_finished RENAME TO gone", "ALTER TABLE finished RENAME TO gone")
    for answer in (await client.get(LIST), await client.post(f"{LIST}/{uuid.uuid4()}/requeue")):
        assert answer.status_code == 500
        assert answer.json()["detail"] == "the request failed; the server's log has the reason"


async def test_a11_dead_ones_are_in_the_command_line(
    engine_url: str, box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None], receivers: StandIns
) -> None:
    """`perdure` needs the database alone, knows our words, and what it requeues is requeued for the API."""
    dead = await dead_letter(box, refuse)

    async def perdure(*arguments: str) -> Any:
        command = [*arguments, "--url", engine_url, "--json"]
        done = await asyncio.to_thread(CliRunner().invoke, command_line(), command, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    [listed] = (await perdure("dead", "list", "--kind", "notifications.notify"))["jobs"]
    assert (listed["id"], listed["word"], listed["failures"]) == (dead, "dead", 5)
    assert "slack answered 503" in listed["last_error"]
    await perdure("dead", "requeue", dead)
    assert (await client.get(f"{LIST}/{dead}")).json()["status"] == "pending"
    await box.drain()
    [sent] = (await perdure("jobs", "list", "--state", "sent"))["jobs"]
    assert sent["id"] == dead


async def test_a11_dead_ones_are_seen_and_requeued_over_mcp(
    engine_url: str, box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None], receivers: StandIns
) -> None:
    """An agent finds the dead letter, explains its group, and requeues it after a dry run; the API shows it."""
    dead = await dead_letter(box, refuse)
    _, secret = await (await app.desk("ops")).create_token("oncall-bot", "operate")
    async with asgi(engine_url, mcp=SYSTEM.mcp) as desk:
        transport = httpx2.ASGITransport(app=desk, client=("127.0.0.1", 5000))
        headers = {"authorization": f"Bearer {secret}"}
        async with httpx2.AsyncClient(transport=transport, headers=headers, timeout=30) as http:
            server = streamable_http_client("http://127.0.0.1:8484/mcp", http_client=http)
            async with Client(server, read_timeout_seconds=30) as agent:

                async def ask(tool: str, **arguments: Any) -> Any:
                    answer = await agent.call_tool(tool, arguments)
                    assert not answer.is_error, answer.content
                    return answer.structured_content

                [group] = (await ask("failure_groups", search="kind:notifications.notify"))["groups"]
                found = await ask("explain_failure_group", fingerprint=group["fingerprint"])
                assert [job["id"] for job in found["jobs"]] == [dead]
                assert "slack answered 503" in found["last_attempt"]["error"]["untrusted_text"]
                call = {"search": found["search"], "why": "slack is back"}
                planned = await ask("requeue", **call)
                assert (await client.get(f"{LIST}/{dead}")).json()["status"] == "dead"
                assert (await ask("requeue", dry_run_id=planned["dry_run_id"], **call))["jobs"] == [dead]
    assert (await client.get(f"{LIST}/{dead}")).json()["status"] == "pending"
    [entry] = (await (await app.desk("ops")).audit(action="requeue")).entries
    assert (entry.actor, entry.why) == ("mcp:mcp@oncall-bot", "slack is back")
