"""What agents can do: a dry run, its id, a person's word, the command; and every way in which that is refused."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from mcp import Client
from tests.support.builders.jobs import HOUR, enqueue, job_in, state_of
from tests.support.builders.schedules import make
from tests.support.working import at_work, found
from tests.surfaces.mcp.conftest import LEGACY, Agents, Person, ask, refused

from perdure import App, Context
from perdure.clock import ManualClock
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.access import Scope
from perdure.errors import ArgumentError
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.mcp.settings import McpSettings
from perdure.surfaces.mcp.toolbox import TOOLS

WHY = "the mail server is back"


async def both(client: Client, tool: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A dry run, and the call that confirms it."""
    planned = await ask(client, tool, why=WHY, **arguments)
    assert planned["status"] == "dry_run"
    done = await ask(client, tool, why=WHY, dry_run_id=planned["dry_run_id"], **arguments)
    assert done["status"] == "done"
    assert done["dry_run_id"] is None
    return planned, done


async def test_jobs_are_requeued_cancelled_and_run_now_in_the_agents_name(agents: Agents, store: Store) -> None:
    dead = await job_in(JobState.DEAD, store)
    later = await job_in(JobState.SCHEDULED, store, queue="mail")
    async with agents.client() as client:
        planned = await ask(client, "requeue", search="state:dead", why=WHY)
        assert planned["jobs"] == [dead]
        assert await state_of(store, dead) is JobState.DEAD
        await ask(client, "requeue", search="state:dead", why=WHY, dry_run_id=planned["dry_run_id"])
        assert await state_of(store, dead) is JobState.READY
        await both(client, "run_now", jobs=[later])
        assert await state_of(store, later) is JobState.READY
        _, done = await both(client, "cancel", jobs=[dead, later])
        assert set(done["jobs"]) == {dead, later}
        assert await state_of(store, dead) is JobState.CANCELLED
    trail = (await Desk(store, "test").audit(actor="mcp:claude-code@ada", source="mcp")).entries
    assert {entry.action for entry in trail} == {"requeue", "run_now", "cancel"}
    assert {(entry.why, entry.source) for entry in trail} == {(WHY, "mcp stdio")}


async def test_queues_are_paused_and_resumed_and_schedules_triggered(
    agents: Agents, store: Store, clock: ManualClock
) -> None:
    await make(store, await store.now() + HOUR, name="nightly")
    desk = Desk(store, "test")
    async with agents.client() as client:
        planned, _ = await both(client, "pause", queue="mail", duration="30m")
        assert "30m" in planned["summary"]["untrusted_text"]
        [pause] = await desk.holds.pauses()
        assert (pause.queue, pause.until, pause.actor) == ("mail", clock.now() + HOUR / 2, "mcp:claude-code@ada")
        await both(client, "resume", pause=pause.id)
        assert await desk.holds.pauses() == []
        await both(client, "trigger_schedule", name="nightly")
        assert len((await desk.jobs()).jobs) == 1
        assert "no such pause" in await refused(client, "resume", queue="mail", why=WHY)
        assert "cannot pause everything" in await refused(client, "pause", why=WHY)
    assert {entry.action for entry in (await desk.audit(source="mcp")).entries} >= {"pause", "resume"}


async def test_a_question_is_answered(real_time_store: Store) -> None:
    store, app = real_time_store, App("sqlite:///not-used.db")

    @app.job
    async def deploy(ctx: Context) -> str:
        given = await ctx.approval("go", "1h")
        return f"{given.approved} {given.by}"

    async with at_work(store, app), Agents(store).client() as client:
        job = await enqueue(store, kind="deploy", args="{}")

        async def asked() -> list[Any]:
            return list((await ask(client, "approvals"))["questions"])

        [question] = await found(asked)
        assert question["question"]["untrusted_text"] == "go"
        assert "does not ask 'stop'" in await refused(
            client, "answer_approval", job=job, question="stop", approved=True, why=WHY
        )
        planned = await ask(client, "answer_approval", job=job, question="go", approved=False, why=WHY)
        assert "of another call" in await refused(
            client,
            "answer_approval",
            job=job,
            question="go",
            approved=True,
            why=WHY,
            dry_run_id=planned["dry_run_id"],
        )
        await both(client, "answer_approval", job=job, question="go", approved=True)

        async def ended() -> bool:
            return await state_of(store, job) is JobState.SUCCEEDED

        await found(ended)
        assert (await Desk(store, "test").job(job)).job.value == "True mcp:claude-code@ada"


async def test_an_id_holds_for_one_actor_one_action_and_exactly_its_jobs(
    agents: Agents, store: Store, clock: ManualClock
) -> None:
    dead = await job_in(JobState.DEAD, store)
    call = {"search": "state:dead", "why": WHY}
    async with agents.client() as client:
        first = (await ask(client, "requeue", **call))["dry_run_id"]
        async with agents.client(who="eve") as other:
            assert "another call" in await refused(other, "requeue", dry_run_id=first, **call)
        async with agents.client(name="other-agent") as other:
            assert "another call" in await refused(other, "requeue", dry_run_id=first, **call)
        waiting = await job_in(JobState.READY, store, queue="mail")
        assert "another call" in await refused(client, "cancel", jobs=[waiting], dry_run_id=first, why=WHY)
        second = await job_in(JobState.DEAD, store)
        assert "exactly the jobs" in await refused(client, "requeue", dry_run_id=first, **call)
        for made_up in ("dry-1-2-3", "", "dry-6553f100-00000000-000000000000000000000000", "x' OR 1=1"):
            assert "dry_run_id" in await refused(client, "requeue", dry_run_id=made_up, **call)
        old = (await ask(client, "requeue", **call))["dry_run_id"]
        clock.move(timedelta(minutes=10, seconds=1))
        assert "older than 10m" in await refused(client, "requeue", dry_run_id=old, **call)
    assert {await state_of(store, each) for each in (dead, second)} == {JobState.DEAD}
    refusals = (await Desk(store, "test").audit(action="agent_refused")).entries
    assert len(refusals) == 9
    assert {entry.actor for entry in refusals} == {
        "mcp:claude-code@ada",
        "mcp:claude-code@eve",
        "mcp:other-agent@ada",
    }


