"""A channel that does not work is reported once, through one that does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.domain.alerts.channel import Channel, ChannelRecord
from perdure.domain.alerts.rule import AlertRule, AlertSeverity, Source, When
from perdure.policy.alerts.broken_channels import FAILURES_TO_BREAK, Broken, report_channels

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def record(name: str, failures: int = 0, sent_at: datetime | None = None) -> ChannelRecord:
    return ChannelRecord(
        channel=Channel(name=name, address="env:ADDRESS"),
        source=Source.CODE,
        created_at=NOW,
        changed_at=NOW,
        failures=failures,
        sent_at=sent_at,
        error="connection refused" if failures else None,
    )


def rule(*to: str) -> AlertRule:
    return AlertRule(name="deaths", when=When.JOB_DIED, to=to)


def test_a_few_failures_do_not_break_a_channel() -> None:
    channels = [record("slack", FAILURES_TO_BREAK - 1), record("mail")]
    report = report_channels({}, channels, (), [rule("slack", "mail")], NOW)
    assert (report.broken, report.notices) == ({}, ())


def test_a_broken_channel_is_reported_once_through_another_of_its_rules() -> None:
    channels = [record("mail"), record("pager"), record("slack", FAILURES_TO_BREAK)]
    report = report_channels({}, channels, (), [rule("slack", "pager")], NOW)
    [(draft, to)] = report.notices
    assert (to, draft.severity, draft.title) == ("pager", AlertSeverity.CRITICAL, "Alert channel slack does not work")
    assert "connection refused" in draft.body
    assert report_channels(report.broken, channels, (), [rule("slack", "pager")], NOW).notices == ()


def test_a_delivery_that_was_given_up_breaks_a_channel_at_its_first_failure() -> None:
    channels = [record("mail"), record("slack", 1)]
    assert [to for _, to in report_channels({}, channels, ("slack",), [rule("slack")], NOW).notices] == ["mail"]


def test_while_no_channel_works_the_report_waits_for_one() -> None:
    alone = report_channels({}, [record("slack", FAILURES_TO_BREAK)], (), [rule("slack")], NOW)
    assert (alone.broken, alone.notices) == ({"slack": Broken(NOW)}, ())
    later = report_channels(alone.broken, [record("mail"), record("slack", 9)], (), [rule("slack")], NOW)
    assert [to for _, to in later.notices] == ["mail"]


def test_a_channel_that_a_rule_names_and_no_worker_declares_is_reported_as_gone() -> None:
    report = report_channels({}, [record("mail")], (), [rule("pager")], NOW)
    [(draft, to)] = report.notices
    assert (to, draft.title) == ("mail", "Alert channel pager does not exist any more")


@pytest.mark.parametrize(
    ("sent_at", "title"),
    [(NOW, "Alert channel slack works again"), (None, "Alert channel slack is set up again")],
)
def test_a_channel_that_works_again_or_was_saved_again_is_reported_through_the_same_one(
    sent_at: datetime | None, title: str
) -> None:
    channels = [record("mail"), record("slack", sent_at=sent_at)]
    report = report_channels({"slack": Broken(NOW, "mail")}, channels, (), [rule("slack")], NOW)
    [(draft, to)] = report.notices
    assert (report.broken, to, draft.title) == ({}, "mail", title)
