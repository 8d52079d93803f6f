"""Each authority is spoken to in its own way: paths, headers, mutual TLS, status words."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
from systems.tests.authorities.support import after_a_drain, order, view_of
from systems.tests.engines import on_sqlite

from perdure import Pending
from perdure.testing import Sandbox
from perdure_systems.authorities import jobs
from perdure_systems.authorities.connectors import Reason, connector_for
from perdure_systems.authorities.connectors.digicert import WORDS as DIGICERT_WORDS
from perdure_systems.authorities.connectors.entrust import WORDS as ENTRUST_WORDS
from perdure_systems.authorities.connectors.globalsign import WORDS as GLOBALSIGN_WORDS
from perdure_systems.authorities.connectors.sectigo import WORDS as SECTIGO_WORDS
from perdure_systems.authorities.failures import Unreachable
from perdure_systems.authorities.orders import find_order
from perdure_systems.authorities.settings import Authority, read_settings
from perdure_systems.authorities.standins import StandIn, StandIns, digicert, globalsign, sectigo
from perdure_systems.authorities.standins.clock import now
from perdure_systems.authorities.standins.pki import new_client, new_root
from perdure_systems.authorities.triage import Meaning, Words
from perdure_systems.authorities.wire import REQUEST_TIMEOUT_SECONDS, Wire

SAME = {"issued": ["issued"], "pending": ["pending", "processing"]}


async def whole_life(box: Sandbox, authority: Authority) -> None:
    """Order, poll until it is issued, collect, and revoke."""
    done = await after_a_drain(box, authority)
    assert (done.status, done.certificate is not None) == ("issued", True)
    certificate = done.certificate
    assert certificate is not None
    await jobs.revoke_certificate.enqueue(
        done.id, authority, certificate.authority_order, certificate.serial, Reason.SUPERSEDED
    )
    await box.drain(raising=True)
    assert (await find_order(done.id)).status == "revoked"


def requests_of(standin: StandIn) -> list[tuple[str, str]]:
    return [(seen.method, seen.path) for seen in standin.seen]


def assert_words(words: Words, *, issued: list[str], pending: list[str], failed: list[str]) -> None:
    for meaning, listed in ((Meaning.ISSUED, issued), (Meaning.PENDING, pending), (Meaning.FAILED, failed)):
        assert {word: words.meaning(word) for word in listed} == dict.fromkeys(listed, meaning)


@on_sqlite
async def test_d6_digicert_its_paths_key_header_and_words(box: Sandbox, standins: StandIns) -> None:
    await whole_life(box, Authority.DIGICERT)
    [booked] = standins.digicert.orders.values()
    assert requests_of(standins.digicert) == [
        ("POST", "/order/certificate/ssl_basic"),
        ("GET", f"/order/certificate/{booked.id}"),
        ("GET", f"/certificate/{booked.id}/download/format/pem_all"),
        ("PUT", f"/certificate/{booked.serial:x}/revoke"),
    ]
    assert {seen.headers.get("x-dc-devkey") for seen in standins.digicert.seen} == {digicert.KEY}
    assert booked.state == "revoked"
    assert_words(DIGICERT_WORDS, **SAME, failed=["rejected", "denied"])


@on_sqlite
async def test_d7_sectigo_its_paths_three_headers_and_words(box: Sandbox, standins: StandIns) -> None:
    await whole_life(box, Authority.SECTIGO)
    [booked] = standins.sectigo.orders.values()
    assert requests_of(standins.sectigo) == [
        ("POST", "/ssl/v1/enroll"),
        ("GET", f"/ssl/v1/{booked.id}"),
        ("GET", f"/ssl/v1/collect/{booked.id}/pem"),
        ("POST", f"/ssl/v1/revoke/{booked.id}"),
    ]
    names = ("customeruri", "login", "password")
    sent = {tuple(seen.headers.get(name) for name in names) for seen in standins.sectigo.seen}
    assert sent == {(sectigo.CUSTOMER, sectigo.LOGIN, sectigo.PASSWORD)}
    assert booked.state == "revoked"
    failed = ["Rejected", "Revoked", "Expired", "Not Enrolled"]
    assert_words(SECTIGO_WORDS, issued=["Issued"], pending=["Applied", "Pending"], failed=failed)


async def test_d7_a_certificate_that_is_not_ready_to_collect_is_still_pending(
    sqlite_box: Sandbox, standins: StandIns
) -> None:
    standins.sectigo.behaviour.not_ready = 2
    order_id = await order(Authority.SECTIGO)
    await sqlite_box.drain()
    view = await view_of(order_id)
    assert (view.state, view.failures) == ("waiting", 0)
    assert "(-183)" in (view.reason or "")
    await sqlite_box.drain(travel=True)
    done = await find_order(order_id)
    assert (done.status, done.polls) == ("issued", 3)


async def test_d7_another_400_of_the_collect_path_is_an_error(sqlite_box: Sandbox, standins: StandIns) -> None:
    order_id = await order(Authority.SECTIGO)
    standins.sectigo.behaviour.approve_after = None
    await sqlite_box.drain()
    [booked] = standins.sectigo.orders.values()
    connector = connector_for(Authority.SECTIGO)
    with pytest.raises(Pending, match="Applied"):
        await connector.collect(booked.id, order_id)
    standins.sectigo.approve(booked.id)
    booked.state = "revoked"  # the status says issued, and the collect path 400 with another code
    await sqlite_box.drain(travel="10s")
    failed = await find_order(order_id)
    assert failed.status == "failed"
    assert "400 Bad Request" in (failed.error or "")


@on_sqlite
async def test_d8_entrust_its_paths_and_words(box: Sandbox, standins: StandIns) -> None:
    await whole_life(box, Authority.ENTRUST)
    [booked] = standins.entrust.orders.values()
    base = "/v1/certificate-authorities/stand-in-ca"
    assert requests_of(standins.entrust) == [
        ("POST", f"{base}/enrollments"),
        ("GET", f"{base}/enrollments/{booked.id}"),
        ("PUT", f"{base}/certificates/{booked.serial:x}/revoke"),
    ]
    assert standins.entrust.seen[-1].body == {"revocationReason": "Superseded"}
    assert_words(
        ENTRUST_WORDS,
        issued=["ISSUED"],
        pending=["PENDING", "PROCESSING", "AWAITING_APPROVAL"],
        failed=["REJECTED", "DENIED", "FAILED"],
    )


@on_sqlite
async def test_d9_globalsign_its_paths_headers_serial_and_words(box: Sandbox, standins: StandIns) -> None:
    await whole_life(box, Authority.GLOBALSIGN)
    [booked] = standins.globalsign.orders.values()
    serial = f"{booked.serial:X}"
    assert requests_of(standins.globalsign) == [
        ("POST", "/v2/certificates"),
        ("GET", f"/v2/certificates/{serial}"),
        ("PUT", f"/v2/certificates/{serial}/revoke"),
    ]
    sent = {(seen.headers.get("apikey"), seen.headers.get("apisecret")) for seen in standins.globalsign.seen}
    assert sent == {(globalsign.KEY, globalsign.SECRET)}
    assert_words(GLOBALSIGN_WORDS, **SAME, failed=["rejected", "denied", "failed"])


@pytest.mark.parametrize("authority", [Authority.ENTRUST, Authority.GLOBALSIGN])
async def test_d8_d9_a_client_without_a_certificate_or_with_a_strange_one_is_not_let_in(
    authority: Authority, standins: StandIns, tmp_path: Path
) -> None:
    settings = read_settings(authority)
    async with httpx.AsyncClient(verify=ssl.create_default_context(cafile=settings.server_roots)) as bare:
        with pytest.raises(httpx.TransportError):
            await bare.get(f"{settings.url}/v2/certificates/1")
    stranger = new_client(new_root("stranger", now()), "stranger.example", now())
    certificate, key = tmp_path / "stranger.pem", tmp_path / "stranger.key"
    certificate.write_text(stranger.pem)
    key.write_text(stranger.key_pem)
    strange = type(settings)(
        **{name: getattr(settings, name) for name in settings.__struct_fields__}
        | {"client_certificate": certificate, "client_key": key}
    )
    wire = Wire(strange)
    with pytest.raises(Unreachable):
        await wire.call("GET", "/v2/certificates/1")
    await wire.close()
    assert standins.of(authority).seen == []


@pytest.mark.parametrize("authority", [Authority.ENTRUST, Authority.GLOBALSIGN])
async def test_d8_d9_a_rotated_client_certificate_is_used_without_a_restart(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not accepted is a TLS error, and the order stays pending until the right one is there."""
    settings = read_settings(authority)
    good = [path.read_text() for path in (settings.client_certificate, settings.client_key) if path is not None]
    stranger = new_client(new_root("stranger", now()), "stranger.example", now())
    files = tmp_path / "client.pem", tmp_path / "client.key"
    monkeypatch.setenv(f"CERTCTL_{authority.name}_CLIENT_CERT_PATH", str(files[0]))
    monkeypatch.setenv(f"CERTCTL_{authority.name}_CLIENT_KEY_PATH", str(files[1]))

    def rotate(texts: list[str]) -> None:
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)

    rotate(good)
    standins.of(authority).behaviour.approve_after = 2
    order_id = await order(authority)
    await sqlite_box.drain()
    rotate([stranger.pem, stranger.key_pem])
    await sqlite_box.drain(travel="30s")
    refused = await find_order(order_id)
    assert (refused.status, refused.polls, len(standins.of(authority).asked)) == ("parked", 3, 1)
    assert "gave no answer" in (refused.last_answer or "")
    rotate(good)
    await sqlite_box.drain(travel=True)
    assert (await find_order(order_id)).status == "issued"


