"""Addresses are named by strangers: only public ones are called, whatever a name resolves to by then."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from systems.tests.engines import on_sqlite

from perdure.testing import Sandbox
from perdure.webhooks import is_public
from perdure_systems.audits.addresses import AddressRefused, check_address, normal_url
from perdure_systems.audits.jobs import audit, deliver
from perdure_systems.audits.pipeline.egress import open_egress
from perdure_systems.audits.standins import Outside, QuickInstruments

Setting = Callable[[str, str], None]


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        ("https://example.org:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://example.org:8080", "http://example.org:8080/"),
        ("http://exämple.org/", "http://xn--exmple-cua.org/"),
        (" http://example.org./ ", "http://example.org/"),
        ("http://[2606:4700::1111]/", "http://[2606:4700::1111]/"),
    ],
)
def test_two_texts_for_one_page_are_one_page(given: str, normal: str) -> None:
    assert normal_url(given) == normal
    assert normal_url(normal) == normal


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "//example.org",
        "ftp://example.org/",
        "http://",
        "http://a b/",
        "http://a\n/",
        "http://[::1",
        f"http://x/{'y' * 2_000}",
    ],
)
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(AddressRefused):
        normal_url(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",  # noqa: S104
        "[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:127.0.0.1]", "[2002:7f00:1::]",
        "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[fec0::1]", "[ff02::1]", "localhost", "2130706433", "0x7f.1",
    ],
)  # fmt: skip
async def test_private_addresses_are_refused_unless_they_are_allowed(host: str, settings: Setting) -> None:
    settings("AUDITS_ALLOW_PRIVATE_ADDRESSES", "false")
    with pytest.raises(AddressRefused, match="not a public address"):
        await check_address(f"http://{host}/")
    settings("AUDITS_ALLOW_PRIVATE_ADDRESSES", "true")
    await check_address(f"http://{host}/")


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111"])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@on_sqlite
async def test_a_name_that_leads_elsewhere_by_then_is_not_followed(
    box: Sandbox, outside: Outside, quick: QuickInstruments, settings: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request was allowed when it came; at the time of the delivery its name is an address of the own network."""
    settings("AUDITS_ALLOW_PRIVATE_ADDRESSES", "false")
    real = socket.getaddrinfo

    def rebound(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        return real("127.0.0.1" if host == "rebound.example" else host, port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", rebound)
    target = outside.hook.replace("127.0.0.1", "rebound.example")
    webhook = await deliver.enqueue("0193a1b2-0000-7000-8000-000000000001", target, '{"url":""}')
    page = await audit.enqueue(target)
    await box.drain(travel=True)
    assert outside.calls == {}
    assert "not a public address" in ((await box.job(webhook)).last_error or "")
    assert "not a public address" in ((await box.job(page)).last_error or "")


@on_sqlite
async def test_a_receiver_of_the_own_network_is_called_if_the_settings_name_it(
    box: Sandbox, outside: Outside, settings: Setting
) -> None:
    settings("AUDITS_ALLOW_PRIVATE_ADDRESSES", "false")
    ours, theirs = outside.hook, f"{outside.hook}?by=a-stranger"
    told = [
        await deliver.enqueue(f"0193a1b2-0000-7000-8000-00000000000{n}", url, "{}")
        for n, url in enumerate((ours, theirs))
    ]
    await box.drain(travel=True)
    assert [(await box.job(one)).word for one in told] == ["delivered", "failed"]
    assert outside.calls == {"hook": 1}


async def test_the_proxy_tunnels_only_to_allowed_addresses(outside: Outside, settings: Setting) -> None:
    async with open_egress() as proxy, httpx.AsyncClient(proxy=proxy) as client:
        assert (await client.get(f"{outside.page}a?b=c")).status_code == 200
        settings("AUDITS_ALLOW_PRIVATE_ADDRESSES", "false")
        assert (await client.get(outside.page)).status_code == 403
        with pytest.raises(httpx.ProxyError, match="403"):
            await client.get(outside.page.replace("http://", "https://"))
    assert outside.calls["site"] == 1
