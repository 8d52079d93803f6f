"""The limit on failed logins."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.jobs import MINUTE, SECOND

from perdure.clock import ManualClock
from perdure.surfaces.access.login.rate import LoginRate


def rate(clock: ManualClock, *, of_one: int = 3, of_all: int = 100, window: timedelta = MINUTE) -> LoginRate:
    return LoginRate(clock, of_one=of_one, of_all=of_all, window=window)


def test_an_address_waits_for_the_end_of_its_window(clock: ManualClock) -> None:
    limit = rate(clock)
    assert [limit.wait("192.0.2.9") for _ in range(3)] == [0.0, 0.0, 0.0]
    clock.move(20 * SECOND)
    assert limit.wait("192.0.2.9") == 40.0
    assert limit.wait("192.0.2.10") == 0.0
    clock.move(40 * SECOND)
    assert limit.wait("192.0.2.9") == 0.0


def test_many_addresses_together_reach_the_limit_of_all(clock: ManualClock) -> None:
    limit = rate(clock, of_all=5)
    assert [limit.wait(f"192.0.2.{number}") for number in range(6)] == [0.0] * 5 + [60.0]


def test_a_login_that_succeeds_takes_its_attempt_back(clock: ManualClock) -> None:
    limit = rate(clock, of_one=1, of_all=2)
    for _ in range(5):
        assert limit.wait("192.0.2.9") == 0.0
        limit.forgive("192.0.2.9")
    assert [limit.wait(f"192.0.2.{number}") for number in range(2)] == [0.0, 0.0]
    limit.forgive("192.0.2.1")
    assert limit.wait("192.0.2.2") == 0.0
    assert limit.wait("192.0.2.3") > 0


def test_the_addresses_that_one_customer_has_count_as_one(clock: ManualClock) -> None:
    """A customer has 2^64 IPv6 addresses, and an IPv4 address may be written as IPv6."""
    limit = rate(clock, of_one=1)
    assert limit.wait("2001:db8::1") == 0.0
    assert limit.wait("2001:db8::ffff:1") > 0
    assert limit.wait("2001:db8:0:1::1") == 0.0
    assert limit.wait("192.0.2.9") == 0.0
    assert limit.wait("::ffff:192.0.2.9") > 0
    assert limit.wait(None) == 0.0
    assert limit.wait(None) > 0


def test_with_too_many_addresses_the_oldest_is_forgotten(clock: ManualClock) -> None:
    limit = rate(clock, of_one=1, of_all=100_000)
    for number in range(4_097):
        limit.wait(f"10.0.{number // 256}.{number % 256}")
    assert limit.wait("10.0.0.1") > 0
    assert limit.wait("10.0.0.0") == 0.0