@pytest.mark.parametrize("authority", list(Authority))
async def test_orders_have_connections_of_their_own_and_polls_share_one(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns
) -> None:
    """A connection that the authority is just closing would lose the answer to an order."""
    standins.of(authority).behaviour.approve_after = None
    for number in range(3):
        await order(authority, f"{number}.example")
    await sqlite_box.drain()
    placed = {seen.port for seen in standins.of(authority).seen if seen.method == "POST"}
    polled = {seen.port for seen in standins.of(authority).seen if seen.is_status}
    assert (len(placed), len(polled), len(placed & polled)) == (3, 1, 0)


@pytest.mark.parametrize("authority", list(Authority))
async def test_d10_an_unknown_status_is_pending(authority: Authority, sqlite_box: Sandbox, standins: StandIns) -> None:
    standins.of(authority).behaviour.approve_after = 2
    standins.of(authority).behaviour.pending_word = "reticulating"
    seen = await after_a_drain(sqlite_box, authority)
    assert (seen.status, seen.polls) == ("parked", 1)
    assert "'reticulating'" in (seen.last_answer or "")
    assert "not a status we know" in (seen.last_answer or "")
    await sqlite_box.drain(travel=True)
    assert (await find_order(seen.id)).status == "issued"


@pytest.mark.parametrize("authority", list(Authority))
async def test_d10_issued_without_a_certificate_is_an_error(
    authority: Authority, sqlite_box: Sandbox, standins: StandIns
) -> None:
    standins.of(authority).behaviour.issued_without_certificate = True
    failed = await after_a_drain(sqlite_box, authority)
    assert (failed.status, failed.polls) == ("failed", 1)
    assert "CertificateMissing" in (failed.error or "")


def test_d10_a_request_may_take_thirty_seconds() -> None:
    assert REQUEST_TIMEOUT_SECONDS == 30


@pytest.mark.parametrize("knob", ["latency", "drip"])
async def test_d10_a_request_that_takes_longer_is_given_up_and_the_order_stays_pending(
    knob: str, sqlite_box: Sandbox, standins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that sends a byte now and then is within every limit of the client library but the whole one."""
    monkeypatch.setattr(Wire.__init__, "__kwdefaults__", {"timeout": 0.4})
    order_id = await order(Authority.DIGICERT)
    standins.digicert.behaviour.approve_after = None
    await sqlite_box.drain()
    setattr(standins.digicert.behaviour, knob, 30.0 if knob == "latency" else 0.1)
    await sqlite_box.drain(travel="10s")
    seen = await find_order(order_id)
    assert (seen.status, seen.polls) == ("parked", 2)
    assert "0.4 s are over" in (seen.last_answer or "")
