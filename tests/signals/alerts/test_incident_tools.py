"""Tools that keep incidents are played by real receivers: PagerDuty's Events API v2 and OpsGenie's Alert API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from apprise.manager_plugins import NotificationManager
from apprise.plugins import opsgenie, pagerduty
from msgspec.structs import replace
from tests.signals.alerts.test_mail import a_notice
from tests.support.builders.jobs import a_job
from tests.support.receiver import Received, receiving, says

from perdure import App
from perdure.clock import SystemClock
from perdure.domain.alerts.alert import DeliveryState, Notice, NoticeSort, Opening
from perdure.domain.alerts.rule import AlertSeverity
from perdure.operate.alerts.addresses import INCIDENT_TOOLS
from perdure.operate.alerts.evaluation import Evaluation
from perdure.operate.alerts.rules import make_rule
from perdure.operate.desk import Desk
from perdure.signals.alerts.delivery import deliver_notice
from perdure.signals.alerts.errors import DeliveryFailed
from perdure.signals.alerts.services import notify_service
from perdure.storage.records import JobFilter

TOOLS = ["pagerduty", "opsgenie"]
ADDRESSES = {
    "pagerduty": f"pagerduty://{'i' * 32}@{'a' * 20}",
    "opsgenie": "opsgenie://a1brtd4j-dtii-ajkd-nlaz",
}


class Tool:
    """What the receiver was asked for, and which incidents are open by that."""

    def __init__(self, received: list[Received]) -> None:
        self.received = received

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Each request: trigger or resolve, and the key."""
        return [_pagerduty(one.json()) if "/enqueue" in one.line else _opsgenie(one) for one in self.received]

    @property
    def open(self) -> set[str]:
        found: set[str] = set()
        for action, key in self.asked:
            (found.add if action == "trigger" else found.discard)(key)
        return found


def _pagerduty(event: dict[str, Any]) -> tuple[str, str]:
    assert event["routing_key"] == "i" * 32
    return event["event_action"], event["dedup_key"]


def _opsgenie(request: Received) -> tuple[str, str]:
    assert request.headers["authorization"] == "GenieKey a1brtd4j-dtii-ajkd-nlaz"
    method, target, _ = request.line.split(" ")
    assert method == "POST"
    if target == "/v2/alerts":
        return "trigger", request.json()["alias"]
    path, _, query = target.partition("?")
    assert query == "identifierType=alias"
    return "resolve", path.removeprefix("/v2/alerts/").removesuffix("/close")


@asynccontextmanager
async def playing(tool: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Tool, Any]]:
    """The tool, and its receiver."""
    async with receiving() as hook:
        hook.status, hook.body = 202, b'{"status": "success", "requestId": "1"}'
        base = f"http://127.0.0.1:{hook.port}"
        monkeypatch.setitem(opsgenie.OPSGENIE_API_LOOKUP, "us", f"{base}/v2/alerts")
        monkeypatch.setitem(pagerduty.PAGERDUTY_API_LOOKUP, "us", f"{base}/v2/enqueue")
        monkeypatch.setenv("PAGER", ADDRESSES[tool])
        yield Tool(hook.received), hook


async def evaluated(app: App) -> list[Notice]:
    return list((await Evaluation(await app.store(), SystemClock()).run()).notices)


async def delivered(app: App) -> list[Notice]:
    """What an evaluation reports, after its deliveries."""
    notices = await evaluated(app)
    for notice in notices:
        for one in notice.deliveries:
            await deliver_notice(await app.store(), notice.id, one.channel)
    return notices


async def fill(app: App, *queues: str) -> None:
    await (await app.store()).insert([a_job(queue=queue) for queue in queues])


async def empty(app: App, queue: str) -> None:
    await (await app.desk("ops")).cancel(JobFilter(queue=queue))


async def pager_for(app: App, **options: Any) -> Desk:
    desk = await app.desk("ops")
    await desk.alerts.save_channel("pager", "env:PAGER", allow_private=True)
    await desk.alerts.save(make_rule("deep", "depth", limit=1, to="pager", **options))
    await evaluated(app)
    return desk


