"""A secret reaches the handler, and nothing that people read: no command, no JSON, no log, no audit entry, no event."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import structlog
from msgspec.structs import replace
from structlog.testing import capture_logs
from tests.support.programs.effects import at_work
from tests.surfaces.conftest import Cli
from tests.surfaces.mcp.conftest import Agents

from perdure import App, Backoff, Context, JobFilter, Permanent, Retry, Secret, SyncContext, Unique, WorkerSettings
from perdure.app.connect import store_for
from perdure.domain.schedule import Schedule
from perdure.errors import ArgumentError
from perdure.events import Event, JobFailed, JobStarted, JobSucceeded
from perdure.events.log import EventLog

CANARY = "sparrow'7 f00d"
IN_URL = "sparrow7f00d-url"
QUICK = WorkerSettings(poll="50ms", stop_timeout="5s")
TWICE = Retry(attempts=2, backoff=Backoff.none())


class Told(Exception):  # noqa: N818 - an error of an application
    """An error that speaks of what it was given."""


@pytest.fixture(autouse=True)
def _plain_log() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def declared(app: App, seen: list[Any]) -> tuple[Any, Any, Any]:
    """Jobs that do with their secrets what should not be done."""

    async def sign_in(card: Secret[str]) -> Secret[str]:
        return Secret(f"step {card.reveal()}")

    async def fetch(card: Secret[str]) -> dict[str, str]:
        return {"access_token": card.reveal()}

    async def refuse(card: Secret[str]) -> None:
        raise Told(f"no entry for {card.reveal()}")

    @app.job(retry=TWICE, unique=Unique(by=("card",)), fair="card")
    async def careless(ctx: Context, card: Secret[str], options: dict[str, Any], url: str) -> dict[str, str]:
        secret = card.reveal()
        seen.append((secret, options["password"], ctx.meta["api_key"], url))
        ctx.log.info(f"paying with {secret}", password=secret, card=card, options=options, body=[secret])  # noqa: G004 - on purpose
        ctx.log.info("paying with %s", secret)
        ctx.progress(1, 2, f"half of {secret}")
        session = await ctx.step("sign in", sign_in, card)
        tokens = await ctx.step("fetch", fetch, card)
        await ctx.step("refuse", refuse, card, optional=True)
        await ctx.checkpoint({"token": secret})
        seen.append((session.reveal(), tokens["access_token"]))
        if ctx.attempt == 1:
            try:
                raise Told(f"{secret} at {url} with {session.reveal()}")  # noqa: TRY301 - as above
            except Told:
                ctx.log.exception("it failed")
                raise
        return {"token": secret}

    @app.job(retry=TWICE)
    def blocking(ctx: SyncContext, card: Secret[str]) -> None:
        seen.append(card.reveal())
        ctx.log.warning("refused", card=card.reveal())
        raise Told(card.reveal(), {"secret": card.reveal()})

    @app.job(retry=TWICE)
    async def final(card: Secret[int]) -> None:
        raise Permanent(f"never {card.reveal()}")

    return careless, blocking, final


def declared_parent(app: App) -> Any:
    """A job whose child has a secret as its result."""

    @app.job
    async def parent(ctx: Context, card: Secret[str]) -> int:
        return len(await ctx.gather([mint.call(card)]))

    @app.job
    async def mint(card: Secret[str]) -> dict[str, str]:
        return {"token": card.reveal()}

    return parent


async def played(url: str, seen: list[Any]) -> tuple[list[str], list[str]]:
    """Let the jobs run to their ends; their ids, and all that was told meanwhile."""
    async with App(url) as app:
        careless, blocking, final = declared(app, seen)
        parent = declared_parent(app)
        events: list[Event] = []
        app.subscribe(events.append)
        app.subscribe(events.append, JobStarted, JobSucceeded, JobFailed)
        app.subscribe(EventLog())
        with capture_logs() as log:
            async with at_work(app, QUICK):
                address = f"https://bob:{IN_URL}@example.com/?token={IN_URL}"
                first = await careless.using(meta={"api_key": CANARY, "n": 1}).enqueue(
                    Secret(CANARY), {"password": CANARY, "n": 1}, address
                )
                second = await blocking.enqueue(CANARY)
                third = await final.enqueue(Secret(4111411141114111))
                assert await asyncio.wait_for(first.result(), 30) == {"token": CANARY}
                family = await parent.enqueue(Secret(CANARY))
                assert await asyncio.wait_for(family.result(), 30) == 1
                for handle in (second, third):
                    with pytest.raises(Exception, match="is dead"):
                        await asyncio.wait_for(handle.result(), 30)
        desk = await app.desk("alice")
        await desk.record("reviewed", details={"password": CANARY, "n": 1})
        plan = Schedule(
            name="nightly",
            kind="careless",
            expression="@daily",
            args=msgspec.json.encode({"card": {"$secret": CANARY}}).decode(),
            meta=msgspec.json.encode({"api_key": CANARY}).decode(),
        )
        await desk.calendar.save(plan)
        with pytest.raises(ArgumentError, match="a secret"):
            await desk.holds.pause(kind="careless", args={"password": CANARY})
        ids = [str(handle.id) for handle in (first, second, third)]
        views: list[Any] = [await desk.jobs(), await desk.dead_letters(), await desk.steps(ids), await desk.audit()]
        views += [await desk.job(each) for each in ids] + [await desk.why(each) for each in ids]
        views += [
            await desk.calendar.details(),
            await desk.calendar.schedules(),
            await desk.jobs(JobFilter(ids=tuple(ids))),
        ]
        keys = [one.key for one in (await desk.job(family.id)).families]
        views += [await desk.children_of(family.id, key) for key in keys]
        views += [await desk.emit("paid:1", msgspec.json.encode({"token": CANARY}).decode())]
        told = [msgspec.json.encode(view).decode() for view in views]
        return ids, [*told, repr(views), repr(log), repr([_without_exception(event) for event in events])]


def _without_exception(event: Event) -> Event:
    """An event without the exception itself, which is an object for code and has not gone anywhere."""
    return replace(event, exception=None) if isinstance(event, JobFailed) else event


async def asked_by_an_agent(url: str, ids: list[str]) -> list[str]:
    """All that the tools for agents say."""
    store = store_for(url)
    await store.open()
    told = []
    async with Agents(store).client() as client:
        calls: list[tuple[str, dict[str, Any]]] = [(tool, {}) for tool in ("overview", "find_jobs", "failure_groups")]
        calls += [(tool, {}) for tool in ("schedules", "gates", "workers", "approvals", "audit")]
        calls += [(tool, {"job": each}) for tool in ("explain_job", "why_not_running", "audit") for each in ids]
        groups = (await client.call_tool("failure_groups", {})).structured_content or {}
        calls += [("explain_failure_group", {"fingerprint": one["fingerprint"]}) for one in groups["groups"]]
        calls += [("requeue", {"jobs": ids, "why": "to see"}), ("trigger_schedule", {"name": "nightly", "why": "too"})]
        for tool, arguments in calls:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, (tool, answer.content)
            told.append(answer.model_dump_json())
    await store.close()
    return told


def test_only_the_handler_sees_a_secret(engine_url: str, cli: Cli, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen: list[Any] = []
    ids, told = asyncio.run(played(engine_url, seen))
    told += asyncio.run(asked_by_an_agent(engine_url, ids))
    assert (CANARY, CANARY, CANARY, f"https://bob:{IN_URL}@example.com/?token={IN_URL}") in seen
    assert (f"step {CANARY}", CANARY) in seen
    assert CANARY in seen
    commands = ["jobs list", "dead list", "audit list", "schedules list", "schedules show nightly", "stats", "workers"]
    commands += [f"jobs show {each}" for each in ids] + [f"jobs show {each} --traceback" for each in ids]
    commands += [f"jobs why {each}" for each in ids] + [f"dead show {each}" for each in ids[1:]]
    answers = [cli(*command.split(), *more) for command in commands for more in ((), ("--json",))]
    told += [
        f"{command}: {answer.out}{answer.err}"
        for command, answer in zip((c for c in commands for _ in range(2)), answers, strict=True)
    ]
    told.append(caplog.text)
    assert any("***" in text for text in told)
    everything = "\n".join(told)
    for words in ("half of", "paying with", "no entry for", "it failed", "never ***"):
        assert words in everything, words
    for text in told:
        for secret in ("sparrow", "4111411141114111"):
            at = text.find(secret)
            assert at < 0, text[max(0, at - 300) : at + 100]
