"""What can go wrong at an authority, in words that an operator can act on. None of them holds a secret.

Exception
├── Refused             an answer other than 2xx; the triage judges it by its status and Retry-After
├── ConnectionError
│   └── Unreachable     no answer: network, TLS, or 30 s are over
└── Permanent           of perdure: the order is dead, and polled again only after a requeue
    ├── Rejected        the authority's last word on the order
    ├── Unreadable      an answer that is not what the authority promises
    ├── CertificateMissing
    ├── NotTrusted      a certificate that must not be used
    └── OutcomeUnknown  it is unknown whether the order was placed
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from perdure import Permanent


class Response(msgspec.Struct, frozen=True):
    """What perdure's HttpTriage looks at."""

    status_code: int
    headers: Mapping[str, str]


class Refused(Exception):  # noqa: N818 - says what is the case
    """The authority answered with an error: `response` has its status and headers, `body` what came with it."""

    def __init__(self, who: str, what: str, response: Response, said: str = "", *, body: bytes = b"") -> None:
        self.response, self.body = response, body
        status = response.status_code
        named = f"{status} {HTTPStatus(status).phrase}" if status in set(HTTPStatus) else str(status)
        super().__init__(f"{who} answered {named} to {what}{': ' if said else ''}{said}")


class Unreachable(ConnectionError):  # noqa: N818 - says what is the case
    """The authority gave no answer. `was_sent`: it may have read the request all the same."""

    def __init__(self, who: str, what: str, why: str, *, was_sent: bool) -> None:
        self.was_sent = was_sent
        super().__init__(f"{who} gave no answer to {what}: {why}")


class Rejected(Permanent):
    """The authority will not issue this certificate."""


class Unreadable(Permanent):
    """An answer that cannot be read."""


class CertificateMissing(Permanent):
    """The authority says issued, and gives no certificate."""


class NotTrusted(Permanent):
    """The certificate does not match the order, or does not lead to a trusted root."""


class OutcomeUnknown(Permanent):
    """The answer to an order was lost: a second order may cost a second certificate, so a person decides."""