async def test_an_agents_own_name_cannot_pose_as_another_actor(agents: Agents, store: Store) -> None:
    async with agents.client(name="x@admin\n\u202e system: " + "y" * 500) as client:
        await both(client, "pause", queue="mail")
    [pause] = await Desk(store, "test").holds.pauses()
    assert pause.actor.startswith("mcp:x-admin-system-yyy")
    assert pause.actor.endswith("y@ada")
    assert len(pause.actor) < 80
    with pytest.raises(ArgumentError, match="a name that perdure uses itself"):
        await Desk(store, "test").create_token("mcp:claude-code@ada", "operate")


async def test_an_id_is_used_once_also_by_calls_at_the_same_time(agents: Agents, store: Store) -> None:
    async with agents.client() as client, agents.client() as sibling:
        planned = await ask(client, "pause", queue="mail", why=WHY)
        call = {"queue": "mail", "why": WHY, "dry_run_id": planned["dry_run_id"]}
        results = await asyncio.gather(*(each.call_tool("pause", call) for each in (client, sibling) * 3))
        assert sum(not result.is_error for result in results) == 1
        assert "was used already" in await refused(client, "pause", **call)
    assert len(await Desk(store, "test").holds.pauses()) == 1


@pytest.mark.parametrize("mode", ["auto", LEGACY])
async def test_a_person_is_asked_where_the_client_can(agents: Agents, store: Store, mode: str) -> None:
    dead = await job_in(JobState.DEAD, store)
    person = Person()
    async with agents.client(person=person, mode=mode) as client:
        await both(client, "requeue", jobs=[dead])
    [question] = person.asked
    assert question == f"Requeue 1 job: 1 greet. Asked for by mcp:claude-code@ada, whose reason is: {WHY}"
    assert await state_of(store, dead) is JobState.READY


@pytest.mark.parametrize("mode", ["auto", LEGACY])
@pytest.mark.parametrize("person", [Person("decline"), Person("cancel"), Person(approve=False)])
async def test_a_person_who_declines_ends_the_dry_run(agents: Agents, store: Store, mode: str, person: Person) -> None:
    dead = await job_in(JobState.DEAD, store)
    async with agents.client(person=person, mode=mode) as client:
        call = {"jobs": [dead], "why": WHY}
        dry_run_id = (await ask(client, "requeue", **call))["dry_run_id"]
        assert "nothing was changed" in await refused(client, "requeue", dry_run_id=dry_run_id, **call)
        person.action, person.approve = "accept", True
        assert "was used already" in await refused(client, "requeue", dry_run_id=dry_run_id, **call)
    person.action, person.approve = "decline", False
    assert await state_of(store, dead) is JobState.DEAD


async def test_one_call_touches_so_many_jobs_at_most(agents: Agents, store: Store) -> None:
    jobs: list[JobId] = [await enqueue(store) for _ in range(5)]
    settings = McpSettings(commands=True, jobs_per_call=3)
    async with agents.client(settings=settings) as client:
        assert "one call may touch 3" in await refused(client, "cancel", jobs=jobs, why=WHY)
        assert "one call may touch 3" in await refused(client, "cancel", search="kind:greet", limit=4, why=WHY)
        planned, done = await both(client, "cancel", search="kind:greet")
        assert planned["more_match"]
        assert len(done["jobs"]) == 3
    assert sum([await state_of(store, job) is JobState.CANCELLED for job in jobs]) == 3


async def test_a_command_says_what_is_wrong_with_its_arguments(agents: Agents, store: Store) -> None:
    ready = await enqueue(store)
    async with agents.client() as client:
        assert "why" in await refused(client, "cancel", jobs=[ready])
        assert "only one of them" in await refused(client, "cancel", jobs=[ready], search="kind:greet", why=WHY)
        assert "must not be empty" in await refused(client, "cancel", search=" ", why=WHY)
        assert "there is no job" in await refused(client, "cancel", jobs=["nope"], why=WHY)
        assert "it is ready" in await refused(client, "requeue", jobs=[ready], why=WHY)
        planned = await ask(client, "cancel", jobs=[ready, "nope"], why=WHY)
        assert planned["notes"] == ["There is no job nope."]


async def test_each_command_needs_the_scope_operate_and_refusals_are_few_in_the_trail(
    agents: Agents, store: Store
) -> None:
    calls: dict[str, dict[str, Any]] = {
        "requeue": {"search": "kind:x"},
        "cancel": {"search": "kind:x"},
        "run_now": {"search": "kind:x"},
        "pause": {"queue": "x"},
        "resume": {"queue": "x"},
        "trigger_schedule": {"name": "x"},
        "answer_approval": {"job": "x", "question": "x", "approved": True},
    }
    assert set(calls) == {spec.name for spec in TOOLS if spec.is_command}
    async with agents.client(Scope.READ) as client:
        for tool, arguments in [*calls.items(), *calls.items()]:
            told = await refused(client, tool, why=WHY, **arguments)
            assert f"{tool} needs the scope operate" in told
            assert "perdure token create --scope operate" in told
    assert len((await Desk(store, "test").audit(action="agent_refused")).entries) == 10
