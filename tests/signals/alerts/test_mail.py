"""Mail goes to a real server; one that hangs costs seconds, and an error of a job becomes no header."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from tests.signals.alerts.conftest import Inbox, server_that
from tests.support.certificates import self_made

from perdure.domain.alerts.alert import Notice, NoticeSort
from perdure.domain.alerts.rule import AlertSeverity
from perdure.operate.alerts.mail_address import MailAddress, read_mail_address
from perdure.policy.alerts.wording import one_line
from perdure.signals.alerts.errors import DeliveryFailed, DeliveryRefused
from perdure.signals.alerts.mail import mail_of, send_mail


def a_notice(title: str = "charge died: ValueError: no card …", body: str = "- charge died") -> Notice:
    return Notice(
        id="0123456789abcdef",
        sort=NoticeSort.ALERT,
        rule="deaths",
        severity=AlertSeverity.CRITICAL,
        title=title,
        body=body,
        path="/dead",
        at=datetime(2026, 1, 1, tzinfo=UTC),
    )


async def test_a_notice_arrives_with_its_words(inbox: Inbox) -> None:
    await send_mail(read_mail_address("address", inbox.address), a_notice())
    [mail] = inbox.mails
    assert mail["Subject"] == "[CRITICAL] charge died: ValueError: no card …"
    assert (mail["From"], mail["To"]) == ("perdure@example.com", "ops@example.com, b@example.com")
    assert mail["X-Perdure-Severity"] == "critical"
    assert "- charge died" in mail.get_content()


async def test_an_error_with_line_breaks_becomes_no_header(inbox: Inbox) -> None:
    hostile = "died: x\r\nBcc: thief@example.com\n\n<b>body</b>\x00"
    address = read_mail_address("address", inbox.address)
    await send_mail(address, a_notice(title=hostile))
    [mail] = inbox.mails
    assert mail["Bcc"] is None
    assert mail["Subject"] == f"[CRITICAL] {one_line(hostile)}"
    assert mail_of(address, a_notice())["Message-ID"] == mail["Message-ID"], "a repeated delivery is the same message"


async def test_a_server_that_hangs_does_not_hang_the_worker() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"2")  # and never more
        await reader.read()
        writer.close()
        gone.set()

    gone = asyncio.Event()
    async with server_that(hang) as port:
        address = read_mail_address("address", f"smtp://127.0.0.1:{port}/?from=a@b.c&to=d@e.f&tls=none")
        begun = time.monotonic()
        with pytest.raises(DeliveryFailed, match=rf"mail server 127.0.0.1:{port} did not answer within 0.3 s"):
            await send_mail(address, a_notice(), deadline=0.3)
        assert time.monotonic() - begun < 20, "long before the time that a mail server has by default"
        async with asyncio.timeout(30):
            await gone.wait()  # its connection is closed, so that the thread ends


async def test_a_refusal_for_good_is_not_retried_and_one_for_now_is(inbox: Inbox) -> None:
    address = read_mail_address("address", inbox.address)
    inbox.answer = "550 no such user"
    with pytest.raises(DeliveryRefused, match="answered 550"):
        await send_mail(address, a_notice())
    inbox.answer = "451 try again later"
    with pytest.raises(DeliveryFailed, match="answered 451"):
        await send_mail(address, a_notice())


async def test_receivers_who_were_refused_are_named_and_the_others_have_the_mail(inbox: Inbox) -> None:
    address = read_mail_address("address", inbox.address)
    inbox.answers["b@example.com"] = "550 no such user"
    with pytest.raises(
        DeliveryRefused, match=r"refused 1 of 2 receivers: b@example\.com was answered 550: no such user"
    ):
        await send_mail(address, a_notice())
    assert len(inbox.mails) == 1
    inbox.answers["ops@example.com"] = "450 later"  # for one of them a retry may help
    with pytest.raises(DeliveryFailed, match=r"refused 2 of 2 receivers: ops@example\.com was answered 450"):
        await send_mail(address, a_notice())


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_login_goes_over_tls_to_a_server_that_proves_its_name(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inbox, loop = Inbox(), asyncio.get_running_loop()
    tls, _ = self_made(tmp_path, "localhost")

    def judge(_server: Any, _session: Any, _envelope: Any, _way: str, login: Any) -> AuthResult:
        is_right = (login.login, login.password) == (b"ops", b"s3/cret")
        return AuthResult(success=is_right, handled=False, message=None if is_right else "535 no s3kret")

    def serve() -> SMTP:
        options: dict[str, Any] = {"authenticator": judge, "auth_required": True, "loop": loop, "hostname": "localhost"}
        if scheme == "smtp":
            return SMTP(inbox, tls_context=tls, require_starttls=True, **options)
        with pytest.warns(UserWarning, match="AUTH"):  # it does not see that its connections are TLS
            return SMTP(inbox, auth_require_tls=False, **options)

    server = await loop.create_server(serve, "127.0.0.1", 0, ssl=tls if scheme == "smtps" else None)
    port = server.sockets[0].getsockname()[1]

    def to(login: str, host: str = "localhost") -> MailAddress:
        return read_mail_address("address", f"{scheme}://{login}@{host}:{port}/?from=a@b.c&to=d@e.f")

    try:
        with pytest.raises(DeliveryFailed, match="certificate verify failed"):
            await send_mail(to("ops:s3%2Fcret"), a_notice())
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        with pytest.raises(DeliveryFailed, match="certificate verify failed"):
            await send_mail(to("ops:s3%2Fcret", "127.0.0.1"), a_notice())
        with pytest.raises(DeliveryRefused, match="answered 535: no ••••") as refused:
            await send_mail(to("ops:s3kret"), a_notice())
        assert "s3kret" not in str(refused.value)
        with pytest.raises(DeliveryRefused, match="no user name or password beyond ASCII"):
            await send_mail(to("ops:sécret"), a_notice())
        assert inbox.mails == []
        await send_mail(to("ops:s3%2Fcret"), a_notice())
    finally:
        server.close()
    assert len(inbox.mails) == 1


async def test_a_server_without_tls_gets_nothing_unless_that_was_said(inbox: Inbox) -> None:
    address = read_mail_address("address", inbox.address.replace("&tls=none", ""))
    with pytest.raises(DeliveryFailed, match="STARTTLS"):
        await send_mail(address, a_notice())
    assert inbox.mails == []


async def test_a_server_that_is_away_is_reported_by_name() -> None:
    address = read_mail_address("address", "smtp://127.0.0.1:1/?from=a@b.c&to=d@e.f&tls=none")
    with pytest.raises(DeliveryFailed, match=r"mail server 127\.0\.0\.1:1 was not reached"):
        await send_mail(address, a_notice())
