"""The settings: each has a line in the example, and a value that cannot be used is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure import SettingsError
from perdure_systems.__main__ import read_env_file
from perdure_systems.audits import settings as audit_settings

Setting = Callable[[str, str], None]
FOLDER = Path(audit_settings.__file__).parent


def test_the_example_names_every_setting_and_no_other() -> None:
    read = set(re.findall(r"AUDITS_[A-Z_]+", (FOLDER / "settings.py").read_text()))
    assert set(read_env_file(FOLDER / ".env.example")) == read


def test_the_values_of_the_example_are_the_defaults(settings: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in read_env_file(FOLDER / ".env.example"):
        monkeypatch.delenv(name, raising=False)
    functions = [
        one
        for name, one in vars(audit_settings).items()
        if callable(one) and getattr(one, "__module__", "") == audit_settings.__name__
        if name not in {"api_token", "webhook_secret"}
    ]
    defaults = [one() for one in functions]
    for name, value in read_env_file(FOLDER / ".env.example").items():
        settings(name, value)
    assert [one() for one in functions] == defaults


@pytest.mark.parametrize(
    ("name", "value", "read", "told"),
    [
        ("AUDITS_JOB_MAX_ATTEMPTS", "0", audit_settings.audit_retry, "a whole number from 1 to 20, got 0"),
        ("AUDITS_JOB_BACKOFF_BASE", "half", audit_settings.audit_retry, "a whole number from 0 to 86400, got 'half'"),
        ("AUDITS_FAILED_RETRY_AFTER", "-1", audit_settings.failed_retry_after, "from 0 to 86400, got -1"),
        ("AUDITS_REQUIRE_SCREENSHOTS", "perhaps", audit_settings.require_screenshots, "true or false, got 'perhaps'"),
        ("AUDITS_API_TOKEN", "", audit_settings.api_token, "is not set: without it the API refuses all requests"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_name(
    settings: Setting, name: str, value: str, read: Callable[[], object], told: str
) -> None:
    settings(name, value)
    with pytest.raises(SettingsError, match=f"{name} .*{re.escape(told)}"):
        read()
