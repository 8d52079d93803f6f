"""E10: what probes ask."""

from __future__ import annotations

import pytest
from tests.support.web.http_site import client_of, make_app, token_of

from perdure.clock import ManualClock
from perdure.domain.duration import parse_duration
from perdure.domain.worker import WorkerView
from perdure.errors import SettingsError, StoreUnavailable
from perdure.surfaces.server.backing import Backing
from perdure.surfaces.server.health import Health
from perdure.surfaces.server.health_settings import Check, Condition, HealthSettings
from perdure.surfaces.server.site import Site


async def statuses(health: Health) -> dict[str, str]:
    return {check.name: check.status for check in (await health.readiness()).checks}


async def test_e10_readiness_warns_of_depth_failures_and_disk(engine_url: str) -> None:
    clock = ManualClock()
    async with make_app(engine_url) as app:
        backing = Backing(app)
        health = Health(backing, HealthSettings(depth=2, failures=0), clock)
        assert (await statuses(health))["queues"] == Condition.OK
        await app.enqueue_many([app.job_named("greet").call(name="x") for _ in range(3)])
        assert (await statuses(health))["queues"] == Condition.OK  # asked a moment ago
        clock.move(parse_duration("by", "2s"))
        found = await statuses(health)
        assert found["queues"] == Condition.WARNING
        assert {"database", "workers", "queues", "failures"} <= found.keys()
        assert ("disk" in found) is engine_url.startswith("sqlite:")
        await backing.close()


async def test_e10_a_database_that_is_away_makes_it_not_ready(engine_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backing = Backing(make_app(engine_url))

    async def away() -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(backing, "store", away)
    readiness = await Health(backing, HealthSettings()).readiness()
    assert (readiness.status, readiness.checks[0].seen) == (Condition.FAILED, "gone")


async def test_e10_the_words_of_an_error_are_reported_on_this_machine_only(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may name the address of the database and its user, and a probe shows no token."""

    async def away() -> None:
        raise StoreUnavailable("no route to db.internal")

    monkeypatch.setattr(site.backing, "store", away)
    async with client_of(site) as here, client_of(site, address="192.0.2.7") as elsewhere:
        assert "db.internal" in (await here.get("/readyz")).text
        proxied = await here.get("/readyz", headers={"x-forwarded-for": "192.0.2.7"})
        for answer in (await elsewhere.get("/readyz"), proxied):
            assert (answer.status_code, answer.json()["checks"][0]["status"]) == (503, "failed")
            assert "db.internal" not in answer.text


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_another_method_is_refused_as_a_problem(site: Site, path: str) -> None:
    async with client_of(site, await token_of(site, "read")) as client:
        answer = await client.post(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
        assert answer.headers["content-type"] == "application/problem+json"


async def test_e10_the_answer_of_the_database_is_timed_by_a_read(
    engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of SQLite is this machine's: to ask for the time asks no database."""
    clock = ManualClock()
    async with make_app(engine_url) as app:
        backing = Backing(app)
        store = await backing.store()
        read = store.workers

        async def slow() -> list[WorkerView]:
            clock.move(parse_duration("by", "40ms"))
            return await read()

        monkeypatch.setattr(store, "workers", slow)
        readiness = await Health(backing, HealthSettings(), clock).readiness()
        assert {check.name: check.seen for check in readiness.checks}["database"] == "answers within 40.0 ms"
        await backing.close()


async def test_e10_checks_of_ones_own_stand_beside_the_others(engine_url: str) -> None:
    async def browser() -> Check:
        return Check("browser", Condition.WARNING, "an old one")

    async def storage() -> Check:
        raise OSError("no such folder")

    async with make_app(engine_url) as app:
        backing = Backing(app)
        readiness = await Health(backing, HealthSettings(checks=(browser,))).readiness()
        assert (readiness.status, readiness.checks[-1].seen) == (Condition.WARNING, "an old one")
        readiness = await Health(backing, HealthSettings(checks=(storage, browser))).readiness()
        assert (readiness.status, readiness.checks[-2].seen) == (Condition.FAILED, "OSError: no such folder")
        assert "database" in {check.name for check in readiness.checks}
        await backing.close()


@pytest.mark.parametrize(
    "wrong", [{"depth": -1}, {"failures": "many"}, {"disk": True}, {"silence": "soon"}, {"checks": ["disk"]}]
)
def test_settings_of_health_are_checked(wrong: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=f"health.{next(iter(wrong))}"):
        HealthSettings(**wrong)  # type: ignore[arg-type]
