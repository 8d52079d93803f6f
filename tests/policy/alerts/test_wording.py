"""The text of a notice: the worst first, a short list, no line break in the title."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from perdure.domain.alerts.alert import Alert, NoticeSort
from perdure.domain.alerts.rule import AlertRule, AlertSeverity, When
from perdure.policy.alerts.following import NoticeAlerts
from perdure.policy.alerts.wording import ALERTS_LISTED, draft, one_line

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RULE = AlertRule(name="deep", when=When.DEPTH, to=("ops",), severity=AlertSeverity.CRITICAL)


def alert(key: str, *, closed_at: datetime | None = None, count: int = 1) -> Alert:
    return Alert(
        id=key,
        rule="deep",
        key=key,
        severity=AlertSeverity.CRITICAL,
        title=f"Queue {key} has 200 ready jobs",
        detail="the limit is 100",
        path=f"/queues/{key}",
        cli=f"perdure jobs list --queue {key}",
        opened_at=NOW - timedelta(minutes=5),
        last_at=NOW,
        closed_at=closed_at,
        count=count,
    )


def test_one_alert_says_what_since_when_and_where_to_look() -> None:
    words = draft(RULE, NoticeAlerts((alert("mail", count=3),), ()), NOW)
    assert (words.title, words.path) == ("Queue mail has 200 ready jobs (3 times)", "/queues/mail")
    for piece in ("the limit is 100", "Rule: deep", "Since: 2026-01-01 11:55:00 UTC", "perdure jobs list --queue mail"):
        assert piece in words.body
    assert (words.sort, words.severity, words.count) == (NoticeSort.ALERT, AlertSeverity.CRITICAL, 3)


def test_the_end_of_an_alert_is_a_recovery_of_low_severity() -> None:
    words = draft(RULE, NoticeAlerts((), (alert("mail", closed_at=NOW),)), NOW)
    assert words.title == "Over after 5m: Queue mail has 200 ready jobs"
    assert (words.sort, words.severity) == (NoticeSort.RECOVERY, AlertSeverity.INFO)
    assert "perdure jobs list" not in words.body


def test_many_alerts_are_a_short_list_with_the_number_of_the_others() -> None:
    many = tuple(alert(str(number)) for number in range(ALERTS_LISTED + 7))
    words = draft(RULE, NoticeAlerts(many, ()), NOW)
    assert f"(and {ALERTS_LISTED + 6} more)" in words.title
    assert "… and 7 more" in words.body
    assert (words.path, words.alerts, len(words.keys)) == ("/alerts", ALERTS_LISTED + 7, ALERTS_LISTED)


def test_a_title_is_one_line_that_cannot_become_a_header() -> None:
    assert one_line("spent\r\nBcc: all@example.com") == "spent Bcc: all@example.com"
    assert one_line("x" * 10, longest=5) == "xxxx…"
