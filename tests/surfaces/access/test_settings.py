"""The settings of access."""

from __future__ import annotations

import pytest

from perdure.errors import SettingsError
from perdure.surfaces.access.settings import AccessSettings


def test_settings_come_from_the_environment() -> None:
    given = {
        "PERDURE_DESK_HOSTS": "desk.example.com, *.example.org",
        "PERDURE_DESK_PROXIES": "10.0.0.0/8,unix",
        "PERDURE_DESK_REQUIRES_TOKEN": "1",
        "PERDURE_DESK_READ_ONLY": "no",
        "PERDURE_DESK_SESSION_LIFETIME": "30m",
    }
    assert AccessSettings.from_env(given) == AccessSettings(
        hosts=["desk.example.com", "*.example.org"],
        proxies=["10.0.0.0/8", "unix"],
        requires_token=True,
        session_lifetime="30m",
    )
    assert AccessSettings.from_env({}) == AccessSettings()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"hosts": "desk"}, "must be a list"),
        ({"hosts": ["https://desk"]}, "without scheme"),
        ({"hosts": ["desk:80"]}, "without scheme and port"),
        ({"hosts": ["*"]}, "such as"),
        ({"proxies": ["nginx"]}, "addresses or networks"),
        ({"session_lifetime": "0s"}, "at least 1s"),
        ({"largest_body": 1}, "at least 1,024"),
        ({"login_failures": 0}, "at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        AccessSettings(**settings)  # type: ignore[arg-type]


def test_a_flag_must_be_one() -> None:
    with pytest.raises(SettingsError, match="PERDURE_DESK_READ_ONLY must be 1 or 0"):
        AccessSettings.from_env({"PERDURE_DESK_READ_ONLY": "maybe"})