@pytest.mark.parametrize("tool", TOOLS)
async def test_causes_that_end_one_by_one_leave_no_incident_open(
    app: App, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    async with playing(tool, monkeypatch) as (tells, _):
        await pager_for(app)
        await fill(app, "mail", "pulse")
        await delivered(app)
        assert [action for action, _ in tells.asked] == ["trigger"]
        await fill(app, "late")
        await delivered(app)
        assert len(tells.open) == 2, "a new cause pages, too"
        await empty(app, "mail")
        await delivered(app)
        assert len(tells.open) == 2
        await empty(app, "pulse")
        await delivered(app)
        assert len(tells.open) == 1
        await empty(app, "late")
        await delivered(app)
        assert tells.open == set()
        assert len(tells.asked) == 4


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_thousand_causes_at_once_are_one_request_and_their_end_is_another(
    app: App, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    async with playing(tool, monkeypatch) as (tells, _):
        desk = await pager_for(app)
        await fill(app, *(f"queue-{number}" for number in range(1_000)))
        await delivered(app)
        await desk.alerts.delete("deep")
        await delivered(app)
    assert [action for action, _ in tells.asked] == ["trigger", "resolve"]
    assert tells.open == set()


@pytest.mark.parametrize("tool", TOOLS)
async def test_an_opening_that_is_retried_past_the_end_leaves_no_incident_open(
    app: App, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    """The tool refuses the trigger; the resolve overtakes it."""
    async with playing(tool, monkeypatch) as (tells, hook):
        await pager_for(app)
        await fill(app, "mail")
        [opening] = await evaluated(app)
        hook.script.append(says(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"))
        with pytest.raises(DeliveryFailed):
            await deliver_notice(await app.store(), opening.id, "pager")
        tells.received.clear()
        await empty(app, "mail")
        await delivered(app)
        await deliver_notice(await app.store(), opening.id, "pager", 2)
        assert {action for action, _ in tells.asked} == {"resolve"}


@pytest.mark.parametrize("tool", TOOLS)
async def test_an_end_that_comes_while_the_opening_is_under_way_is_resolved_by_the_opening(
    app: App, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    async with playing(tool, monkeypatch) as (tells, hook):
        await pager_for(app)
        await fill(app, "mail")
        [opening] = await evaluated(app)

        async def end_meanwhile(writer: Any) -> None:
            await empty(app, "mail")
            [ended] = await evaluated(app)
            await deliver_notice(await app.store(), ended.id, "pager")
            await hook._plain(writer)

        hook.script.append(end_meanwhile)
        await deliver_notice(await app.store(), opening.id, "pager")
        assert tells.asked[-1][0] == "resolve"
        assert tells.open == set()


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_resolve_that_is_refused_is_retried_and_one_of_an_incident_that_is_gone_is_done(
    app: App, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    async with playing(tool, monkeypatch) as (tells, hook):
        await pager_for(app)
        await fill(app, "mail")
        await delivered(app)
        await empty(app, "mail")
        [over] = await evaluated(app)
        hook.script.append(says(b"HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n"))
        with pytest.raises(DeliveryFailed) as failed:
            await deliver_notice(await app.store(), over.id, "pager")
        assert "a1brtd4j" not in str(failed.value), "the key is a secret"
        assert "iiii" not in str(failed.value)
        if tool == "opsgenie":
            hook.script.append(says(b"HTTP/1.1 404 Gone\r\nContent-Length: 0\r\n\r\n"))
        await deliver_notice(await app.store(), over.id, "pager", 2)
        found = await (await app.store()).notice(over.id)
        assert found is not None
        assert [one.state for one in found.deliveries] == [DeliveryState.SENT]
        assert tells.open == set()


@pytest.mark.parametrize("tool", TOOLS)
async def test_the_incident_of_a_broken_channel_ends_when_it_works_again_and_a_test_is_one_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    broken = replace(a_notice(), sort=NoticeSort.CHANNEL, severity=AlertSeverity.CRITICAL, keys=("mail",))
    works = replace(broken, id="another", severity=AlertSeverity.INFO)
    test = replace(a_notice(), id="a test", sort=NoticeSort.TEST)
    async with playing(tool, monkeypatch) as (tells, _):
        for notice in (broken, works, test):
            await notify_service(tool, ADDRESSES[tool], notice, allow_private=True, is_open=_open)
    assert [action for action, _ in tells.asked] == ["trigger", "resolve", "trigger"]
    assert tells.asked[0][1] == tells.asked[1][1] != tells.asked[2][1]


async def test_a_death_is_reported_again_to_its_own_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 deaths of one cause are one incident, which a person ends; a late delivery still opens it."""
    death = replace(a_notice(), opens=(Opening(key="perdure-1", ends=False),))
    async with playing("pagerduty", monkeypatch) as (tells, _):
        for notice in (death, replace(death, id="more", count=10_000)):
            await notify_service("pagerduty", ADDRESSES["pagerduty"], notice, allow_private=True, is_open=_over)
    assert tells.asked == [("trigger", "perdure-1")] * 2


async def test_other_services_get_no_message_about_incidents() -> None:
    over = replace(a_notice(), sort=NoticeSort.RECOVERY, alerts=0, resolves=("perdure-1",))
    async with receiving() as hook:
        address = f"mmost://127.0.0.1:{hook.port}/{'a' * 26}"
        await notify_service("mmost", address, over, allow_private=True, is_open=_over)
        assert hook.connections == 0
        address = f"goalert://127.0.0.1:{hook.port}/11111111-2222-3333-4444-555555555555"
        await notify_service("goalert", address, over, allow_private=True, is_open=_over)
    assert [one.json()["action"] for one in hook.received] == ["close"]


def test_the_schemes_of_tools_that_keep_incidents_are_those_of_apprise() -> None:
    manager: Any = NotificationManager()  # type: ignore[no-untyped-call] # it has no types
    manager.load_modules()
    found: set[str] = set()
    for plugin in manager.plugins():
        arguments: dict[str, Any] = plugin.template_args
        if "map" in (arguments.get("action", {}).get("values") or ()) and {"dedup", "alias"} & arguments.keys():
            for names in (plugin.protocol, plugin.secure_protocol):
                found |= {names} if isinstance(names, str) else set(names or ())
    assert found >= INCIDENT_TOOLS
    assert found - INCIDENT_TOOLS <= {"signl4", "pagertree", "splunk", "victorops"}, "these have no key of ours"


async def _open(_key: str) -> bool:
    return True


async def _over(_key: str) -> bool:
    return False
