"""Webhooks: signed requests that tell other programs what happened, and the check of their signature.

The program that runs the jobs switches them on, and declares receivers or lets operators add them::

    from perdure.webhooks import Webhooks

    webhooks = Webhooks(app)
    webhooks.to("billing", "https://billing.example/hook", secret=SECRET, events=["job.died"])

A receiver needs only `verify`::

    from perdure.webhooks import SignatureRefused, verify

    verify(SECRET, request.headers, await request.body())
"""

from __future__ import annotations

from perdure.signals.webhooks.addresses import is_public
from perdure.signals.webhooks.errors import SendFailed, SendRefused, SignatureRefused
from perdure.signals.webhooks.sender import Answer, Sender
from perdure.signals.webhooks.signing import delivery_headers, signature, verify
from perdure.signals.webhooks.webhooks import Webhooks

__all__ = [
    "Answer",
    "SendFailed",
    "SendRefused",
    "Sender",
    "SignatureRefused",
    "Webhooks",
    "delivery_headers",
    "is_public",
    "signature",
    "verify",
]
