"""Twelve loops with their intervals and limits: guarded, set by the environment, and once for the whole fleet."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import msgspec
import pytest
from systems.tests.certificates.programs import EVERY_SECOND, PATIENCE, Api, Server, locked, logged, running, tables_at

from perdure import JobFilter, SettingsError
from perdure.clock import SystemClock
from perdure.events import LoopOverran
from perdure.testing import Sandbox
from perdure_systems.certificates import loops
from perdure_systems.certificates.jobs import app, database
from perdure_systems.certificates.records import Agent, Endpoint, Found, LoopRun
from perdure_systems.certificates.settings import LOOPS, LoopSettings, read_loops
from perdure_systems.certificates.standins import cloud_listing, make_certificate, silent_endpoint, tls_endpoint
from perdure_systems.notifications.jobs import KIND as NOTIFICATION
from perdure_systems.notifications.jobs import app as notifications_app
from perdure_systems.notifications.standins import StandIns

RUNS = "SELECT * FROM certificate_loop"


def test_a17_every_loop_has_its_interval_limit_and_start() -> None:
    declared = {
        one.name.removeprefix("certificates."): (one.every, one.limit, one.at_start, str(one.per))
        for one in app.periodic.values()
    }
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    expected = {
        "renewal": (hour, 5 * minute, True),
        "processor": (minute / 2, 2 * minute, True),
        "job retry": (5 * minute, 2 * minute, True),
        "reaper": (10 * minute, 2 * minute, True),
        "agent health": (2 * minute, minute, True),
        "notify": (minute, minute, True),
        "notify retry": (2 * minute, 2 * minute, True),
        "short-lived": (minute / 2, minute / 2, True),
        "network scan": (6 * hour, 30 * minute, True),
        "cloud discovery": (6 * hour, 30 * minute, True),
        "digest": (24 * hour, 5 * minute, False),
        "health": (minute, 5 * minute, False),
    }
    assert declared == {name: (*values, "fleet") for name, values in expected.items()}


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.name)
def test_a15_every_interval_can_be_set_and_one_below_a_second_is_refused_by_name(loop: LoopSettings) -> None:
    variable, name = loop.variable, loop.name
    assert read_loops({variable: "90s"})[name].interval == timedelta(seconds=90)
    assert read_loops({})[name].interval == read_loops({variable: ""})[name].interval
    for value in ("999ms", "0", "soon", "-5s"):
        with pytest.raises(SettingsError, match=variable):
            read_loops({variable: value})


async def test_a15_a_server_with_too_short_an_interval_does_not_start(tmp_path: object) -> None:
    environment = {"CERTCTL_SCHEDULER_RETRY_INTERVAL": "200ms"}
    async with running(f"sqlite:///{tmp_path}/x.db", environment=environment) as server:
        assert await server.ended() == 1
    assert "CERTCTL_SCHEDULER_RETRY_INTERVAL must be at least 1s, got 200ms" in server.text


async def test_a15_the_retry_loop_runs_at_once_and_then_every_five_minutes(engine_url: str) -> None:
    async with Sandbox(app, url=engine_url) as box, Sandbox(notifications_app, url=engine_url, periodic=False):
        began = box.now
        seen = []
        for span in (None, "4m59s", "1s", "5m"):
            await box.drain(travel=span or False)
            ran = await database.one(LoopRun, f"{RUNS} WHERE name = 'job retry'")
            assert ran is not None
            seen.append((ran.ran_at - began).total_seconds())
        await database.close()
    assert seen == [0, 0, 300, 600]


async def test_a15_a_tick_past_its_limit_is_told_to_stop(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its limit is 2 minutes; here it is 0.2 s, so that the test can wait for it. The next tick comes all the same."""
    name = "certificates.job retry"
    declared = app.periodic[name]
    assert declared.limit == timedelta(minutes=2)
    began: list[str] = []
    stopped: list[str] = []

    async def hangs() -> None:
        began.append("tick")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append("told to stop")
            raise

    short = msgspec.structs.replace(
        declared, function=hangs, limit=timedelta(milliseconds=200), every=timedelta(seconds=1)
    )
    monkeypatch.setitem(app.periodic, name, short)
    overran: list[object] = []
    async with Sandbox(app, url=engine_url, periodic=False), Sandbox(notifications_app, url=engine_url):
        unsubscribe = app.subscribe(overran.append, LoopOverran)
        worker = await app.worker()
        running_worker = asyncio.create_task(worker.run())
        async with asyncio.timeout(PATIENCE):
            while len(began) < 2:
                await asyncio.sleep(0.02)
        await worker.wait_for_completion()
        await running_worker
        unsubscribe()
        await database.close()
    assert stopped[:1] == ["told to stop"]
    assert overran[:1] == [LoopOverran(name, 0.2, stopped=True)]


