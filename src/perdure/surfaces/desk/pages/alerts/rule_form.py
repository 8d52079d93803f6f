"""The form of a rule: its values, and the rule that they define."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from perdure.domain.alerts.rule import AlertRule, RuleView, When
from perdure.domain.duration import format_duration
from perdure.errors import ArgumentError
from perdure.operate.alerts.rules import make_rule
from perdure.surfaces.desk.pages.forms.written import command_line, listed_in
from perdure.surfaces.desk.visit import Visit

_EMPTY: Final = {
    "name": "",
    "when": "job_died",
    "to": "",
    "queue": "",
    "kind": "",
    "about": "",
    "limit": "",
    "within": "",
    "lasting": "",
    "least": "",
    "severity": "warning",
    "throttle": "10m",
    "group": "cause",
    "quiet": "",
    "recovery": "yes",
}
_UNLESS_USUAL: Final = ("limit", "within", "lasting", "least", "severity", "throttle", "group")
_TIMES: Final = frozenset({When.OLDEST, When.WAIT_P95})


def written_fields(visit: Visit, view: RuleView | None) -> dict[str, str]:
    """The form's values: as submitted, else from the existing rule, else the defaults."""
    if visit.form:
        return {name: visit.field(name) for name in _EMPTY}
    if view is None:
        return dict(_EMPTY)
    rule = view.rule
    limit = "" if rule.limit is None else f"{rule.limit:g}{'s' if rule.when in _TIMES else ''}"
    return {
        "name": rule.name,
        "when": rule.when,
        "to": ", ".join(rule.to),
        "queue": rule.queue or "",
        "kind": rule.kind or "",
        "about": rule.about or "",
        "limit": limit,
        "within": "" if rule.within is None else format_duration(rule.within),
        "lasting": format_duration(rule.lasting) if rule.lasting else "",
        "least": str(rule.least) if rule.when in {When.FAILURE_SHARE, When.WAIT_P95} else "",
        "severity": rule.severity,
        "throttle": format_duration(rule.throttle),
        "group": rule.group,
        "quiet": "; ".join(map(str, rule.quiet)),
        "recovery": "yes" if rule.recovery else "no",
    }


def rule_command(fields: Mapping[str, str], why: str) -> str:
    """The command for a terminal that makes the rule of this form; default values are left out."""
    given = {name: value.strip() for name, value in fields.items()}
    of = {name: given[name] for name in ("queue", "kind", "about")}
    unusual = {name: given[name] if given[name] != _EMPTY[name] else "" for name in _UNLESS_USUAL}
    line = command_line(
        ["alerts", "add", given["name"] or "NAME"],
        {"when": given["when"], "to": listed_in(given["to"]) or "CHANNEL", **of, **unusual}
        | {"quiet": listed_in(given["quiet"], ";"), "why": why},
    )
    return line if given["recovery"] != "no" else f"{line} --no-recovery"


def read_rule(visit: Visit) -> AlertRule:
    """The rule in the form; ArgumentError names the invalid field."""
    given = {name: visit.field(name).strip() for name in _EMPTY}
    if not given["name"]:
        raise ArgumentError("name", "is missing: write one, such as payments")
    least = given["least"]
    if least and not (least.isdecimal() and len(least) <= 9):  # noqa: PLR2004 - as long as any that is allowed
        raise ArgumentError("least", f"must be a whole number, got {least!r:.40}")
    return make_rule(
        given["name"],
        given["when"],
        to=listed_in(given["to"]),
        queue=given["queue"] or None,
        kind=given["kind"] or None,
        about=given["about"] or None,
        limit=given["limit"] or None,
        within=given["within"] or None,
        lasting=given["lasting"] or 0,
        least=int(least) if least else None,
        severity=given["severity"],
        throttle=given["throttle"] or "10m",
        group=given["group"],
        quiet=listed_in(given["quiet"], ";"),
        recovery=given["recovery"] != "no",
    )
