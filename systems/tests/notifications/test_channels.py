"""Six channels, each in its receiver's own format, over real sockets."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from perdure import SettingsError
from perdure.testing import Sandbox
from perdure.webhooks import SignatureRefused, verify
from perdure_systems.notifications.channels.message import Channel, Severity
from perdure_systems.notifications.jobs import app, notify
from perdure_systems.notifications.records import notification_of
from perdure_systems.notifications.settings import notifier_for
from perdure_systems.notifications.standins import API_KEY, ROUTING_KEY, WEBHOOK_SECRET, Delivery, StandIns

SUBJECT = "api.example.com <expires>\nin 7 days"
HEADLINE = "api.example.com <expires> in 7 days"
BODY = "Renew & deploy: ünïcode\nsecond line"


async def sent(channel: str, standins: StandIns, **more: Any) -> tuple[str, Delivery]:
    """Send one notification through a channel: its id, and what the receiver has taken."""
    async with Sandbox(app) as box:
        handle = await notify.enqueue(channel=channel, subject=SUBJECT, body=BODY, **more)
        await box.drain()
        view = await handle.view()
    assert notification_of(view).status == "sent", view.last_error
    [delivery] = standins.taken[channel]
    return handle.id, delivery


async def test_a13_email_is_a_real_message_over_smtp(receivers: StandIns) -> None:
    job_id, mail = await sent("email", receivers, recipient="duty@example.com")
    assert mail.headers["rcpt"] == mail.headers["to"] == "duty@example.com"
    assert (mail.headers["from"], mail.headers["subject"]) == ("certctl@example.com", HEADLINE)
    assert mail.headers["message-id"] == f"<{job_id}@certctl>"
    assert mail.content.splitlines() == BODY.splitlines()


async def test_a13_email_without_a_recipient_goes_to_the_one_that_is_set_up(receivers: StandIns) -> None:
    _, mail = await sent("email", receivers)
    assert mail.headers["rcpt"] == "ops@example.com"


async def test_a13_email_speaks_starttls_and_logs_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, key = self_signed(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    async with StandIns(smtp_tls=tls, smtp_login=("ada", "secret")) as standins:
        for name, value in (standins.environment() | {"CERTCTL_SMTP_HOST": "localhost"}).items():
            monkeypatch.setenv(name, value)
        with monkeypatch.context() as trusted:
            trusted.setenv("SSL_CERT_FILE", str(certificate))
            await sent("email", standins)
            trusted.setenv("CERTCTL_SMTP_PASSWORD", "wrong")
            assert "535" in await error_of("email")
        assert "certificate verify failed" in await error_of("email")  # an unknown certificate gets no password
        assert len(standins.taken["email"]) == 1


async def test_a13_webhook_is_json_with_a_signature(receivers: StandIns) -> None:
    job_id, request = await sent("webhook", receivers, severity=Severity.ERROR)
    assert set(request.content) == {"id", "type", "recipient", "subject", "body", "metadata", "created_at"}
    assert (request.content["id"], request.content["subject"], request.content["body"]) == (job_id, HEADLINE, BODY)
    assert request.content["metadata"] == {"severity": "error"}
    verify(WEBHOOK_SECRET, request.headers, request.body)
    with pytest.raises(SignatureRefused):
        verify(WEBHOOK_SECRET, request.headers, request.body + b" ")
    assert request.headers["idempotency-key"] == job_id


async def test_a13_slack_gets_escaped_text(receivers: StandIns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CERTCTL_SLACK_CHANNEL", "#ops")
    _, request = await sent("slack", receivers)
    assert request.content == {
        "text": "*api.example.com &lt;expires&gt; in 7 days*\nRenew &amp; deploy: ünïcode\nsecond line",
        "username": "certctl",
        "channel": "#ops",
    }


async def test_a13_teams_gets_an_adaptive_card(receivers: StandIns) -> None:
    _, request = await sent("teams", receivers)
    assert request.content["type"] == "message"
    [attachment] = request.content["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], [block["text"] for block in card["body"]]) == ("AdaptiveCard", [HEADLINE, BODY])


async def test_a13_pagerduty_gets_an_event_that_pages_once(
    receivers: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTCTL_PAGERDUTY_SEVERITY", "error")
    job_id, request = await sent("pagerduty", receivers)
    event = request.content
    assert (event["routing_key"], event["event_action"], event["dedup_key"]) == (ROUTING_KEY, "trigger", job_id)
    payload = event["payload"]
    assert (payload["summary"], payload["source"], payload["severity"]) == (HEADLINE, "certctl", "error")
    assert payload["custom_details"] == {"body": BODY}


async def test_a13_opsgenie_gets_an_alert_under_its_key(receivers: StandIns) -> None:
    job_id, request = await sent("opsgenie", receivers, severity=Severity.CRITICAL)
    assert request.headers["authorization"] == f"GenieKey {API_KEY}"
    assert request.content == {
        "message": HEADLINE,
        "alias": job_id,
        "description": BODY,
        "priority": "P1",
        "source": "certctl",
    }


@pytest.mark.parametrize("channel", list(Channel))
async def test_a13_every_channel_fails_with_an_error_that_keeps_its_secrets(
    channel: str, receivers: StandIns, refuse: Callable[..., None]
) -> None:
    refuse(-1, status=500)
    error = await error_of(channel)
    assert error.startswith(channel)
    assert "told to refuse" in error
    for secret in ("slack-secret", "teams-secret", ROUTING_KEY, API_KEY, WEBHOOK_SECRET, receivers.http_url):
        assert secret not in error


@pytest.mark.parametrize("channel", list(Channel))
async def test_a13_a_receiver_that_is_not_there_is_named(
    channel: str, receivers: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in receivers.environment():
        if name.endswith("_URL"):
            monkeypatch.setenv(name, "http://127.0.0.1:1/slack-secret")
    monkeypatch.setenv("CERTCTL_SMTP_PORT", "1")
    error = await error_of(channel)
    assert error.startswith(channel)
    assert "slack-secret" not in error


async def test_a13_a_receiver_that_does_not_answer_is_given_up(
    receivers: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure_systems.notifications.jobs._HTTP_TIMEOUT_SECONDS", 0.1)
    monkeypatch.setattr("perdure_systems.notifications.channels.webhook.DELIVERY_TIMEOUT", "0.1s")
    for channel in ("slack", "webhook"):
        receivers.knobs[channel].slow = 5
    assert await error_of("slack") == "slack did not answer in time"
    assert await error_of("webhook") == "webhook was not reached, or did not answer in time"


async def test_a13_a_webhook_without_a_secret_is_not_signed_and_a_bad_url_is_named_by_its_setting(
    receivers: StandIns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CERTCTL_WEBHOOK_SECRET", "")
    _, request = await sent("webhook", receivers)
    assert "x-webhook-signature" not in request.headers
    monkeypatch.setenv("CERTCTL_WEBHOOK_URL", "ftp://internal.example/hook")
    error = await error_of("webhook")
    assert "CERTCTL_WEBHOOK_URL" in error
    assert "internal.example" not in error


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("CERTCTL_SMTP_PORT", "0", "must be a whole number from 1 to 65535, got 0"),
        ("CERTCTL_SMTP_USE_TLS", "maybe", "must be true or false, got 'maybe'"),
        ("CERTCTL_PAGERDUTY_SEVERITY", "bad", "must be one of info, warning, error, critical, got 'bad'"),
        ("CERTCTL_OPSGENIE_PRIORITY", "P9", "must be one of P1, P2, P3, P4, P5, got 'P9'"),
    ],
)
def test_a13_a_setting_that_cannot_be_used_is_refused_by_name(variable: str, value: str, message: str) -> None:
    environment = StandIns().environment() | {"CERTCTL_SMTP_PORT": "25", variable: value}
    with pytest.raises(SettingsError, match=f"{variable} {message}"):
        [notifier_for(channel, environment) for channel in Channel]


async def error_of(channel: str) -> str:
    """What the first attempt of a notification through this channel fails with."""
    async with Sandbox(app) as box:
        handle = await notify.enqueue(channel=channel, subject=SUBJECT, body=BODY)
        await box.drain()
        failed = notification_of(await handle.view())
    assert (failed.status, failed.retry_count) == ("failed", 1)
    return failed.last_error or ""


def self_signed(folder: Path) -> tuple[Path, Path]:
    """The files of a certificate for localhost and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    start = datetime(2020, 1, 1, tzinfo=UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return files
