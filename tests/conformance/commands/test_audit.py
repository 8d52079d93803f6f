"""AuditStore: who did what, what the engine writes of its own, and who cancelled a job."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import apsw
import psycopg
import pytest
from msgspec.structs import replace
from tests.support.builders.families import start_parent
from tests.support.builders.jobs import (
    A_FAILURE,
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    a_key,
    apply,
    claim_one,
    employ,
    enqueue,
    job_in,
    only,
    show,
    start,
)
from tests.support.builders.transitions import EVERY_TRANSITION
from tests.support.databases.behind import query

from perdure.clock import ManualClock
from perdure.domain.jobs import transition
from perdure.domain.jobs.ids import JobId, new_job_id
from perdure.domain.jobs.states import JobState, Reason
from perdure.domain.operate.audit import ActorType, Audited, AuditEntry, By, Note, actor_type
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.port import Store
from perdure.storage.records import Alongside, JobFilter, Keep

EVERYTHING = frozenset(Audited)


async def trail(store: Store, **which: Any) -> list[AuditEntry]:
    return await store.audit(AuditFilter(**which), 100)


async def told(store: Store, **which: Any) -> list[tuple[str, str, JobId | None]]:
    return [(entry.actor, entry.action, entry.job_id) for entry in await trail(store, **which)]


async def test_an_entry_is_added_and_read(store: Store, clock: ManualClock) -> None:
    job_id = await enqueue(store)
    added = await store.record(
        By("app:shop", "month's end", "code"),
        Note(action="invoice.sent", job_id=job_id, jobs=1, details={"to": "ada", "sum": [1, 2.5, None]}),
    )
    assert (added.at, added.actor, added.action, added.job_id) == (clock.now(), "app:shop", "invoice.sent", job_id)
    assert added.details == {"to": "ada", "sum": [1, 2.5, None]}
    assert (added.why, added.source, added.jobs, added.bulk) == ("month's end", "code", 1, None)
    assert added.actor_type is ActorType.APPLICATION
    assert await trail(store) == [added]
    alone = await store.record(By("ada"), Note(action="reviewed"))
    assert (alone.job_id, alone.details) == (None, {})
    assert await trail(store) == [alone, added]


async def test_entries_are_found_by_job_actor_action_and_time(store: Store, clock: ManualClock) -> None:
    one, two, start = new_job_id(), new_job_id(), clock.now()
    for actor, action, job_id in (
        ("ada", "read", one),
        ("bob", "read", two),
        ("ada", "sent", two),
        ("ada", "read", None),
    ):
        await store.record(By(actor), Note(action=action, job_id=job_id))
        clock.move(HOUR)
    everything = [("ada", "read", None), ("ada", "sent", two), ("bob", "read", two), ("ada", "read", one)]
    assert await told(store) == everything
    assert await told(store, job_id=two) == everything[1:3]
    assert await told(store, actor="ada") == [everything[0], everything[1], everything[3]]
    assert await told(store, action="read") == [everything[0], everything[2], everything[3]]
    assert await told(store, actor="ada", action="read") == [everything[0], everything[3]]
    assert await told(store, job_id=two, actor="bob") == [everything[2]]
    assert await told(store, since=start + 2 * HOUR) == everything[:2]
    assert await told(store, until=start + 2 * HOUR) == everything[2:]
    assert await told(store, action="read", since=start + HOUR, until=start + 3 * HOUR) == [everything[2]]
    assert await told(store, actor="ada", until=start + 3 * HOUR) == [everything[1], everything[3]]
    assert await told(store, job_id=two, since=start + 2 * HOUR) == [everything[1]]
    assert await told(store, actor="nobody") == await told(store, job_id=new_job_id()) == []


@pytest.mark.parametrize("which", [{}, {"actor": "ada"}, {"action": "read"}, {"job_id": True}], ids=str)
async def test_pages_of_the_trail_skip_nothing(store: Store, clock: ManualClock, which: dict[str, Any]) -> None:
    """Also among entries of one moment, and where the clock was put back."""
    job_id = new_job_id()
    for number in range(9):
        clock.move((SECOND, -2 * SECOND, 0 * SECOND)[number % 3])
        await store.record(By("ada"), Note(action="read", job_id=job_id, details={"number": number}))
        await store.record(By("bob"), Note(action="sent", job_id=new_job_id()))
    asked = AuditFilter(**({"job_id": job_id} if which.get("job_id") else which))
    every = await store.audit(asked, 100)
    assert every == sorted(every, key=lambda entry: (entry.at, entry.id), reverse=True)
    assert len(every) == (9 if which else 18)
    seen: list[AuditEntry] = []
    while page := await store.audit(asked, 4, seen[-1].id if seen else None):
        seen += page
    assert seen == every
    assert await store.audit(asked, 4, 10**12) == []


async def test_commands_are_in_the_trail_with_their_details(store: Store) -> None:
    job_id = await enqueue(store, delay=HOUR)
    await store.cancel(only(job_id), By("ada", "not needed", "cli"), 1)
    [entry] = await trail(store)
    assert (entry.actor, entry.action, entry.job_id) == ("ada", "cancel", job_id)
    assert (entry.why, entry.source, entry.jobs) == ("not needed", "cli", 1)
    assert entry.actor_type is ActorType.PERSON
    await store.purge(only(job_id), By("ada"), 1)
    assert await told(store, job_id=job_id) == [("ada", "purge", job_id), ("ada", "cancel", job_id)]


async def test_each_command_notes_what_it_has_found(store: Store, clock: ManualClock) -> None:
    """The same on both engines: how the job was before, and how it is after, unless it is gone."""
    job_id = await enqueue(store, delay=HOUR)
    was_due, new = clock.now() + HOUR, clock.now() + 2 * HOUR
    await store.reschedule(only(job_id), new, By("ada"), 1)
    await store.run_now(only(job_id), By("ada"), 1)
    claim = await claim_one(store, await employ(store))
    await store.cancel(only(job_id), By("ada", "not needed"), 1)
    await apply(store, transition.cancelled(claim, None))
    await store.requeue(only(job_id), By("ada"), 1)
    await store.cancel(only(job_id), By("ada"), 1)
    await store.mark(only(job_id), "read", By("ada"), 1)
    await store.purge(only(job_id), By("ada"), 1)
    other = await enqueue(store)
    await store.delete(only(other), By("ada"), 1)
    entries = await trail(store)
    assert [
        (entry.action, *(_timed(entry.details.get(when)) for when in ("before", "after"))) for entry in entries
    ] == [
        ("delete", {"state": "ready", "kind": "greet"}, None),
        ("purge", {"state": "cancelled", "kind": "greet"}, None),
        ("mark", {"mark": None}, {"mark": "read"}),
        ("cancel", {"state": "ready"}, {"state": "cancelled"}),
        ("requeue", {"state": "cancelled", "mark": None}, {"state": "ready"}),
        ("cancel", {"state": "running"}, {"state": "running", "stop_requested": True}),
        ("run_now", {"state": "scheduled", "due_at": new}, {"state": "ready"}),
        ("reschedule", {"due_at": was_due}, {"due_at": new}),
    ]
    assert {(entry.actor, entry.jobs) for entry in entries} == {("ada", 1)}


def _timed(facts: dict[str, Any] | None) -> dict[str, Any] | None:
    """The facts with their time as a time: the engines write it in different words."""
    when = {} if facts is None or facts.get("due_at") is None else {"due_at": datetime.fromisoformat(facts["due_at"])}
    return None if facts is None else facts | when


@pytest.mark.parametrize(
    ("actor", "sort"),
    [
        ("system", "system"),
        ("schedule nightly", "system"),
        ("app", "application"),
        ("app:billing", "application"),
        ("cli:ada@host", "person"),
        ("apple", "person"),
    ],
)
def test_the_name_of_an_actor_gives_its_type(actor: str, sort: str) -> None:
    assert actor_type(actor) == sort


async def test_a14_a_retry_is_written_down_by_the_system(store: Store, clock: ManualClock) -> None:
    claim = await start(store, max_attempts=5)
    move = transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE)
    assert (await store.acknowledge([move], {Audited.RETRY})).applied == 1
    [entry] = await trail(store)
    assert (entry.actor, entry.actor_type, entry.action) == ("system", "system", "job_retry")
    assert (entry.job_id, entry.at) == (claim.job_id, clock.now())
    assert entry.details == {"old_status": "running", "new_status": "retrying", "attempts": 1, "max_attempts": 5}
    assert await trail(store, actor="system") == await trail(store, action="job_retry") == [entry]


NOTED = {
    "failed": ("job_retry", "retrying"),
    "failed, again at once": ("job_retry", "ready"),
    "timed out": ("job_retry", "retrying"),
    "exhausted": ("job_death", "dead"),
    "out of time": ("job_death", "dead"),
    "permanent": ("job_death", "dead"),
    "bad arguments": ("job_death", "dead"),
    "unhandled": ("job_death", "dead"),
    "crashed": ("job_rescue", "ready"),
    "crashed for good": ("job_death", "dead"),
    "cancelled": ("job_cancel", "cancelled"),
}


@pytest.mark.parametrize("name", EVERY_TRANSITION)
async def test_a14_transitions_of_note_are_written_down_and_no_others(store: Store, name: str) -> None:
    claim = await start(store)
    move = EVERY_TRANSITION[name](claim)
    await store.acknowledge([move], EVERYTHING)
    entries = await trail(store)
    assert [(entry.action, entry.details["new_status"]) for entry in entries] == [
        NOTED[each] for each in NOTED if each == name
    ]
    for entry in entries:
        assert entry.details["attempts"] == move.failures + move.crashes
        assert entry.details["max_attempts"] is None


@pytest.mark.parametrize("name", NOTED)
async def test_a14_switched_off_nothing_is_written_and_all_works_the_same(store: Store, name: str) -> None:
    claim = await start(store)
    other = frozenset(audited for audited in Audited if audited.action != NOTED[name][0])
    assert (await store.acknowledge([EVERY_TRANSITION[name](claim)], other)).applied == 1
    again = await start(store, queue="again")
    await apply(store, EVERY_TRANSITION[name](again))
    assert await trail(store) == []
    ends = [replace(await show(store, job_id), last_error=None) for job_id in (claim.job_id, again.job_id)]
    assert ends[0].state == ends[1].state == NOTED[name][1]
    assert ends[0].failures == ends[1].failures


async def test_a_stale_move_is_not_written_down(store: Store) -> None:
    claim = await start(store)
    await apply(store, transition.released(claim))
    failed = transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE)
    assert (await store.acknowledge([failed], EVERYTHING)).stale == (claim,)
    fresh = await claim_one(store, await employ(store))
    both = [failed, transition.retrying(fresh, Reason.FAILED, A_FAILURE, MINUTE)]
    assert (await store.acknowledge(both, EVERYTHING)).applied == 1
    assert await told(store) == [("system", "job_retry", claim.job_id)]


async def test_a_retry_that_waits_for_its_key_says_so(store: Store) -> None:
    key = a_key(states={JobState.READY, JobState.RETRYING})
    claim = await start(store, unique=key)
    await store.insert([a_job(unique=key, queue="other")])
    await store.acknowledge([transition.retrying(claim, Reason.FAILED, A_FAILURE, HOUR)], EVERYTHING)
    [entry] = await trail(store)
    assert entry.details["new_status"] == (await show(store, claim.job_id)).state == "paused"


async def test_an_attempt_of_a_job_that_is_called_off_is_written_down_as_cancelled(store: Store) -> None:
    """Whatever became of the attempt: it would have been a retry."""
    claim = await start(store)
    await store.cancel(only(claim.job_id), By("ada", "enough"), 1)
    assert (await show(store, claim.job_id)).cancelled_by == "ada"
    await store.acknowledge([transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE)], EVERYTHING)
    assert await told(store) == [("system", "job_cancel", claim.job_id), ("ada", "cancel", claim.job_id)]
    view = await show(store, claim.job_id)
    assert (view.state, view.cancelled_by) == (JobState.CANCELLED, "ada")


async def test_what_commits_with_a_handler_is_written_down_with_it(store: Store) -> None:
    claim, children = await start_parent(store, 1)
    effects = await store.begin_effects()
    done = replace(transition.succeeded(claim, None, ()), is_parent=True)
    await effects.commit_with(done, Alongside(audit=EVERYTHING))
    assert await told(store) == [("system", "job_cancel", children[0])]


@pytest.mark.parametrize("audited", [True, False])
async def test_children_cancelled_with_their_parent_are_the_systems_doing(store: Store, audited: bool) -> None:
    claim, children = await start_parent(store, 2)
    running = await claim_one(store, await employ(store), "children")
    died = replace(transition.died(claim, Reason.PERMANENT, A_FAILURE), is_parent=True)
    await store.acknowledge([died], {Audited.CANCEL} if audited else ())
    for child in children:
        view = await show(store, child)
        assert (view.state, view.cancelled_by, view.reason) == ("cancelled", "system", "cancelled: parent job died")
    noted = {entry.job_id: entry.details["old_status"] for entry in await trail(store, action="job_cancel")}
    expected = {child: "running" if child == running.job_id else "ready" for child in children}
    assert noted == (expected if audited else {})


async def test_children_cancelled_by_a_command_are_written_down_like_the_command(store: Store) -> None:
    claim, [child] = await start_parent(store, 1)
    await store.delete(only(claim.job_id), By("ada"), 1)
    assert set(await told(store)) == {("ada", "delete", claim.job_id), ("system", "job_cancel", child)}
    assert (await show(store, child)).cancelled_by == "system"


async def test_who_cancelled_a_job_is_on_its_view_until_its_new_life(store: Store) -> None:
    for state in (JobState.SCHEDULED, JobState.READY):
        job_id = await job_in(state, store)
        assert (await show(store, job_id)).cancelled_by is None
        await store.cancel(only(job_id), By("ada"), 1)
        assert (await show(store, job_id)).cancelled_by == "ada"
        await store.requeue(only(job_id), By("bob"), 1)
        assert (await show(store, job_id)).cancelled_by is None
        await store.delete(JobFilter(), By("ada"), 10)
    assert (await show(store, await job_in(JobState.CANCELLED, store))).cancelled_by == "handler"
    assert (await show(store, await job_in(JobState.DEAD, store))).cancelled_by is None


async def test_old_entries_are_forgotten_if_that_is_asked_for(store: Store, clock: ManualClock) -> None:
    await store.record(By("ada"), Note(action="old"))
    clock.move(2 * HOUR)
    new = await store.record(By("ada"), Note(action="new"))
    await store.prune(Keep(), 10)
    assert len(await trail(store)) == 2
    await store.prune(Keep(audit_trail="1h"), 10)
    assert await trail(store) == [new]


async def test_entries_are_found_by_surface_and_by_address(store: Store) -> None:
    for source in ("cli", "desk 10.0.0.7", "desk 10.0.0.8", "desktop", None):
        await store.record(By("ada", source=source), Note(action="read"))
    assert [entry.source for entry in await trail(store, source="desk")] == ["desk 10.0.0.8", "desk 10.0.0.7"]
    assert [entry.source for entry in await trail(store, source="desk 10.0.0.7")] == ["desk 10.0.0.7"]
    assert [entry.source for entry in await trail(store, source="cli", actor="ada")] == ["cli"]


@pytest.mark.parametrize("change", ["UPDATE {audit} SET actor = 'bob'", "DELETE FROM {audit}"])
async def test_the_database_refuses_to_change_or_delete_entries(store: Store, engine_url: str, change: str) -> None:
    added = await store.record(By("ada"), Note(action="read"))
    with pytest.raises((apsw.Error, psycopg.Error), match="append-only"):
        query(engine_url, change)
    assert await trail(store) == [added]


async def test_entries_of_an_older_release_are_read(store: Store, engine_url: str) -> None:
    """It knows no reason, no source and no count, and wrote the state before under another name."""
    job_id, at = new_job_id(), "1" if engine_url.startswith("sqlite") else "now()"
    values = f"""VALUES ({at}, 'ada', 'requeue', '{job_id}', '{{"from": "dead"}}')"""
    query(engine_url, f"INSERT INTO {{audit}} (at, actor, action, job_id, details) {values}")
    [entry] = await trail(store)
    assert (entry.why, entry.source, entry.jobs, entry.bulk) == (None, None, 1, None)
    assert (entry.job_id, entry.details) == (job_id, {"from": "dead"})
