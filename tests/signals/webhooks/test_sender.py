"""The sender meets real receivers: good, slow, broken and hostile ones."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.support.certificates import self_made
from tests.support.receiver import Reply, drips, floods, never, receiving, says

from perdure import Permanent, RetryAfter
from perdure.signals.webhooks.addresses import Place
from perdure.signals.webhooks.sender import ANSWER_LIMIT_BYTES, BODY_LIMIT_BYTES
from perdure.webhooks import Sender, SendFailed, SendRefused, verify

BODY = b'{"id":7}'
LONG = "x" * 40_000


def at(*addresses: str) -> Resolve:
    """A resolver that gives these addresses, the next one at each call; the last for good."""
    return Resolve([[address] for address in addresses])


class Resolve:
    def __init__(self, answers: list[list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[Place]:
        self.asked.append(host)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            Place(socket.AF_INET6, (one, port, 0, 0)) if ":" in one else Place(socket.AF_INET, (one, port))
            for one in found
        ]


async def test_e9_a_request_arrives_whole_and_signed() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    async with receiving() as receiver:
        answer = await Sender(allow_private=True).send(
            f"{receiver.url}?a=b",
            BODY,
            secret="s3cret",  # noqa: S106 - of the test
            headers={"X-Webhook-ID": "d1", "content-type": "text/plain", "x-webhook-signature": "mine"},
            sent_at=now,
        )
    assert (answer.status, answer.body) == (200, b"thanks")
    [request] = receiver.received
    assert request.line == "POST /hook?a=b HTTP/1.1"
    assert request.body == BODY
    assert request.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert request.headers["content-type"] == "text/plain"
    assert request.headers["x-webhook-id"] == "d1"
    verify("s3cret", request.headers, request.body, now=now)


async def test_without_a_secret_a_request_is_not_signed() -> None:
    async with receiving() as receiver:
        await Sender(allow_private=True).send(receiver.url, b"")
    assert not [name for name in receiver.received[0].headers if name.startswith("x-webhook")]


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1"])
async def test_a_private_address_is_not_connected_to_however_it_is_written(host: str) -> None:
    async with receiving() as receiver:
        with pytest.raises(SendRefused, match="not a public address"):
            await Sender().send(f"http://{host}:{receiver.port}/", BODY)
        with pytest.raises(SendRefused, match="not a public address"):
            await Sender().check(f"http://{host}:{receiver.port}/")
    assert receiver.connections == 0


async def test_a_name_that_changes_between_check_and_connect_leads_to_the_checked_address() -> None:
    """The name is asked once a request: a second answer, which an attacker would use, is never fetched."""
    resolve = at("127.0.0.1", "127.0.0.2")
    async with receiving() as receiver:
        sender = Sender(allow_private=["127.0.0.1"], resolve=resolve)
        url = f"http://named.example:{receiver.port}/"
        await sender.send(url, BODY)
        assert resolve.asked == ["named.example"]
        assert receiver.received[0].headers["host"] == f"named.example:{receiver.port}"
        with pytest.raises(SendRefused, match=r"127\.0\.0\.2"):
            await sender.send(url, BODY)
    assert receiver.connections == 1


async def test_one_private_address_among_public_ones_refuses_them_all() -> None:
    sender = Sender(resolve=Resolve([["93.184.216.34", "10.0.0.1"]]))
    with pytest.raises(SendRefused, match=r"10\.0\.0\.1"):
        await sender.send("http://mixed.example/", BODY)


async def test_the_next_address_of_a_name_is_tried_if_the_first_refuses() -> None:
    async with receiving() as receiver:
        sender = Sender(allow_private=True, resolve=Resolve([["127.0.0.99", "127.0.0.1"]]))
        assert (await sender.send(f"http://two.example:{receiver.port}/", BODY)).status == 200


async def test_ipv6_receivers_are_reached() -> None:
    async with receiving(host="::1") as receiver:
        assert (await Sender(allow_private=["::1"]).send(receiver.url, BODY)).status == 200
    assert receiver.received[0].headers["host"] == f"[::1]:{receiver.port}"


async def test_tls_checks_the_name_and_not_the_pinned_address(tmp_path: Path) -> None:
    server, client = self_made(tmp_path, "named.example", "127.0.0.1")
    async with receiving(tls=server) as receiver:
        sender = Sender(allow_private=True, tls=client, resolve=at("127.0.0.1"))
        assert (await sender.send(f"https://named.example:{receiver.port}/", BODY)).status == 200
        assert (await sender.send(receiver.url, BODY)).status == 200
        with pytest.raises(SendFailed, match="certificate is not valid: Hostname mismatch"):
            await sender.send(f"https://other.example:{receiver.port}/", BODY)
        with pytest.raises(SendFailed, match="certificate is not valid: self-signed"):
            await Sender(allow_private=True).send(receiver.url, BODY)
        with pytest.raises(SendFailed):
            await sender.send(receiver.url.replace("https", "http"), BODY)
    assert len(receiver.received) == 2


@pytest.mark.parametrize(
    ("status", "raised"),
    [(301, SendRefused), (307, SendRefused), (400, SendRefused), (404, SendRefused), (410, SendRefused),
     (408, SendFailed), (429, SendFailed), (500, SendFailed), (503, SendFailed)],
)  # fmt: skip
async def test_the_status_says_whether_a_retry_may_help(status: int, raised: type[SendRefused | SendFailed]) -> None:
    async with receiving() as elsewhere, receiving() as receiver:
        receiver.status, receiver.extra = status, f"Location: {elsewhere.url}\r\nRetry-After: 120\r\n"
        with pytest.raises(raised, match=f"answered {status}") as error:
            await Sender(allow_private=True).send(receiver.url, BODY)
    found: Exception = error.value
    assert isinstance(found, Permanent if raised is SendRefused else RetryAfter)
    assert isinstance(found, SendRefused | SendFailed)
    assert found.answer is not None
    assert (found.answer.status, found.answer.body) == (status, b"thanks")
    if isinstance(found, SendFailed):
        assert found.wait == timedelta(minutes=2)
    assert elsewhere.connections == 0


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), b"abcde"),
        (says(b"HTTP/1.0 200\r\n\r\nuntil ", b"closed"), b"until closed"),
        (says(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"), b""),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", b"y" * 1_000_000), b"y" * ANSWER_LIMIT_BYTES),
        (
            says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n", b"z" * 1_000_000),
            b"z" * ANSWER_LIMIT_BYTES,
        ),
        (floods, b"x" * ANSWER_LIMIT_BYTES),
    ],
)
async def test_an_answer_is_read_up_to_a_limit(reply: Reply, body: bytes) -> None:
    async with receiving() as receiver:
        receiver.script = [reply]
        assert (await Sender(allow_private=True).send(receiver.url, BODY, timeout="20s")).body == body


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (says(), "closed the connection"),
        (says(b"HTTP/1.1 200 OK\r\nContent-Le"), "closed the connection"),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"), "closed the connection"),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), "closed the connection"),
        (says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nab"), "unreadable chunk"),
        (says(b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\n"), "unreadable Content-Length"),
        (says(b"SSH-2.0-OpenSSH_9\r\n"), "does not speak HTTP"),
        (says(b"HTTP/1.1 100 Continue\r\n\r\n" * 9), "interim answers"),
        (says(f"HTTP/1.1 200 OK\r\nX: {LONG}\r\n\r\n".encode()), "more than 32,768 bytes"),
        (says(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n"), "lines of headers"),
    ],
)
async def test_a_broken_answer_may_be_tried_again(reply: Reply, problem: str) -> None:
    async with receiving() as receiver:
        receiver.script = [reply]
        with pytest.raises(SendFailed, match=problem):
            await Sender(allow_private=True).send(receiver.url, BODY, timeout=30)


@pytest.mark.parametrize("reply", [never, drips])
async def test_an_answer_that_takes_too_long_may_be_tried_again(reply: Reply) -> None:
    async with receiving() as receiver:
        receiver.script = [reply]
        with pytest.raises(SendFailed, match=r"did not answer within 0\.5 s"):
            await Sender(allow_private=True).send(receiver.url, BODY, timeout=0.5)


async def test_an_absent_receiver_and_an_unknown_name_may_be_tried_again() -> None:
    async with receiving() as receiver:
        pass
    with pytest.raises(SendFailed, match="was not reached"):
        await Sender(allow_private=True).send(receiver.url, BODY)
    with pytest.raises(SendFailed, match="cannot be resolved"):
        await Sender().send("http://no-such-name.invalid/", BODY)


@pytest.mark.parametrize(
    "headers", [{"Host": "x"}, {"content-length": "1"}, {"X-A": "a\r\nX-B: b"}, {"X A": "b"}, {"X-A": "é"}]
)
async def test_headers_cannot_change_the_meaning_of_a_request(headers: dict[str, str]) -> None:
    async with receiving() as receiver:
        with pytest.raises(SendRefused, match="header"):
            await Sender(allow_private=True).send(receiver.url, BODY, headers=headers)
        with pytest.raises(SendRefused, match="at most"):
            await Sender(allow_private=True).send(receiver.url, b"x" * (BODY_LIMIT_BYTES + 1))
    assert receiver.connections == 0
