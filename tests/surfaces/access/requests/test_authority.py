"""Which names, addresses and origins are ours."""

from __future__ import annotations

import pytest

from perdure.surfaces.access.requests.authority import (
    Authority,
    is_allowed,
    is_loopback,
    is_same_origin,
    read_address,
    read_authority,
)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("desk.example.com", Authority("desk.example.com")),
        ("Desk.Example.com.:8484", Authority("desk.example.com", 8484)),
        ("[::1]:8484", Authority("::1", 8484)),
        ("10.0.0.7", Authority("10.0.0.7")),
    ],
)
def test_a_host_is_read_in_lower_case_without_brackets(text: str, read: Authority) -> None:
    assert read_authority(text) == read


@pytest.mark.parametrize(
    "text", ["", "a b", "desk/path", "user@desk", "desk:", "desk:port", "desk:123456", "::1", "-desk", "a" * 261]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    assert read_authority(text) is None


def test_every_form_of_this_machine_is_loopback_and_no_other_name_is() -> None:
    for host in ("localhost", "shop.localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert is_loopback(host)
    for host in ("localhost.example.com", "notlocalhost", "128.0.0.1", "::2", "0.0.0.0"):  # noqa: S104 - a name
        assert not is_loopback(host)
    assert str(read_address("::ffff:10.0.0.7")) == "10.0.0.7"


def test_another_name_that_is_pointed_at_us_is_not_allowed() -> None:
    hosts = ("desk.example.com", "*.corp.example", "[2001:db8::1]")
    for name in ("desk.example.com", "a.corp.example", "a.b.corp.example", "2001:db8::1", "localhost"):
        assert is_allowed(Authority(name), hosts, any_address=False)
    for name in ("evil.example", "desk.example.com.evil.example", "corp.example", "xcorp.example", "10.0.0.7"):
        assert not is_allowed(Authority(name), hosts, any_address=False)
    assert is_allowed(Authority("10.0.0.7"), hosts, any_address=True)
    assert not is_allowed(Authority("evil.example"), hosts, any_address=True)


@pytest.mark.parametrize(
    ("origin", "authority", "is_https", "same"),
    [
        ("http://desk:8484", Authority("desk", 8484), False, True),
        ("http://DESK", Authority("desk"), False, True),
        ("http://desk:80", Authority("desk"), False, True),
        ("http://desk", Authority("desk", 80), False, True),
        ("https://desk", Authority("desk"), False, True),  # a proxy that was not declared ends TLS
        ("http://desk", Authority("desk"), True, False),
        ("http://desk:8485", Authority("desk", 8484), False, False),
        ("https://desk", Authority("desk", 8484), True, False),
        ("http://evil", Authority("desk"), False, False),
        ("http://desk@evil", Authority("desk"), False, False),
        ("ftp://desk", Authority("desk"), False, False),
        ("null", Authority("desk"), False, False),
    ],
)
def test_an_origin_is_ours_if_host_and_port_are(origin: str, authority: Authority, is_https: bool, same: bool) -> None:
    assert is_same_origin(origin, authority, is_https=is_https) is same
