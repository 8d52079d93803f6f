"""E-mail over SMTP."""

from __future__ import annotations

from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

import aiosmtplib
import httpx
import msgspec

from perdure_systems.notifications.channels.message import Message
from perdure_systems.notifications.channels.notifier import DeliveryError

_IMPLICIT_TLS_PORT: Final = 465
_SMTP_TIMEOUT_SECONDS: Final = 10.0


class EmailChannel(msgspec.Struct, frozen=True, kw_only=True):
    """Sends plain text. With `use_tls` port 465 speaks TLS from the start; any other port must offer STARTTLS."""

    host: str
    port: int
    sender: str
    username: str = ""
    password: str = ""
    recipient: str = ""
    use_tls: bool = True

    async def send(self, message: Message, http: httpx.AsyncClient) -> str:  # noqa: ARG002 - SMTP needs no HTTP
        """Send a message to its recipient, or to the one that is set up for all."""
        recipient = message.recipient or self.recipient
        if not recipient:
            raise DeliveryError("email has no recipient: name one, or set CERTCTL_SMTP_TO_ADDRESS")
        is_implicit = self.use_tls and self.port == _IMPLICIT_TLS_PORT
        try:
            _, said = await aiosmtplib.send(
                self._mail(message, recipient),
                hostname=self.host,
                port=self.port,
                username=self.username or None,
                password=self.password or None,
                use_tls=is_implicit,
                start_tls=self.use_tls and not is_implicit,
                timeout=_SMTP_TIMEOUT_SECONDS,
            )
        except aiosmtplib.SMTPResponseException as error:
            raise DeliveryError(f"email server answered {error.code} {error.message}") from None
        except aiosmtplib.SMTPException as error:
            raise DeliveryError(f"email was not taken: {type(error).__name__}: {error}") from None
        except OSError as error:
            raise DeliveryError(f"email server cannot be reached: {error}") from None
        return f"email server answered {said}"

    def _mail(self, message: Message, recipient: str) -> EmailMessage:
        mail = EmailMessage()
        try:
            mail["From"] = self.sender
            mail["To"] = recipient
        except (ValueError, IndexError):
            raise DeliveryError(f"email recipient {recipient!r} is no address") from None
        mail["Subject"] = message.headline
        mail["Date"] = format_datetime(message.created_at)
        mail["Message-ID"] = f"<{message.id}@certctl>"  # the same in every attempt
        mail.set_content(message.body)
        return mail
