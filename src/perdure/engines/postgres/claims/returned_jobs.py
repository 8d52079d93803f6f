"""Whether jobs may have come back to places that claims have already passed."""

from __future__ import annotations

from msgspec import Struct


class ReturnedJobs(Struct):
    """Shows the claims of one store that a scan from the mark may miss returned jobs.

    A part that makes jobs ready sets it. The rows of the next claim show what other stores did.
    """

    expected: bool = True
