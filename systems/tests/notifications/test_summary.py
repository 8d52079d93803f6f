"""The dashboard's summary and Prometheus' metric: one snapshot, which comes whatever happens to the count."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from perdure import App, StoreUnavailable
from perdure.testing import Sandbox
from perdure_systems.kit.web import api
from perdure_systems.notifications import routes
from perdure_systems.notifications.jobs import notify
from perdure_systems.notifications.summary import Snapshot
from perdure_systems.notifications.system import SYSTEM

BREAK_SQLITE = "ALTER TABLE perdure_finished RENAME TO gone"
BREAK_POSTGRES = "ALTER TABLE finished RENAME TO gone"


def metrics_in(text: str) -> dict[str, float]:
    """Values by name, and by name with labels where there are some."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


async def one_of_each(box: Sandbox, refuse: Callable[..., None]) -> None:
    """Two dead, one sent, one failed, one pending."""
    refuse(-1)
    for _ in range(2):
        await notify.enqueue(channel="slack", subject="dead", body="b")
    await box.drain(travel=True)
    refuse(0)
    await notify.enqueue(channel="slack", subject="sent", body="b")
    await box.drain()
    refuse(-1)
    await notify.enqueue(channel="slack", subject="failed", body="b")
    await box.drain()
    await notify.using(delay="1h").enqueue(channel="slack", subject="pending", body="b")


async def test_a9_the_summary_counts_dead_notifications(
    box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None]
) -> None:
    await one_of_each(box, refuse)
    answer = await client.get("/api/v1/stats/summary")
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "notifications_pending": 1,
            "notifications_failed": 1,
            "notifications_sent": 1,
            "notifications_dead": 2,
            "notifications_total": 5,
            "is_counted": True,
        },
    )


async def test_a9_the_summary_comes_with_0_when_the_count_fails(
    box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None], run_sql: Callable[[str, str], None]
) -> None:
    await one_of_each(box, refuse)
    run_sql(BREAK_SQLITE, BREAK_POSTGRES)
    answer = await client.get("/api/v1/stats/summary")
    assert (answer.status_code, answer.json()["notifications_dead"]) == (200, 0)
    assert answer.json()["is_counted"] is False


async def test_a9_the_summary_comes_with_0_when_no_store_is_wired(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = App("postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=1")
    with pytest.raises(StoreUnavailable):
        await nowhere.desk("test")
    monkeypatch.setattr(routes, "app", nowhere)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=api(SYSTEM.routes)), base_url="http://it") as http:
        answer = await http.get("/api/v1/stats/summary")
        assert (answer.status_code, answer.json()["notifications_dead"]) == (200, 0)
        scraped = await http.get("/metrics")
        assert metrics_in(scraped.text)["certctl_notification_dead_total"] == 0
    await nowhere.close()


async def test_a10_the_metric_is_the_number_of_the_summary(
    box: Sandbox, client: httpx.AsyncClient, refuse: Callable[..., None], run_sql: Callable[[str, str], None]
) -> None:
    await one_of_each(box, refuse)
    scraped = await client.get("/metrics")
    summary = (await client.get("/api/v1/stats/summary")).json()
    assert scraped.headers["content-type"].startswith("text/plain")
    found = metrics_in(scraped.text)
    assert found["certctl_notification_dead_total"] == summary["notifications_dead"] == 2
    assert found["certctl_notification_counted"] == 1
    assert found['perdure_cluster_jobs{queue="notifications",state="dead"}'] == 2
    assert found['perdure_cluster_jobs{queue="notifications",state="retrying"}'] == 1

    run_sql(BREAK_SQLITE, BREAK_POSTGRES)
    found = metrics_in((await client.get("/metrics")).text)
    assert (found["certctl_notification_dead_total"], found["certctl_notification_counted"]) == (0, 0)


async def test_a10_summary_and_metric_take_the_same_snapshot(
    box: Sandbox, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ask one function: what it says of the dead ones is what both show."""
    shown = Snapshot(notifications_dead=42, is_counted=True)

    async def snapshot() -> Snapshot:
        return shown

    monkeypatch.setattr(routes, "snapshot", snapshot)
    assert (await client.get("/api/v1/stats/summary")).json()["notifications_dead"] == 42
    assert metrics_in((await client.get("/metrics")).text)["certctl_notification_dead_total"] == 42
