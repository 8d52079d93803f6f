"""Rules as people write them: each mistake is refused by its name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from perdure.errors import ArgumentError
from perdure.operate.alerts.rules import make_rule


def test_a_rule_may_be_written_in_every_form() -> None:
    rule = make_rule("x", "failure_share", to="ops", kind="charge", limit="20%", within=600, quiet="22:00-07:00")
    assert (rule.limit, rule.within, rule.to) == (0.2, timedelta(minutes=10), ("ops",))
    assert make_rule("x", "oldest", to=["ops", "ops"], limit="5m").limit == 300
    assert make_rule("x", "budget", to="ops").limit == 0.8


@pytest.mark.parametrize(
    ("when", "given", "field", "said"),
    [
        ("tea", {}, "when", "must be one of job_died"),
        ("job_died", {"queue": "mail"}, "queue", "means nothing for a rule about job_died: it can name a kind"),
        ("job_died", {"limit": 3}, "limit", "means nothing"),
        ("job_died", {"within": "5m"}, "within", "means nothing"),
        ("job_died", {"to": ()}, "to", "must name 1 to 20 channels"),
        ("job_died", {"throttle": "2d"}, "throttle", "must be from 1s to 1d, got 2d"),
        ("job_died", {"throttle": "soon"}, "throttle", "is not a duration"),
        ("job_died", {"severity": "bad"}, "severity", "must be one of info"),
        ("job_died", {"kind": "perdure.alert"}, "kind", "alerts themselves"),
        ("job_died", {"recovery": "no"}, "recovery", "must be True or False"),
        ("job_died", {"least": 3}, "least", "means nothing"),
        ("new_error", {"lasting": "1m"}, "lasting", "means nothing for a rule about new_error, which happens and is"),
        ("depth", {}, "limit", "is missing: a rule about depth needs one, in jobs"),
        ("depth", {"limit": 0}, "limit", "from 1 to 100,000"),
        ("depth", {"limit": "many"}, "limit", "must be a number"),
        ("depth", {"limit": float("nan")}, "limit", "must be a number"),
        ("depth", {"limit": 1, "queue": "perdure-alerts"}, "queue", "alerts themselves"),
        ("failure_share", {"limit": 1.2}, "limit", "above 0 and up to 1"),
        ("failure_share", {"limit": 0.1, "queue": "a", "kind": "b"}, "kind", "cannot go with queue"),
        ("wait_p95", {"limit": "7m"}, "limit", "must be from 1ms to 6m"),  # a histogram ends there: it would never hold
        ("deaths", {"limit": 3, "within": "1d"}, "within", "must be from 1m to 6h"),
    ],
)
def test_what_cannot_hold_is_refused_by_name(when: str, given: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=said) as refused:
        make_rule("x", when, **{"to": "ops", **given})
    assert refused.value.field == field
