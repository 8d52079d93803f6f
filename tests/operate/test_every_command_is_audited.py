"""Whatever the desk, its calendar and its holds can change, the audit trail says who, why and from where."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

import pytest
from tests.support.builders.jobs import DAY, HOUR, MINUTE, a_job, employ, job_in

from perdure.clock import ManualClock
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.audit import By
from perdure.domain.schedule import Schedule
from perdure.operate.alerts.commands import Alerts
from perdure.operate.alerts.rules import make_rule
from perdure.operate.commands.actions import CANCEL
from perdure.operate.commands.calendar import Calendar
from perdure.operate.commands.feed import Feed
from perdure.operate.commands.holds import Holds
from perdure.operate.commands.webhooks import Webhooks
from perdure.operate.desk import Desk
from perdure.operate.health.checkup import repair
from perdure.storage.port import Store
from perdure.storage.records import JobFilter

WHY = "because I say so"
Command = Callable[[Desk, Store], Awaitable[object]]
NIGHTLY = Schedule(name="nightly", kind="greet", expression="@hourly")


async def _requeue(desk: Desk, store: Store) -> object:
    return await desk.requeue(await job_in(JobState.DEAD, store), why=WHY)


async def _parked(store: Store) -> str:
    return await job_in(JobState.SCHEDULED, store)


async def _bulk(desk: Desk, store: Store) -> str:
    await job_in(JobState.DEAD, store)
    return (await desk.start_bulk(await desk.plan("requeue", JobFilter()), why=WHY)).id


async def _scheduled(desk: Desk) -> Calendar:
    await desk.calendar.save(NIGHTLY, why=WHY)
    return desk.calendar


async def _stop_bulk(desk: Desk, store: Store) -> object:
    return await desk.stop_bulk(await _bulk(desk, store), why=WHY)


async def _quiet(desk: Desk, store: Store) -> object:
    await employ(store)
    return await desk.quiet(why=WHY)


async def _resume(desk: Desk, _: Store) -> object:
    await desk.holds.pause(queue="mail", why=WHY)
    return await desk.holds.resume(everything=True, why=WHY)


async def _close_breaker(desk: Desk, _: Store) -> object:
    await desk.holds.open_breaker("bank", why=WHY)
    return await desk.holds.close_breaker("bank", why=WHY)


async def _pause_schedule(desk: Desk, _: Store) -> object:
    return await (await _scheduled(desk)).pause("nightly", why=WHY)


async def _resume_schedule(desk: Desk, store: Store) -> object:
    await _pause_schedule(desk, store)
    return await desk.calendar.resume("nightly", why=WHY)


async def _delete_schedule(desk: Desk, _: Store) -> None:
    await (await _scheduled(desk)).delete("nightly", why=WHY)


async def _trigger(desk: Desk, _: Store) -> object:
    return await (await _scheduled(desk)).trigger("nightly", why=WHY)


async def _backfill(desk: Desk, store: Store) -> object:
    now = await store.now()
    return await (await _scheduled(desk)).backfill("nightly", now - 3 * HOUR, now, why=WHY)


async def _revoke(desk: Desk, _: Store) -> object:
    await desk.create_token("ci", "read", why=WHY)
    return await desk.revoke_token("ci", why=WHY)


async def _act(desk: Desk, store: Store) -> object:
    return await desk.act(CANCEL, await _parked(store), why=WHY)


async def _on_parked(command: Callable[..., Awaitable[object]], store: Store, *words: object) -> object:
    return await command(await _parked(store), *words, why=WHY)


async def _on_dated(desk: Desk, store: Store) -> object:
    return await desk.reschedule(await _parked(store), await store.now() + DAY, why=WHY)


async def _on_dead(desk: Desk, store: Store) -> object:
    return await desk.purge(await job_in(JobState.DEAD, store), why=WHY)


async def _answer(desk: Desk, store: Store) -> object:
    return await desk.answer(await _parked(store), "ship it?", approved=True, why=WHY)


async def _switch_off(desk: Desk, _: Store) -> object:
    await desk.feed.switch_on(why=WHY)
    return await desk.feed.switch_off(why=WHY)


async def _hooked(desk: Desk) -> Webhooks:
    await desk.webhooks.save("crm", "https://crm.example/", why=WHY)
    return desk.webhooks


async def _on_webhook(desk: Desk, command: str) -> object:
    return await getattr(await _hooked(desk), command)("crm", why=WHY)


MAIL = "smtp://localhost/?from=a@example.com&to=b@example.com"


async def _channel(desk: Desk) -> Alerts:
    await desk.alerts.save_channel("ops", MAIL, why=WHY)
    return desk.alerts


async def _rule(desk: Desk) -> Alerts:
    await (await _channel(desk)).save(make_rule("deaths", "job_died", to="ops"), why=WHY)
    return desk.alerts


async def _pause_rule(desk: Desk, _: Store) -> object:
    return await (await _rule(desk)).pause("deaths", why=WHY)


async def _resume_rule(desk: Desk, store: Store) -> object:
    await _pause_rule(desk, store)
    return await desk.alerts.resume("deaths", why=WHY)


async def _delete_rule(desk: Desk, _: Store) -> object:
    await (await _rule(desk)).delete("deaths", why=WHY)
    return None


async def _delete_channel(desk: Desk, _: Store) -> object:
    await (await _channel(desk)).delete_channel("ops", why=WHY)
    return None


async def _test_channel(desk: Desk, _: Store) -> object:
    return await (await _channel(desk)).test("ops", why=WHY)


COMMANDS: dict[str, Command] = {
    "Feed.switch_on": lambda desk, _: desk.feed.switch_on(why=WHY),
    "Feed.switch_off": _switch_off,
    "Webhooks.save": lambda desk, _: _hooked(desk),
    "Webhooks.new_secret": lambda desk, _: _on_webhook(desk, "new_secret"),
    "Webhooks.pause": lambda desk, _: _on_webhook(desk, "pause"),
    "Webhooks.resume": lambda desk, _: _on_webhook(desk, "resume"),
    "Webhooks.delete": lambda desk, _: _on_webhook(desk, "delete"),
    "Webhooks.test": lambda desk, _: _on_webhook(desk, "test"),
    "Alerts.save": lambda desk, _: _rule(desk),
    "Alerts.pause": _pause_rule,
    "Alerts.resume": _resume_rule,
    "Alerts.delete": _delete_rule,
    "Alerts.save_channel": lambda desk, _: _channel(desk),
    "Alerts.delete_channel": _delete_channel,
    "Alerts.test": _test_channel,
    "Desk.enqueue": lambda desk, _: desk.enqueue(a_job(), why=WHY),
    "Desk.requeue": _requeue,
    "Desk.cancel": lambda desk, store: _on_parked(desk.cancel, store),
    "Desk.run_now": lambda desk, store: _on_parked(desk.run_now, store),
    "Desk.delete": lambda desk, store: _on_parked(desk.delete, store),
    "Desk.act": _act,
    "Desk.mark": lambda desk, store: _on_parked(desk.mark, store, "read"),
    "Desk.reschedule": _on_dated,
    "Desk.purge": _on_dead,
    "Desk.quiet": _quiet,
    "Desk.answer": _answer,
    "Desk.emit": lambda desk, _: desk.emit("paid:42", None, why=WHY),
    "Desk.record": lambda desk, _: desk.record("reviewed", why=WHY),
    "Desk.start_bulk": _bulk,
    "Desk.stop_bulk": _stop_bulk,
    "Desk.create_token": lambda desk, _: desk.create_token("ci", "read", why=WHY),
    "Desk.revoke_token": _revoke,
    "Calendar.save": lambda desk, _: desk.calendar.save(NIGHTLY, why=WHY),
    "Calendar.pause": _pause_schedule,
    "Calendar.resume": _resume_schedule,
    "Calendar.delete": _delete_schedule,
    "Calendar.trigger": _trigger,
    "Calendar.backfill": _backfill,
    "Holds.pause": lambda desk, _: desk.holds.pause(queue="mail", why=WHY),
    "Holds.resume": _resume,
    "Holds.open_breaker": lambda desk, _: desk.holds.open_breaker("bank", why=WHY),
    "Holds.close_breaker": _close_breaker,
}
# Methods that change nothing; the batches of a bulk command act under the name of its starter. A method that is in
# neither list fails the test: say which it is.
LOOKS = {
    "alerts",
    "channel",
    "channels",
    "history",
    "notice",
    "notices",
    "open",
    "rule",
    "rules",
    "approvals",
    "compare",
    "asks",
    "attention",
    "audit",
    "breakers",
    "budgets",
    "bulk",
    "bulks",
    "by",
    "calendar",
    "check_token",
    "children",
    "children_of",
    "count",
    "database_problems",
    "count_by",
    "dead_letters",
    "details",
    "events",
    "failure_group",
    "failure_groups",
    "fates_of",
    "feed",
    "filter",
    "flows",
    "holds",
    "job",
    "job_by_ref",
    "jobs",
    "kinds",
    "limits",
    "meaning",
    "nominal_times",
    "now",
    "overdue",
    "overview",
    "pauses",
    "check_pause",
    "preview_pause",
    "preview_resume",
    "plan",
    "preview",
    "queues",
    "retrying",
    "schedule",
    "schedules",
    "spent",
    "state",
    "statistics",
    "steps",
    "suggestions",
    "tokens",
    "webhook",
    "webhooks",
    "why",
    "work_on_bulk",
    "workers",
}


def methods() -> list[str]:
    """Everything that the desk and its parts offer."""
    return [
        f"{part.__name__}.{name}"
        for part in (Desk, Calendar, Holds, Feed, Webhooks, Alerts)
        for name, _ in inspect.getmembers(part)
        if not name.startswith("_") and name not in {"actor", "source"}
    ]


def test_every_method_is_a_look_or_a_command() -> None:
    unknown = [name for name in methods() if name not in COMMANDS and name.partition(".")[2] not in LOOKS]
    assert unknown == [], "audited? Add it to COMMANDS. Changes nothing? Add it to LOOKS."


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_command_says_who_why_and_from_where(store: Store, clock: ManualClock, name: str) -> None:
    clock.move(MINUTE)
    desk = Desk(store, "ada", "api 10.0.0.7")
    before = {entry.id for entry in (await desk.audit(limit=100)).entries}
    await COMMANDS[name](desk, store)
    written = [entry for entry in (await desk.audit(limit=100)).entries if entry.id not in before]
    assert written, f"{name} wrote no entry"
    assert {(entry.actor, entry.why, entry.source) for entry in written} == {("ada", WHY, "api 10.0.0.7")}
    makes = {
        "Desk.record",
        "Desk.emit",
        "Calendar.trigger",
        "Calendar.backfill",
        "Alerts.test",
    }  # a job, an event or an entry
    assert name in makes or all({"before", "after"} & entry.details.keys() for entry in written), written


async def test_a_repair_is_recorded(store: Store, clock: ManualClock) -> None:
    clock.move(DAY)
    job_id = await job_in(JobState.RETRYING, store)
    clock.move(-DAY)
    assert await repair(store, By("ada", WHY, "cli")) == 1
    [entry] = (await Desk(store, "ada").audit(action="redate")).entries
    assert (entry.job_id, entry.actor, entry.why, entry.source) == (job_id, "ada", WHY, "cli")
    assert entry.details["before"]["due_at"] > entry.details["after"]["due_at"]
