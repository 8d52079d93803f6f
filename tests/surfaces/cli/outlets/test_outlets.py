"""`perdure events` and `perdure webhooks`: what other programs are told."""

from __future__ import annotations

import pytest
from tests.support.builders.jobs import job_in
from tests.surfaces.conftest import Arrange, Cli

from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.states import JobState
from perdure.domain.operate.webhook import DELIVERY, QUEUE
from perdure.surfaces.cli.exits import Exit


@pytest.fixture(autouse=True)
def migrated(arrange: Arrange[None]) -> None:
    """An empty database."""
    arrange(lambda store: store.check_schema())


def test_the_log_is_switched_on_listed_and_switched_off(cli: Cli, arrange: Arrange[JobId]) -> None:
    assert cli("events", "status").out == "Events are not logged.\n"
    refused = cli("events", "list")
    assert (refused.code, "perdure events on" in refused.err) == (Exit.CONFLICT, True)
    assert cli("events", "on", "--keep", "2h").out.startswith("Events are logged and kept for 2h.\n")
    assert cli("events", "on", "--keep", "1s").code == Exit.USAGE
    dead = arrange(lambda store: job_in(JobState.DEAD, store))
    page = cli("events", "list", "--type", "job.died", "--json").json
    assert [(one["type"], one["subject"]) for one in page["events"]] == [("job.died", dead)]
    assert dead in cli("events", "list").out
    assert dead not in cli("events", "list", "--after", page["next"]).out
    assert "job.cancelled" in cli("events", "list", "--type", "job.done").err
    assert cli("events", "off", "--why", "enough").out == "Events are not logged.\n"
    actions = [entry["action"] for entry in cli("audit", "list", "--json").json["entries"]]
    assert actions[:2] == ["event_log.off", "event_log.on"]


def test_a_webhook_is_made_with_a_secret_that_is_shown_once(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    made = cli("webhooks", "save", "crm", "https://crm.example/h?key=T0K3N", "--event", "job.died", "--tag", "vip")
    assert made.code == Exit.OK
    assert "No running worker delivers webhooks" in made.out
    secret = made.out.splitlines()[-1]
    assert secret.startswith("whs_")
    shown = cli("webhooks", "list").out + str(cli("webhooks", "list", "--json").json) + cli("audit", "list").out
    assert "crm.example/h?***" in shown
    assert secret not in shown
    assert "T0K3N" not in shown
    again = cli("webhooks", "save", "crm", "https://crm.example/h", "--json").json
    assert (again["secret"], again["webhook"]["has_secret"]) == (None, True)
    assert cli("webhooks", "secret", "crm").out.splitlines()[-1].startswith("whs_")
    monkeypatch.setenv("CRM", "a secret of some length")
    given = cli("webhooks", "secret", "crm", "--secret-env", "CRM")
    assert (given.code, "some length" in given.out) == (Exit.OK, False)
    missing = cli("webhooks", "secret", "crm", "--secret-env", "NOT_THERE")
    assert (missing.code, "NOT_THERE" in missing.err) == (Exit.USAGE, True)


def test_a_filter_of_a_webhook_is_refused_by_the_name_of_its_option(cli: Cli) -> None:
    for option, wrong in {"--event": "job.nope", "--queue": "", "--kind": "", "--tag": ""}.items():
        refused = cli("webhooks", "save", "crm", "https://crm.example/h", option, wrong)
        assert (refused.code, refused.err.startswith(f"error: {option} must be ")) == (Exit.USAGE, True)


def test_a_bad_address_of_a_webhook_is_not_blamed_on_the_url_of_the_database(cli: Cli) -> None:
    refused = cli("webhooks", "save", "crm", "ftp://crm.example/h")
    assert (refused.code, refused.err.startswith("error: URL must begin with https://")) == (Exit.USAGE, True)


def test_deliveries_that_are_retried_are_counted_with_the_error_of_the_newest(
    cli: Cli, arrange: Arrange[JobId]
) -> None:
    cli("webhooks", "save", "crm", "https://crm.example/h")
    assert cli("webhooks", "list", "--json").json["webhooks"][0]["retrying"] is None
    arrange(lambda store: job_in(JobState.RETRYING, store, kind=DELIVERY, queue=QUEUE, tags=("webhook:crm",)))
    [hook] = cli("webhooks", "list", "--json").json["webhooks"]
    assert (hook["retrying"]["deliveries"], hook["retrying"]["last_error"]) == (1, "builtins.ValueError: no such host")
    said = cli("webhooks", "list").out
    assert "crm: 1 delivery failed and retried" in said
    assert "perdure jobs list --state retrying --tag webhook:crm" in said


def test_a_webhook_is_paused_resumed_tested_and_deleted(cli: Cli) -> None:
    assert cli("webhooks", "list").out == "No webhooks.\n"
    cli("webhooks", "save", "crm", "https://crm.example/h")
    assert cli("webhooks", "pause", "crm").out == "Webhook crm paused.\n"
    assert "paused" in cli("webhooks", "list").out
    assert cli("webhooks", "resume", "crm", "--json").json["webhook"]["paused_at"] is None
    job = cli("webhooks", "test", "crm", "--json").json["job_id"]
    assert cli("jobs", "show", job, "--json").json["job"]["kind"] == "perdure.webhook"
    assert cli("events", "off").code == Exit.CONFLICT
    assert cli("webhooks", "delete", "crm").code == Exit.USAGE, "a script must say --yes"
    assert cli("webhooks", "delete", "crm", "--yes").out == "Webhook crm deleted.\n"
    assert cli("webhooks", "delete", "crm", "--yes").code == Exit.NOT_FOUND
    assert cli("webhooks", "save", "crm", "file:///etc/passwd").code == Exit.USAGE
