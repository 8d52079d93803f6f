"""A paused rule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tests.support.builders.views import NOON

from perdure.domain.alerts.rule import AlertRule, RuleView, Source, When

RULE = AlertRule(name="slow", when=When.DEPTH, to=("mail",))
INSTANT = timedelta(microseconds=1)


def paused(**changes: Any) -> bool:
    return RuleView(rule=RULE, source=Source.DESK, created_at=NOON, changed_at=NOON, **changes).is_paused(NOON)


def test_a_pause_lasts_until_its_time_or_until_it_is_ended() -> None:
    assert not paused()
    assert paused(paused_at=NOON)
    assert paused(paused_at=NOON, paused_until=NOON + INSTANT)
    assert not paused(paused_at=NOON, paused_until=NOON)
