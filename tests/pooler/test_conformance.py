"""The store's own specification, run through a pooler in transaction mode.

The tests are those of `tests/conformance`; here their fixture `engine_url` leads through PgBouncer.
"""

from __future__ import annotations

from tests.conformance.claims import test_acknowledge, test_claims, test_concurrency, test_fence
from tests.conformance.families import test_families
from tests.conformance.fleet import test_leaders, test_rescue, test_signals
from tests.conformance.flows import test_events, test_steps
from tests.conformance.gates import test_gates
from tests.conformance.intake import test_intake, test_uniqueness
from tests.conformance.schedules import test_firing
from tests.support.again import again

globals().update(again(test_acknowledge, test_claims, test_concurrency, test_events, test_families, test_fence))
globals().update(again(test_firing, test_gates, test_intake, test_leaders, test_rescue, test_signals, test_steps))
globals().update(again(test_uniqueness))