async def test_a15_the_limit_of_a_tick_ends_a_scan_that_hangs(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real tick: the endpoint takes the connection and never answers."""
    name = "certificates.network scan"
    monkeypatch.setitem(
        app.periodic, name, msgspec.structs.replace(app.periodic[name], limit=timedelta(milliseconds=200))
    )
    overran: list[object] = []
    async with (
        silent_endpoint() as endpoint,
        Sandbox(app, url=engine_url, periodic=False),
        Sandbox(notifications_app, url=engine_url),
    ):
        monkeypatch.setenv("CERTCTL_NETWORK_SCAN_ENDPOINTS", endpoint.address)
        unsubscribe = app.subscribe(overran.append, LoopOverran)
        worker = await app.worker()
        running_worker = asyncio.create_task(worker.run())
        async with asyncio.timeout(PATIENCE):
            while not overran:
                await asyncio.sleep(0.02)
        await worker.wait_for_completion()
        await running_worker
        unsubscribe()
        assert await database.one(LoopRun, f"{RUNS} WHERE name = 'network scan'") is None
        await database.close()
    assert overran == [LoopOverran(name, 0.2, stopped=True)]


async def test_a17_a20_every_loop_skips_a_tick_while_the_last_one_runs(engine_url: str) -> None:
    """All twelve tick every second. None can end while the lock is held, and none may start a second time."""
    async with running(engine_url, "--no-http", environment=EVERY_SECOND) as server:
        await _all_have_run(engine_url)
        async with locked(engine_url, "certificate_loop"):
            for loop in LOOPS:
                line = await server.says(" still running, skipping tick ", logged("loop", f"certificates.{loop.name}"))
                assert "[warning  ]" in line
        await _all_have_run(engine_url)  # and then they go on


async def test_two_servers_send_one_warning(engine_url: str) -> None:
    """The original's servers each sent their own."""
    async with StandIns() as receivers, tables_at(engine_url) as tables:
        environment = EVERY_SECOND | receivers.environment() | {"CERTCTL_NOTIFY_CHANNEL": "slack"}
        now = SystemClock().now()
        await tables.execute(
            "INSERT INTO certificate (id, common_name, sans, status, owner, requested_by, lifetime_hours, needs_csr,"
            " needs_approval, serial, pem, not_after, renew_at, created_at) VALUES ('c1', 'shop.example', '[]',"
            " 'active', 'ada', 'ada', 2160, :yes, :yes, '1', 'pem', :end, :begin, :now)",
            {"yes": True, "end": now + timedelta(days=10, hours=1), "begin": now - timedelta(days=20), "now": now},
        )
        async with (
            running(engine_url, "--no-http", environment=environment) as first,
            running(engine_url, "--no-http", environment=environment) as second,
        ):
            await _until_delivered(receivers)
            leader, other = await _leader_of("notify", first, second)
            await other.says("✿ worker open")
            leader.process.terminate()
            await other.says("leading", logged("name", "loop:certificates.notify"))
            await _all_have_run(engine_url)  # the other one has taken over, and has looked at the certificate
    warnings = [taken.body for taken in receivers.taken["slack"] if b"shop.example expires in 10 days" in taken.body]
    assert len(warnings) == 1


async def test_renewal_begins_once_when_it_is_due(box: Sandbox, client: Api) -> None:
    certificate, first = await client.requested()
    await box.drain()
    box.travel("59d")
    assert await loops.renew() == "0 renewals requested"

    box.travel("1d1h")
    assert await loops.renew() == "1 renewals requested"
    assert await loops.renew() == "0 renewals requested"  # its job is under way
    assert (await box.drain()).succeeded == 1
    renewed = await client.certificate(certificate)
    assert renewed["status"] == "active"
    assert renewed["job_id"] != first
    assert (await client.job(renewed["job_id"]))["because"] == "renewal"
    assert await loops.renew() == "0 renewals requested"


async def test_short_lived_certificates_are_renewed_after_two_thirds_of_their_life(box: Sandbox, client: Api) -> None:
    certificate, _ = await client.requested(lifetime_hours=3)
    await box.drain()
    serial = (await client.certificate(certificate))["serial"]
    box.travel("1h59m")
    assert await loops.expire_short_lived() == "0 short-lived renewals requested, 0 certificates expired"
    box.travel("2m")
    assert await loops.renew() == "0 renewals requested"  # the hourly loop would come too late
    assert await loops.expire_short_lived() == "1 short-lived renewals requested, 0 certificates expired"
    await box.drain()
    assert (await client.certificate(certificate))["serial"] != serial

    box.travel("4h")  # no server ran
    assert await loops.expire_short_lived() == "1 short-lived renewals requested, 1 certificates expired"
    assert (await client.certificate(certificate))["status"] == "expired"
    await box.drain()
    assert (await client.certificate(certificate))["status"] == "active"


async def test_after_a_refusal_no_approver_is_asked_again_for_a_day(box: Sandbox, client: Api) -> None:
    certificate, job = await client.requested(needs_approval=True)
    await box.drain()
    await client.post(f"/api/v1/jobs/{job}/approve")
    await box.drain()
    box.travel("61d")
    assert await loops.renew() == "1 renewals requested"
    await box.drain()
    await client.post(f"/api/v1/jobs/{(await client.certificate(certificate))['job_id']}/reject")
    await box.drain()
    box.travel("23h")
    assert await loops.renew() == "0 renewals requested"
    box.travel("2h")
    assert await loops.renew() == "1 renewals requested"


async def test_the_processor_picks_up_a_request_whose_job_was_deleted(box: Sandbox, client: Api) -> None:
    certificate, job = await client.requested()
    assert await loops.process() == "0 requests picked up"
    await (await app.desk("test")).delete(job)
    assert await loops.process() == "1 requests picked up"
    assert await loops.process() == "0 requests picked up"
    await box.drain()
    assert (await client.certificate(certificate))["status"] == "active"


async def test_agents_that_are_silent_for_five_minutes_are_offline(box: Sandbox, client: Api) -> None:
    await client.post("/api/v1/agents/edge-1/heartbeat")
    box.travel("4m59s")
    assert await loops.check_agents() == "0 agents went offline"
    box.travel("1s")
    assert await loops.check_agents() == "1 agents went offline"
    assert [agent.status for agent in await database.all(Agent, "SELECT * FROM certificate_agent")] == ["offline"]


async def test_scans_find_certificates_and_go_on_past_what_does_not_answer(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = make_certificate("good.example", box.now, timedelta(days=30))
    old = make_certificate("old.example", box.now - timedelta(days=30), timedelta(days=1))
    async with (
        tls_endpoint(*good) as healthy,
        tls_endpoint(*old) as expired,
        cloud_listing({"vault": good[0]}) as cloud,
    ):
        monkeypatch.setenv("CERTCTL_NETWORK_SCAN_ENDPOINTS", f"127.0.0.1:1, {healthy}, {expired}")
        monkeypatch.setenv("CERTCTL_CLOUD_DISCOVERY_URL", cloud)
        assert await loops.scan_network() == "2 certificates found"
        assert await loops.discover_in_cloud() == "1 certificates found"
        assert await loops.check_endpoints() == "1 of 3 endpoints are healthy"
    found = await database.all(Found, "SELECT * FROM certificate_found ORDER BY subject")
    assert [one.subject for one in found] == ["CN=good.example", "CN=old.example"]
    states = await database.all(Endpoint, "SELECT * FROM certificate_endpoint")
    assert {one.address: one.status for one in states} == {
        "127.0.0.1:1": "unreachable",
        healthy: "healthy",
        expired: "expired",
    }


async def test_a_digest_is_sent_once_a_day(box: Sandbox, client: Api) -> None:
    await client.requested()
    assert await loops.send_digest() == "1 requested"
    assert await loops.send_digest() == "1 requested"
    counted = await (await notifications_app.desk("test")).count(JobFilter(kind=NOTIFICATION))
    assert counted.jobs == 1
    box.travel("1d")
    await loops.send_digest()
    counted = await (await notifications_app.desk("test")).count(JobFilter(kind=NOTIFICATION))
    assert counted.jobs == 2
    assert await loops.count_due_notifications() == "0 notifications wait for a retry"


async def _all_have_run(url: str) -> None:
    """Wait until every loop has noted a tick from now on."""
    async with tables_at(url) as tables, asyncio.timeout(PATIENCE):
        await tables.execute("DELETE FROM certificate_loop")
        while len(await tables.all(LoopRun, RUNS)) < len(LOOPS):
            await asyncio.sleep(0.05)


async def _leader_of(loop: str, *servers: Server) -> tuple[Server, Server]:
    """The one of two servers that leads this loop, and the other one."""
    async with asyncio.timeout(PATIENCE):
        while True:
            for one, other in (servers, reversed(servers)):
                if any(
                    " leading " in line and logged("name", f"loop:certificates.{loop}") in line for line in one.lines
                ):
                    return one, other
            await asyncio.sleep(0.05)


async def _until_delivered(receivers: StandIns) -> None:
    async with asyncio.timeout(PATIENCE):
        while not receivers.taken["slack"]:
            await asyncio.sleep(0.05)
