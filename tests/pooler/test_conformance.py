"""The store's own specification, run through a pooler in transaction mode.

The tests are those of `tests/conformance`; here their fixture `engine_url` leads through PgBouncer.
"""

from __future__ import annotations

from tests.conformance import (
    test_acknowledge,
    test_claims,
    test_concurrency,
    test_events,
    test_families,
    test_fence,
    test_firing,
    test_gates,
    test_intake,
    test_leaders,
    test_rescue,
    test_signals,
    test_steps,
    test_uniqueness,
)
from tests.support.again import again

globals().update(again(test_acknowledge, test_claims, test_concurrency, test_events, test_families, test_fence))
globals().update(again(test_firing, test_gates, test_intake, test_leaders, test_rescue, test_signals, test_steps))
globals().update(again(test_uniqueness))
