"""Incidents: one for the causes that a notice reports anew, over when the last of them has ended."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from msgspec.structs import replace

from perdure.domain.alerts.alert import Alert, Opening
from perdure.domain.alerts.rule import AlertSeverity
from perdure.policy.alerts.incidents import Incident, Over, end_incidents, open_incidents

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TO = ("pager",)


def an_alert(name: str, *, passes: bool = False) -> Alert:
    return Alert(
        id=name,
        rule="deep",
        key=name,
        severity=AlertSeverity.WARNING,
        title=name,
        detail="",
        path="/",
        cli="",
        opened_at=NOON,
        last_at=NOON,
        passes=passes,
    )


def over(alert: Alert) -> Alert:
    return replace(alert, closed_at=NOON)


def after(
    incidents: dict[str, Incident],
    *alerts: Alert,
    rules: dict[str, Collection[str]] | None = None,
    channels: Collection[str] = TO,
) -> tuple[dict[str, Incident], list[Over]]:
    return end_incidents(incidents, {one.id: one for one in alerts}, {"deep": TO} if rules is None else rules, channels)


def test_many_causes_at_once_are_one_incident_which_ends_with_the_last_of_them() -> None:
    many = [an_alert(str(number)) for number in range(1_000)]
    incidents, opens = open_incidents({}, "one", "deep", many, TO)
    assert opens == (Opening(key="one", ends=True),)
    assert after(incidents, *map(over, many[:-1]), many[-1]) == (incidents, [])
    assert after(incidents, *map(over, many)) == ({}, [Over("one", "deep", TO)])


def test_a_new_cause_opens_an_incident_of_its_own_and_one_that_grows_repeats_its_own() -> None:
    mail, pulse = an_alert("mail"), an_alert("pulse")
    incidents, _ = open_incidents({}, "one", "deep", [mail], TO)
    incidents, opens = open_incidents(incidents, "two", "deep", [mail, pulse], TO)
    assert [one.key for one in opens] == ["two", "one"]
    assert after(incidents, over(mail), pulse)[1] == [Over("one", "deep", TO)]


def test_a_cause_that_has_ended_before_it_is_reported_opens_none() -> None:
    """As in quiet hours: a tool has nothing to do."""
    assert open_incidents({}, "one", "deep", [over(an_alert("mail"))], TO) == ({}, ())


def test_causes_that_pass_open_an_incident_that_a_person_ends() -> None:
    death = an_alert("death", passes=True)
    incidents, opens = open_incidents({}, "one", "deep", [death], TO)
    assert opens == (Opening(key="one", ends=False),)
    assert after(incidents, over(death)) == (incidents, []), "more of them repeat it"
    assert after(incidents) == ({}, [])


def test_an_incident_of_a_rule_or_a_channel_that_is_gone_ends_where_it_can() -> None:
    mail = an_alert("mail")
    incidents, _ = open_incidents({}, "one", "deep", [mail], ("pager", "other"))
    both = ("pager", "other")
    assert after(incidents, rules={}, channels=both) == ({}, [Over("one", "deep", both)]), "the rule is gone"
    left, ended = after(incidents, mail, rules={"deep": TO}, channels=both)
    assert (left["one"].channels, ended) == (TO, [Over("one", "deep", ("other",))]), "the rule sends elsewhere"
    left, ended = after(incidents, channels=TO, rules={"deep": both})
    assert (left["one"].channels, ended) == (("other",), [Over("one", "deep", TO)]), "no worker declares the channel"
    assert after(left, channels=both) == ({}, [Over("one", "deep", ("other",))]), "until one does again"
