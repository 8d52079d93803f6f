"""The settings of a worker: durations and queues as people write them, and each mistake by its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, assert_type

import pytest
from msgspec.structs import replace

from perdure import App, Context, Keep, MissingHandler, Opening, Polling, Queue, SettingsError, WorkerSettings
from perdure.kinds.kind import Kind, Mode
from perdure.kinds.signature import Signature
from perdure.policy.outage_backoff import OutageBackoff
from perdure.policy.retries.retry import DEFAULT_RETRY


def test_spans_may_be_written_in_every_form_and_are_timedeltas() -> None:
    settings = WorkerSettings(lease="1m", heartbeat=20, poll=0.5, grace=timedelta(seconds=2), unknown_kind_for="2d")
    assert_type(settings.lease, timedelta)
    assert (settings.lease, settings.heartbeat) == (timedelta(minutes=1), timedelta(seconds=20))
    assert (settings.poll, settings.grace) == (timedelta(milliseconds=500), timedelta(seconds=2))
    assert settings.unknown_kind_for == timedelta(days=2)
    assert replace(settings, lease="2m").lease == timedelta(minutes=2)


def test_b12_retention_may_be_written_in_every_form() -> None:
    keep = Keep(succeeded="2d", cancelled=60, dead=None)
    assert_type(keep.succeeded, timedelta | None)
    assert (keep.succeeded, keep.cancelled, keep.dead) == (timedelta(days=2), timedelta(minutes=1), None)
    with pytest.raises(SettingsError, match=r"keep\.dead is not a duration: 'for ever'"):
        Keep(dead="for ever")


@pytest.mark.parametrize(
    "given",
    [
        "mail:3,reports@2",
        ["mail:3", "reports@2"],
        ("mail:3", Queue("reports", concurrency=2)),
        (Queue("mail", 3), Queue("reports", 1, 2)),
    ],
)
def test_queues_may_be_given_by_name(given: Any) -> None:
    assert WorkerSettings(queues=given).queues == (Queue("mail", 3), Queue("reports", 1, 2))


def test_what_to_do_without_a_handler_may_be_given_by_its_word() -> None:
    assert WorkerSettings(missing_handler="complete").missing_handler is MissingHandler.COMPLETE


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("name", ""),
        ("name", "n" * 101),
        ("name", "a\x1b[31m"),
        ("queues", "mail\0"),
        ("queues", [Queue("q" * 101)]),
        ("lease", "soon"),
        ("lease", None),
        ("lease", -30),
        ("heartbeat", []),
        ("poll", 0),
        ("sweep", "0s"),
        ("concurrency", "10"),
        ("concurrency", 2.5),
        ("concurrency", True),
        ("threads", 0),
        ("recycle_above_mb", "1G"),
        ("name", 7),
        ("keep", {"dead": None}),
        ("keep", timedelta(days=1)),
        ("missing_handler", "ignore"),
        ("missing_handler", None),
        ("queues", []),
        ("queues", None),
        ("queues", 7),
        ("queues", [7]),
        ("queues", [Queue(7)]),  # type: ignore[arg-type] # that is the point
        ("queues", ["mail", "mail:2"]),
    ],
)
def test_what_cannot_be_meant_is_refused_by_name(setting: str, value: object) -> None:
    with pytest.raises(SettingsError) as refused:
        WorkerSettings(**{setting: value})  # type: ignore[arg-type] # that is the point
    assert refused.value.field == f"worker.{setting}"


def test_a_lease_that_contradicts_the_heartbeat_is_reported_in_durations() -> None:
    with pytest.raises(SettingsError, match=r"worker\.lease must be at least twice the heartbeat \(10s\), got 15s"):
        WorkerSettings(lease="15s")


def test_a_reserved_queue_says_how_many_slots_are_its_own() -> None:
    with pytest.raises(SettingsError, match="reserved of queue urgent needs its concurrency"):
        WorkerSettings(queues=[Queue("urgent", reserved=True)])


async def test_a_worker_serves_kinds_of_perdures_own_beside_its_queues(tmp_path: Any) -> None:
    async def deliver() -> None: ...

    def named(name: str) -> Kind:
        return Kind(
            name=name, handler=deliver, signature=Signature(deliver, Context), mode=Mode.TASK, retry=DEFAULT_RETRY
        )

    kind = named("perdure.test")
    async with App(f"sqlite:///{tmp_path}/jobs.db", queues=["mail"]) as app:
        app.serve_own(kind, Queue("perdure-test", concurrency=2, reserved=True))
        around = (await app.worker(WorkerSettings(queues="mail")))._parts.around
        assert [queue.name for queue in around.settings.queues] == ["mail", "perdure-test"]
        assert around.kinds["perdure.test"] is kind
        assert "perdure.test" not in app.kinds, "it is none of the app's own"
        with pytest.raises(SettingsError, match=r"must begin with 'perdure\.'"):
            app.serve_own(named("mine"), Queue("mine"))


async def test_an_app_brings_the_settings_of_its_workers(tmp_path: Any) -> None:
    own = WorkerSettings(name="own", queues="mail", concurrency=3)
    async with App(f"sqlite:///{tmp_path}/jobs.db", worker=own) as app:
        assert (await app.worker())._parts.around.settings is own
        assert (await app.worker(WorkerSettings(name="other"))).name == "other"
    assert App("sqlite:///unused.db").worker_settings == WorkerSettings()


def test_c10_the_settings_of_a_graceful_worker_have_their_defaults() -> None:
    """Workers, poll ramp, graceful start phase, stop timeout, consecutive errors and longest backoff, as specified."""
    settings = WorkerSettings(concurrency=1, polling="ramp", opening=Opening())
    assert (settings.concurrency, settings.polling) == (1, Polling.RAMP)
    assert settings.opening is not None
    assert settings.opening.phase == timedelta(minutes=5)
    assert WorkerSettings().stop_timeout == timedelta(seconds=20)
    backoff = OutageBackoff()
    waits = [backoff.failed() for _ in range(20)]
    assert [wait.total_seconds() for wait in waits[4:10]] == [1, 2, 4, 8, 16, 30]
    assert max(waits) == timedelta(seconds=30)
