"""The API: what it takes, what it answers, and how it refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from cryptography import x509
from systems.tests.engines import on_sqlite

from perdure.testing import Sandbox
from perdure_systems.authorities.settings import Authority
from perdure_systems.authorities.standins import StandIns, new_request
from perdure_systems.authorities.system import SYSTEM
from perdure_systems.kit.web import api

ORDERS = "/api/v1/orders"


@pytest.fixture
async def client(box: Sandbox) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(api(SYSTEM.routes))
    async with httpx.AsyncClient(transport=transport, base_url="http://system.test") as client:
        yield client


async def placed(client: httpx.AsyncClient, authority: str = "digicert", *names: str) -> str:
    answer = await client.post(ORDERS, json={"authority": authority, "csr": new_request(*(names or ("a.example",)))})
    assert answer.status_code == 202
    return str(answer.json()["id"])


async def test_an_order_from_the_request_to_the_chain(
    client: httpx.AsyncClient, box: Sandbox, standins: StandIns
) -> None:
    standins.entrust.behaviour.approve_after = None
    body = {"authority": "entrust", "csr": new_request("shop.example", "www.shop.example"), "reference": "shop-2026"}
    answer = await client.post(ORDERS, json=body)
    assert (answer.status_code, answer.headers["location"]) == (202, f"{ORDERS}/ord-shop-2026")
    fresh = answer.json()
    assert (fresh["id"], fresh["status"], fresh["polls"]) == ("ord-shop-2026", "queued", 0)
    assert fresh["names"] == ["shop.example", "www.shop.example"]
    await box.drain()
    parked = (await client.get(f"{ORDERS}/ord-shop-2026")).json()
    assert (parked["status"], parked["polls"], parked["authority_order"]) == ("parked", 1, "trk-1001")
    assert parked["next_poll"] < parked["deadline"]
    assert parked["last_answer"] == "order trk-1001 is 'AWAITING_APPROVAL' at Entrust"
    early = await client.get(f"{ORDERS}/ord-shop-2026/chain")
    assert (early.status_code, early.json()["detail"]) == (
        409,
        "order ord-shop-2026 is parked: there is no certificate yet",
    )
    standins.entrust.approve("trk-1001")
    assert (await client.post(f"{ORDERS}/ord-shop-2026/poll")).status_code == 202
    await box.drain()
    issued = (await client.get(f"{ORDERS}/ord-shop-2026")).json()
    assert (issued["status"], issued["polls"], issued["next_poll"]) == ("issued", 2, None)
    assert "chain" not in issued["certificate"]
    chain = await client.get(issued["chain"])
    assert chain.headers["content-type"] == "application/pem-certificate-chain"
    leaf, _ = x509.load_pem_x509_certificates(chain.content)
    assert f"{leaf.serial_number:x}" == issued["certificate"]["serial"]


async def test_the_same_reference_is_the_same_order(client: httpx.AsyncClient, standins: StandIns) -> None:
    body = {"authority": "digicert", "csr": new_request("shop.example"), "reference": "one"}
    first, again = [await client.post(ORDERS, json=body) for _ in range(2)]
    assert (first.status_code, again.status_code, again.json()["id"]) == (202, 200, first.json()["id"])
    around = await client.post(ORDERS, json=body | {"csr": f"Shop\x00\n{body['csr']}\n\x00"})
    assert (around.status_code, around.json()["id"]) == (200, first.json()["id"]), "the request is what is within"
    rekeyed = await client.post(ORDERS, json=body | {"csr": new_request("shop.example")})
    assert (rekeyed.status_code, rekeyed.json()["field"]) == (409, "reference"), (
        "its certificate would not fit this key"
    )
    assert "with another key" in rekeyed.json()["detail"]
    other = await client.post(ORDERS, json=body | {"authority": "sectigo"})
    assert (other.status_code, other.json()["field"]) == (409, "reference")
    assert "taken by an order for shop.example at DigiCert" in other.json()["detail"]


@pytest.mark.parametrize(
    ("change", "field", "piece"),
    [
        ({"authority": "verisign"}, "authority", "Invalid enum value 'verisign'"),
        ({"csr": "hello"}, "csr", "must be a certificate signing request"),
        ({"csr": 7}, "csr", "Expected `str`"),
        ({"reference": "a b"}, "reference", "matching regex"),
        ({"reference": "a\n"}, "reference", "matching regex"),
        ({"reference": ""}, "reference", "length >= 1"),
        ({"colour": "red"}, "colour", "unknown field"),
    ],
)
@on_sqlite
async def test_a_bad_order_is_refused_by_name_and_changes_nothing(
    change: dict[str, object], field: str, piece: str, client: httpx.AsyncClient, standins: StandIns
) -> None:
    body = {"authority": "digicert", "csr": new_request("a.example")} | change
    answer = await client.post(ORDERS, json=body)
    assert (answer.status_code, answer.json().get("field")) == (400, field), answer.text
    assert piece in answer.json()["detail"]
    assert (await client.get(ORDERS)).json() == {"orders": [], "has_more": False}


@on_sqlite
async def test_an_authority_without_its_variables_takes_no_orders(
    client: httpx.AsyncClient, standins: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CERTCTL_SECTIGO_PASSWORD")
    body = {"authority": "sectigo", "csr": new_request("a.example")}
    answer = await client.post(ORDERS, json=body)
    assert answer.status_code == 400
    assert "CERTCTL_SECTIGO_PASSWORD is not set: orders at Sectigo need it" in answer.json()["detail"]
    assert (await client.get(ORDERS)).json()["orders"] == []
    shown = {one["name"]: one for one in (await client.get("/api/v1/authorities")).json()["authorities"]}
    assert [name for name, one in shown.items() if not one["configured"]] == ["sectigo"]
    assert shown["entrust"]["mutual_tls"] is True
    assert shown["digicert"]["max_wait_seconds"] == 600


async def test_orders_are_listed_by_authority_and_status(
    client: httpx.AsyncClient, box: Sandbox, standins: StandIns
) -> None:
    standins.entrust.behaviour.approve_after = None
    standins.sectigo.behaviour.rejected_word = "Rejected"
    ids = {authority: await placed(client, authority.value) for authority in Authority}
    await box.drain()
    for query, expected in {
        "": set(ids.values()),
        "?status=open": {ids[Authority.ENTRUST]},
        "?status=parked": {ids[Authority.ENTRUST]},
        "?status=failed": {ids[Authority.SECTIGO]},
        "?status=issued": {ids[Authority.DIGICERT], ids[Authority.GLOBALSIGN]},
        "?status=issued&authority=digicert": {ids[Authority.DIGICERT]},
        "?authority=sectigo&status=issued": set(),
    }.items():
        assert {one["id"] for one in (await client.get(ORDERS + query)).json()["orders"]} == expected, query
    pages = [(await client.get(f"{ORDERS}?per_page=3&page={number}")).json() for number in (1, 2)]
    assert [(len(page["orders"]), page["has_more"]) for page in pages] == [(3, True), (1, False)]
    for query, field in {"?status=sent": "status", "?authority=x": "authority", "?page=0": "page"}.items():
        answer = await client.get(ORDERS + query)
        assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_cancel_requeue_and_poll_now(client: httpx.AsyncClient, box: Sandbox, standins: StandIns) -> None:
    standins.digicert.behaviour.approve_after = 2
    order_id = await placed(client)
    await box.drain()
    answer = await client.post(f"{ORDERS}/{order_id}/cancel", json={"why": "wrong name"})
    assert (answer.status_code, answer.json()["status"]) == (202, "cancelled")
    assert (await client.post(f"{ORDERS}/{order_id}/cancel")).status_code == 409
    assert (await client.post(f"{ORDERS}/{order_id}/poll")).status_code == 409
    assert (await client.post(f"{ORDERS}/{order_id}/requeue")).status_code == 202
    await box.drain(travel=True)
    done = (await client.get(f"{ORDERS}/{order_id}")).json()
    assert (done["status"], done["polls"], len(standins.digicert.orders)) == ("issued", 2, 1)
    refused = await client.post(f"{ORDERS}/{order_id}/requeue")
    assert (refused.status_code, "place a new one" in refused.json()["detail"]) == (409, True)
    for name in ("ord-none", "%00", "x" * 500):
        for action in ("", "/chain"):
            answer = await client.get(f"{ORDERS}/{name}{action}")
            assert (answer.status_code, "there is no order" in answer.json()["detail"]) == (404, True)
        for action in ("poll", "cancel", "requeue", "revoke"):
            assert (await client.post(f"{ORDERS}/{name}/{action}")).status_code == 404


async def test_a_certificate_is_revoked_once(client: httpx.AsyncClient, box: Sandbox, standins: StandIns) -> None:
    order_id = await placed(client)
    early = await client.post(f"{ORDERS}/{order_id}/revoke")
    assert (early.status_code, "no certificate to revoke" in early.json()["detail"]) == (409, True)
    await box.drain()
    bad = await client.post(f"{ORDERS}/{order_id}/revoke", json={"reason": "bored"})
    assert (bad.status_code, bad.json()["field"]) == (400, "reason")
    for _ in range(2):
        answer = await client.post(f"{ORDERS}/{order_id}/revoke", json={"reason": "keyCompromise"})
        assert (answer.status_code, answer.json()["status"]) == (202, "revoking")
    await box.drain(raising=True)
    revoked = (await client.get(f"{ORDERS}/{order_id}")).json()
    assert (revoked["status"], revoked["certificate"]["revoke_reason"]) == ("revoked", "keyCompromise")
    assert (await client.post(f"{ORDERS}/{order_id}/revoke")).json()["status"] == "revoked"
    await box.drain()
    assert [seen.method for seen in standins.digicert.seen].count("PUT") == 1


@on_sqlite
async def test_a_revocation_that_fails_is_reported_and_can_be_tried_again(
    client: httpx.AsyncClient, box: Sandbox, standins: StandIns
) -> None:
    order_id = await placed(client)
    await box.drain()
    [booked] = standins.digicert.orders.values()
    standins.digicert.orders.clear()
    await client.post(f"{ORDERS}/{order_id}/revoke")
    await box.drain()
    seen = (await client.get(f"{ORDERS}/{order_id}")).json()
    assert seen["status"] == "issued"
    assert "Refused: DigiCert answered 404 Not Found to PUT /certificate/" in seen["revocation_error"]
    assert "still valid" in (await client.get(f"/orders/{order_id}")).text
    standins.digicert.orders[booked.id] = booked
    await client.post(f"{ORDERS}/{order_id}/revoke")
    await box.drain()
    assert (await client.get(f"{ORDERS}/{order_id}")).json()["status"] == "revoked"
