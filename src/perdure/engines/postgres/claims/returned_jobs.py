"""Whether jobs may have come back to places that claims have passed."""

from __future__ import annotations

from msgspec import Struct


class Returns(Struct):
    """What the parts of one store tell its claims: a look that begins at the mark may miss jobs that came back.

    A part that makes jobs ready says so. What other stores do is seen by the next claim: its rows tell.
    """

    expected: bool = True
