"""The life of an alert: one cause is one alert, and notices are neither lost nor repeated."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count

from perdure.domain.alerts.alert import Alert, Cause
from perdure.domain.alerts.quiet import read_quiet
from perdure.domain.alerts.rule import AlertRule, Grouping, When
from perdure.policy.alerts.following import NOTICES_PER_FLOOD, follow, is_done, next_notice, reported, rest

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DEPTH = AlertRule(name="depth", when=When.DEPTH, to=("ops",), limit=100)
DEATHS = AlertRule(name="deaths", when=When.JOB_DIED, to=("ops",))


def cause(key: str = "mail", *, passes: bool = False, happened: int = 1) -> Cause:
    return Cause(key=key, title=f"{key} is in trouble", passes=passes, happened=happened)


class Life:
    """A rule, its live alerts, and the notices that it sends."""

    def __init__(self, rule: AlertRule) -> None:
        self.rule = rule
        self.alerts: list[Alert] = []
        self.said: list[datetime] = []
        self._ids = count(1)

    def look(self, now: datetime, *found: Cause) -> tuple[list[str], list[str]]:
        """The keys of a notice sent at this look: those raised, and those over."""
        causes = {each.key: each for each in found}
        alerts = follow(self.rule, causes, self.alerts, now, lambda: str(next(self._ids)))
        notice = next_notice(self.rule, alerts, self.said, now)
        if notice is not None:
            self.said.append(now)
            sent = {alert.id for alert in (*notice.raised, *notice.over)}
            alerts = [reported(alert, now) if alert.id in sent else alert for alert in alerts]
        self.alerts = [
            alert for alert in (rest(self.rule, alert) for alert in alerts) if not is_done(self.rule, alert, now)
        ]
        return _keys(notice.raised if notice else ()), _keys(notice.over if notice else ())


def _keys(alerts: Sequence[Alert]) -> list[str]:
    return [alert.key for alert in alerts]


def test_a_cause_that_lasts_is_one_alert_with_one_notice_and_one_end() -> None:
    life = Life(DEPTH)
    assert life.look(NOON, cause()) == (["mail"], [])
    assert life.look(NOON + MINUTE, cause()) == ([], [])
    assert life.look(NOON + 2 * MINUTE) == ([], ["mail"])
    assert life.look(NOON + 3 * MINUTE) == ([], [])


def test_a_cause_that_comes_back_within_the_throttle_is_the_same_alert_and_notifies_after_it() -> None:
    life = Life(DEPTH)
    life.look(NOON, cause())
    life.look(NOON + MINUTE)
    assert life.look(NOON + 2 * MINUTE, cause()) == ([], []), "its last notice is too recent"
    [alert] = life.alerts
    assert (alert.id, alert.count, alert.is_open) == ("1", 2, True)
    assert life.look(NOON + MINUTE + DEPTH.throttle, cause()) == (["mail"], [])


def test_an_alert_is_forgotten_once_its_end_is_reported_and_its_throttle_is_over() -> None:
    life = Life(DEPTH)
    life.look(NOON, cause())
    life.look(NOON + MINUTE)
    assert len(life.alerts) == 1
    life.look(NOON + MINUTE + DEPTH.throttle)
    assert life.alerts == []


def test_momentary_events_count_up_and_send_no_recovery() -> None:
    life = Life(DEATHS)
    assert life.look(NOON, cause(passes=True, happened=3)) == (["mail"], [])
    assert life.look(NOON + MINUTE, cause(passes=True, happened=2)) == ([], [])
    assert life.alerts[0].count == 5
    assert life.look(NOON + DEATHS.throttle) == (["mail"], []), "it has grown since its notice"
    assert life.look(NOON + 3 * DEATHS.throttle) == ([], [])
    assert life.look(NOON + 5 * DEATHS.throttle) == ([], [])
    assert life.alerts == []


def test_a_rule_without_recovery_reports_no_end() -> None:
    life = Life(AlertRule(name="depth", when=When.DEPTH, to=("ops",), limit=100, recovery=False))
    life.look(NOON, cause())
    assert life.look(NOON + MINUTE) == ([], [])
    assert life.alerts[0].told_end


def test_what_happens_in_quiet_hours_is_in_the_first_notice_after_them() -> None:
    quiet = (read_quiet("quiet", "11:00-13:00 UTC"),)
    life = Life(AlertRule(name="depth", when=When.DEPTH, to=("ops",), limit=100, quiet=quiet))
    assert life.look(NOON, cause("mail")) == ([], [])
    assert life.look(NOON + MINUTE, cause("mail"), cause("reports")) == ([], [])
    assert life.look(NOON + 60 * MINUTE, cause("reports")) == (["mail", "reports"], [])


def test_a_rule_sends_only_a_few_notices_a_minute_and_then_the_rest_together() -> None:
    life = Life(DEPTH)
    queues = [cause(str(number)) for number in range(NOTICES_PER_FLOOD + 2)]
    for number in range(NOTICES_PER_FLOOD):
        now = NOON + timedelta(seconds=number)
        assert life.look(now, *queues[: number + 1]) == ([str(number)], [])
    assert life.look(NOON + timedelta(seconds=10), *queues) == ([], [])
    assert life.look(NOON + MINUTE, *queues) == (["5", "6"], [])


def test_a_rule_that_groups_its_causes_sends_one_notice_per_throttle() -> None:
    life = Life(AlertRule(name="depth", when=When.DEPTH, to=("ops",), limit=100, group=Grouping.RULE))
    assert life.look(NOON, cause("mail")) == (["mail"], [])
    assert life.look(NOON + MINUTE, cause("mail"), cause("reports")) == ([], [])
    assert life.look(NOON + 10 * MINUTE, cause("mail"), cause("reports")) == (["reports"], [])
