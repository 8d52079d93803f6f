"""Which URLs and addresses a sender accepts."""

from __future__ import annotations

import socket

import pytest

from perdure import ArgumentError, SettingsError
from perdure.policy.outbound.target import Target, read_target
from perdure.signals.webhooks.addresses import AddressRules, Place, is_public
from perdure.webhooks import SendRefused

PRIVATE = [
    "127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",  # noqa: S104
    "255.255.255.255", "192.0.0.8", "192.0.2.1", "198.18.0.1", "203.0.113.9", "240.0.0.1", "::1", "::", "fe80::1",
    "fe80::1%eth0", "fd00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1",
    "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:0:1::7f00:1", "2001:db8::1", "100::1",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused_unless_allowed(address: str) -> None:
    target = read_target("https://receiver.example/x")
    places = [_place("93.184.216.34"), _place(address)]
    assert not is_public(address)
    with pytest.raises(SendRefused, match=r"not a public address; .* Webhooks\(app, allow_private=…\)"):
        AddressRules().check(target, places)
    AddressRules(True).check(target, places)
    AddressRules(["Receiver.example."]).check(target, places)
    AddressRules([address.partition("%")[0]]).check(target, places)
    with pytest.raises(SendRefused):
        AddressRules(["10.9.0.0/16", "fd99::/64", "other.example"]).check(target, places)


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "2a00:1450:4001::200e"])
def test_a_public_address_is_allowed(address: str) -> None:
    AddressRules().check(read_target("https://receiver.example"), [_place(address)])


@pytest.mark.parametrize("allowed", ["10.0.0.0/8", ["10.0.0.1/8"], ["10.0.0.0/99"]])
def test_a_setting_that_names_no_network_is_refused(allowed: str | list[str]) -> None:
    with pytest.raises(SettingsError, match="allow_private"):
        AddressRules(allowed)


@pytest.mark.parametrize(
    ("url", "target", "authority"),
    [
        ("HTTPS://Example.ORG", Target("https", "example.org", 443, "/"), "example.org"),
        ("http://example.org.:8080/a?b=c#d", Target("http", "example.org", 8080, "/a?b=c"), "example.org:8080"),
        ("https://exämple.org/ü", Target("https", "xn--exmple-cua.org", 443, "/%C3%BC"), "xn--exmple-cua.org"),
        ("https://[2606:4700::1111]/", Target("https", "2606:4700::1111", 443, "/"), "[2606:4700::1111]"),
    ],
)
def test_a_url_is_read_as_it_goes_over_the_wire(url: str, target: Target, authority: str) -> None:
    assert read_target(url) == target
    assert read_target(url).authority == authority


@pytest.mark.parametrize(
    "url",
    [
        "", "example.org", "//example.org", "ftp://example.org/", "file:///etc/passwd", "http://", "http://a b/",
        "http://a/\r\nX: y", "http://a/\t", "http://[::1", "http://a:99999/", "http://a:0/", "http://user:pw@a/",
        "http://user@a/", "http://[fe80::1%25eth0]/", "http://a%2e/", f"http://{'y' * 70}.example/",
        f"http://x/{'y' * 2_000}",
    ],
)  # fmt: skip
def test_what_is_no_http_url_is_refused(url: str) -> None:
    with pytest.raises(ArgumentError, match="url"):
        read_target(url)


def test_an_error_does_not_show_the_path_which_may_be_a_secret() -> None:
    with pytest.raises(SendRefused) as refused:
        AddressRules().check(read_target("http://hooks.example:81/services/T0K3N?key=1"), [_place("10.0.0.1")])
    assert "http://hooks.example:81 leads to 10.0.0.1" in str(refused.value)
    assert "T0K3N" not in str(refused.value)


def _place(address: str) -> Place:
    if ":" in address:
        return Place(socket.AF_INET6, (address, 443, 0, 0))
    return Place(socket.AF_INET, (address, 443))
