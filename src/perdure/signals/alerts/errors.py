"""Failures of a delivery: one that may be retried, and one that must not."""

from __future__ import annotations

from perdure.domain.jobs.verdicts import Permanent
from perdure.errors import PerdureError


class DeliveryFailed(PerdureError):  # noqa: N818 - reads as what happened
    """The channel was not reached, did not answer in time, or did not take the notice: a retry may help."""


class DeliveryRefused(PerdureError, Permanent):  # noqa: N818 - reads as what happened
    """The notice or its channel is gone, or the address must not be used: a retry cannot help."""
