"""The variables of the original, with their defaults and their errors."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from perdure import SettingsError
from perdure_systems.authorities.settings import Authority, is_configured, max_wait_of, read_settings
from perdure_systems.authorities.standins import StandIns

EXAMPLE = Path(__file__).parents[2] / "src/perdure_systems/authorities/.env.example"
ALL = list(Authority)


@pytest.mark.parametrize("authority", ALL)
@pytest.mark.parametrize(
    ("value", "seconds"), [(None, 600), ("", 600), ("0", 600), ("60", 60), ("86400", 86_400)], ids=str
)
def test_d1_each_authority_has_its_own_variable_for_the_length_of_a_round(
    authority: Authority, value: str | None, seconds: int
) -> None:
    variable = f"CERTCTL_{authority.name}_POLL_MAX_WAIT_SECONDS"
    environment = {} if value is None else {variable: value}
    assert max_wait_of(authority, environment) == timedelta(seconds=seconds)
    others = [max_wait_of(other, environment) for other in ALL if other is not authority]
    assert others == [timedelta(seconds=600)] * 3


@pytest.mark.parametrize("value", ["-1", "10m", "1e9", "99999999"])
def test_d1_a_length_that_cannot_be_meant_is_refused_by_name(value: str) -> None:
    with pytest.raises(SettingsError, match=r"CERTCTL_ENTRUST_POLL_MAX_WAIT_SECONDS.*whole number from 0 to 2592000"):
        max_wait_of(Authority.ENTRUST, {"CERTCTL_ENTRUST_POLL_MAX_WAIT_SECONDS": value})


@pytest.mark.parametrize("authority", ALL)
def test_each_variable_that_is_needed_is_named_when_it_is_missing(authority: Authority, standins: StandIns) -> None:
    prefix = f"CERTCTL_{authority.name}_"
    complete = {name: value for name, value in standins.environment.items() if name.startswith(prefix)}
    assert is_configured(authority, complete)
    optional = {"BASE_URL", "SERVER_CA_PATH", "ROOTS_PATH"}
    for name in complete:
        if name.removeprefix(prefix) not in optional:
            rest = {other: value for other, value in complete.items() if other != name}
            assert not is_configured(authority, rest)
            with pytest.raises(SettingsError, match=name):
                read_settings(authority, rest)


def test_keys_are_sent_over_https_only(standins: StandIns) -> None:
    environment = standins.environment | {"CERTCTL_DIGICERT_BASE_URL": "http://www.digicert.com/services/v2"}
    with pytest.raises(SettingsError, match="CERTCTL_DIGICERT_BASE_URL must begin with https://"):
        read_settings(Authority.DIGICERT, environment)


def test_the_defaults_are_those_of_the_original(standins: StandIns) -> None:
    environment = {"CERTCTL_DIGICERT_API_KEY": "k", "CERTCTL_DIGICERT_ORG_ID": "1"}
    digicert = read_settings(Authority.DIGICERT, environment)
    assert (digicert.url, digicert.option("product")) == ("https://www.digicert.com/services/v2", "ssl_basic")
    sectigo = read_settings(
        Authority.SECTIGO,
        {name: value for name, value in standins.environment.items() if not name.endswith("BASE_URL")},
    )
    assert (sectigo.url, sectigo.option("term")) == ("https://cert-manager.com/api", "365")


def test_the_example_file_has_every_variable_that_is_read(standins: StandIns) -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    read = set(standins.environment) | {f"CERTCTL_{authority.name}_POLL_MAX_WAIT_SECONDS" for authority in ALL}
    assert [name for name in sorted(read) if f"{name}=" not in text] == []


def test_secrets_are_not_shown(standins: StandIns) -> None:
    for authority in ALL:
        settings = read_settings(authority)
        for _, secret in settings.headers:
            assert secret.reveal() not in f"{settings!r} {settings} {secret!r} {secret}"
