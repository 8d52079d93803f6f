"""Where a URL leads."""

from __future__ import annotations

import pytest

from perdure.errors import ArgumentError
from perdure.policy.outbound.target import Target, read_target, shown_url


@pytest.mark.parametrize(
    ("url", "target", "authority"),
    [
        ("https://hooks.example", Target("https", "hooks.example", 443, "/"), "hooks.example"),
        ("HTTP://Hooks.Example.:8080/a?b=c", Target("http", "hooks.example", 8080, "/a?b=c"), "hooks.example:8080"),
        ("https://[::1]:443/ü", Target("https", "::1", 443, "/%C3%BC"), "[::1]"),
        (
            "https://bücher.example/?q=%20",
            Target("https", "xn--bcher-kva.example", 443, "/?q=%20"),
            "xn--bcher-kva.example",
        ),
    ],
)
def test_a_url_is_read_into_who_is_asked_and_for_what(url: str, target: Target, authority: str) -> None:
    assert read_target(url) == target
    assert target.authority == authority
    assert target.is_encrypted is url.startswith("https")
    assert target.origin == f"{target.scheme}://{authority}"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("", "must begin with https:// or http:// and name a host, got 'no' scheme"),
        ("ftp://hooks.example", "must begin with .*got 'ftp' scheme"),
        ("https:///path", "must begin with"),
        ("https://a b", "must have no spaces or control characters"),
        ("https://a\x00b", "must have no spaces or control characters"),
        ("https://ada:hunter2@hooks.example", "must have no user name or password: send a header"),
        ("https://@hooks.example", "must have no user name"),
        ("https://hooks.example:0", "must name a port from 1 to 65535, got 0"),
        ("https://hooks.example:99999", "cannot be read"),
        ("https://[fe80::1%25eth0]/", r"must name a host without a zone or escapes \(%\)|cannot be read"),
        ("https://" + "a" * 2_000, "must have at most 2,000 characters, got 2,008"),
    ],
)
def test_a_url_that_cannot_be_asked_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(ArgumentError, match=f"^url {said}") as refused:
        read_target(url)
    assert "hunter2" not in str(refused.value)


def test_the_values_of_a_query_are_not_shown() -> None:
    assert shown_url("https://hooks.example/a?token=x&b=y") == "https://hooks.example/a?***"
    assert shown_url("https://hooks.example/a") == "https://hooks.example/a"
