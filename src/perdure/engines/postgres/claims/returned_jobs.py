"""Whether jobs may have come back to places that claims have passed."""

from __future__ import annotations

from msgspec import Struct


class ReturnedJobs(Struct):
    """Tells the claims of one store that a scan from the mark may miss jobs that came back.

    A part that makes jobs ready sets it. The rows of the next claim show what other stores did.
    """

    expected: bool = True
