"""The details of an audit entry as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

from perdure.domain.operate.audit import AuditEntry
from perdure.surfaces.desk.view.changes import Account, account_of

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def test_the_details_of_an_audit_entry_are_reported_in_words() -> None:
    details = {
        "rule": "slow",
        "keep": 259_200.0,
        "after": {"lasting": "P0D", "throttle": "PT600S", "said": "P", "at": "PT5M"},
    }
    account = account_of(AuditEntry(id=1, at=NOON, actor="ada", action="alert_rule.save", job_id=None, details=details))
    assert account.facts == (("rule", "slow"), ("keep", "3 d"))
    assert [(one.name, one.after) for one in account.changes] == [
        ("lasting", "0 s"),
        ("throttle", "10 m"),
        ("said", "P"),
        ("at", "PT5M"),
    ]


def told(**details: object) -> Account:
    return account_of(
        AuditEntry(id=1, at=NOON, actor="ada", action="schedule.save", job_id=None, details=dict(details))
    )


def test_only_what_changed_is_a_change_with_both_values() -> None:
    account = told(before={"a": 1, "b": "x", "gone": True}, after={"a": 2, "b": "x", "new": [1]})
    assert [(one.name, one.before, one.after) for one in account.changes] == [
        ("a", "1", "2"),
        ("gone", "true", None),
        ("new", None, "[1]"),
    ]
    assert [(one.name, one.before, one.after) for one in told(before="closed", after="open").changes] == [
        ("value", "closed", "open")
    ]


def test_times_lose_their_fractions_and_long_values_their_end() -> None:
    account = told(at="2026-03-04T12:00:00.123456Z", text="x" * 400, nothing=None)
    assert account.facts == (("at", "2026-03-04T12:00:00Z"), ("text", "x" * 300), ("nothing", "none"))


def test_the_first_part_and_the_rest_are_the_whole() -> None:
    account = told(**{f"fact{number}": number for number in range(10)}, after=dict.fromkeys("abcdefghij", 1))
    assert (len(account.first), len(account.rest), len(account)) == (16, 4, 20)
    assert account.first.facts + account.rest.facts == account.facts
    assert account.first.changes + account.rest.changes == account.changes
