"""How tokens of claims are numbered: see decision 26."""

from __future__ import annotations

from typing import Final

TOKENS_PER_MS: Final = 2**20
"""Tokens follow the clock in milliseconds, times this; a random number below it is added to each."""

HIGHEST_TOKEN_BY_CLOCK: Final = 2**62
"""The clock raises tokens no further: for any clock, there are tokens left."""
