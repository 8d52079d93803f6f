"""E-mail over SMTP. A server that hangs, or answers byte by byte, costs a thread until the deadline, and no more."""

from __future__ import annotations

import hashlib
import smtplib
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Final

from perdure.domain.alerts.alert import Notice
from perdure.operate.alerts.mail_address import MailAddress
from perdure.policy.alerts.wording import one_line
from perdure.signals.alerts.errors import DeliveryFailed, DeliveryRefused
from perdure.signals.alerts.message import subject, text
from perdure.signals.alerts.threads import in_thread

DEADLINE_SECONDS: Final = 20.0
_ANSWER_TIMEOUT_SECONDS: Final = 10.0
_PERMANENT_FROM_CODE: Final = 500
_ERROR_LIMIT_CHARACTERS: Final = 300


async def send_mail(address: MailAddress, notice: Notice, *, deadline: float = DEADLINE_SECONDS) -> None:
    """Send one notice; raises DeliveryFailed, or DeliveryRefused if the server will never take it."""
    client = _Client(address)
    try:
        await in_thread(lambda: client.send(mail_of(address, notice)), seconds=deadline, give_up=client.give_up)
    except smtplib.SMTPRecipientsRefused as error:
        raise _some_refused(address, error.recipients) from None
    except smtplib.SMTPNotSupportedError as error:
        raise DeliveryFailed(f"{_place(address)} cannot do what its address asks for: {_brief(error)}") from None
    except UnicodeError:
        raise DeliveryRefused(f"{_place(address)} takes no user name or password beyond ASCII") from None
    except smtplib.SMTPResponseException as error:
        raise _judged(address, error.smtp_code, error.smtp_error) from None
    except (smtplib.SMTPException, OSError, ssl.SSLError) as error:
        raise DeliveryFailed(f"{_place(address)} was not reached: {_brief(error)}") from None
    except DeliveryFailed as error:
        raise DeliveryFailed(f"{_place(address)} {error}") from None


def mail_of(address: MailAddress, notice: Notice) -> EmailMessage:
    """The message. Line breaks in a job's error are removed from its headers."""
    mail = EmailMessage()
    mail["Subject"] = subject(notice)
    mail["From"] = address.sender
    mail["To"] = ", ".join(address.to)
    mail["Date"] = format_datetime(notice.at)
    receivers = hashlib.sha256(",".join(address.to).encode()).hexdigest()[:12]
    mail["Message-ID"] = f"<{notice.id}.{receivers}@perdure>"  # a repeated delivery is the same message
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Perdure-Severity"] = notice.severity.value
    mail.set_content(text(notice))
    return mail


class _Client:
    """One connection, used once."""

    def __init__(self, address: MailAddress) -> None:
        self._address = address
        self._smtp: smtplib.SMTP | None = None

    def send(self, mail: EmailMessage) -> None:
        """Connect, secure, log in, send."""
        address, context = self._address, ssl.create_default_context()
        if address.is_tls:
            smtp: smtplib.SMTP = smtplib.SMTP_SSL(
                timeout=_ANSWER_TIMEOUT_SECONDS, context=context, local_hostname="localhost"
            )
        else:
            smtp = smtplib.SMTP(timeout=_ANSWER_TIMEOUT_SECONDS, local_hostname="localhost")
        self._smtp = smtp
        smtp._host = address.host  # type: ignore[attr-defined] # noqa: SLF001 - the name that TLS checks
        try:
            code, answer = smtp.connect(address.host, address.port)
            if code != 220:  # noqa: PLR2004 - the greeting
                raise smtplib.SMTPConnectError(code, answer)
            if address.starts_tls:
                smtp.starttls(context=context)
            if address.user is not None:
                smtp.login(address.user, address.password or "")
            refused = smtp.send_message(mail)
            with suppress(smtplib.SMTPException, OSError):  # the mail is accepted already
                smtp.quit()
            if refused:  # the other receivers have it
                raise smtplib.SMTPRecipientsRefused(refused)
        finally:
            smtp.close()

    def give_up(self) -> None:
        """Close the connection, so that the call in the thread fails."""
        sock = None if self._smtp is None else self._smtp.sock
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


def _judged(address: MailAddress, code: int, answer: bytes | str) -> Exception:
    said = f"{_place(address)} answered {code}: {_words(address, answer)}"
    return DeliveryRefused(said) if code >= _PERMANENT_FROM_CODE else DeliveryFailed(said)


def _some_refused(address: MailAddress, refused: Mapping[str, tuple[int, bytes | str]]) -> Exception:
    """Some receivers, or all, were refused. A retry sends it to all again, as the same message."""
    each = "; ".join(f"{to} was answered {code}: {_words(address, said)}" for to, (code, said) in refused.items())
    words = f"{_place(address)} refused {len(refused)} of {len(address.to)} receivers: {each}"[:_ERROR_LIMIT_CHARACTERS]
    is_final = all(code >= _PERMANENT_FROM_CODE for code, _ in refused.values())
    return DeliveryRefused(words) if is_final else DeliveryFailed(words)


def _words(address: MailAddress, answer: bytes | str) -> str:
    """What the server said, on one line, without the password in case it repeats it."""
    words = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return one_line(words.replace(address.password, "••••") if address.password else words, _ERROR_LIMIT_CHARACTERS)


def _place(address: MailAddress) -> str:
    return f"mail server {address.host}:{address.port}"


def _brief(error: BaseException) -> str:
    return (str(error) or type(error).__name__)[:_ERROR_LIMIT_CHARACTERS]
