"""Failures of a request to a receiver: one that may be retried, and one that must not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from perdure.domain.jobs.verdicts import Permanent, RetryAfter
from perdure.errors import PerdureError

if TYPE_CHECKING:
    from perdure.signals.webhooks.sender import Answer


class SendRefused(PerdureError, Permanent):  # noqa: N818 - reads as what happened
    """The request must not be sent, or the receiver does not want it: a retry cannot help.

    A job whose handler raises it is dead. `answer` is what the receiver answered, None if it was not asked.
    """

    def __init__(self, message: str, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.answer = answer


class SendFailed(PerdureError, RetryAfter):  # noqa: N818 - reads as what happened
    """The receiver was not reached, did not answer in time, or has an error of its own: a retry may help.

    A job whose handler raises it is retried: after `wait`, if the receiver asked for one, otherwise as its `Retry`
    says. `answer` is what the receiver answered, None if it did not.
    """

    def __init__(self, message: str, answer: Answer | None = None, wait: timedelta | datetime | None = None) -> None:
        super().__init__(wait, message, at_most=timedelta(days=1))
        self.answer = answer


class SignatureRefused(PerdureError, ValueError):  # noqa: N818 - reads as what happened
    """A received request is not signed with the secret, was changed on its way, or is too old."""
