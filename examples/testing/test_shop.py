"""How an app's jobs are tested: nothing here sleeps, and no database has to be there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from unittest.mock import ANY

import pytest
import shop

from perdure import JobState
from perdure.testing import Sandbox


class PatientBank(shop.Bank):
    """A bank that fails as often as it is told to."""

    def __init__(self, *troubles: Exception) -> None:
        self.troubles = list(troubles)

    def charge(self, order: int, cents: int) -> str:
        """Fail, or take the money."""
        if self.troubles:
            raise self.troubles.pop(0)
        return f"ref-{order}-{cents}"


@pytest.fixture(autouse=True)
def outbox() -> Iterator[list[tuple[str, str]]]:
    """The mails of one test."""
    shop.outbox.clear()
    yield shop.outbox
    shop.outbox.clear()


@pytest.fixture
def bank(monkeypatch: pytest.MonkeyPatch) -> PatientBank:
    """A bank that works."""
    bank = PatientBank()
    monkeypatch.setattr(shop, "bank", bank)
    return bank


async def test_an_order_enqueues_the_charge_and_a_survey(perdure_sandbox: Sandbox) -> None:
    await shop.place_order(42, "ann@example.org", 999)

    perdure_sandbox.assert_enqueued_once(shop.charge_card.using(priority=1), 42, cents=999)
    perdure_sandbox.assert_enqueued(shop.send_mail.using(queue="mail", delay="3d", tags=["survey"]), to=ANY)
    perdure_sandbox.assert_not_enqueued(shop.send_mail, subject="Thank you for order 42")


async def test_a_charged_card_is_followed_by_a_mail(
    perdure_sandbox: Sandbox, bank: PatientBank, outbox: list[tuple[str, str]]
) -> None:
    charge = await shop.charge_card.enqueue(42, "ann@example.org", 999)

    drained = await perdure_sandbox.drain()

    assert drained.succeeded == 2
    assert drained.left == 0
    assert await perdure_sandbox.result(charge) == "ref-42-999"
    assert outbox == [("ann@example.org", "Thank you for order 42")]


async def test_a_bank_that_is_away_is_tried_three_times(perdure_sandbox: Sandbox, bank: PatientBank) -> None:
    bank.troubles = [ConnectionError("away"), ConnectionError("still away")]
    began = perdure_sandbox.now
    charge = await shop.charge_card.enqueue(42, "ann@example.org", 999)

    assert (await perdure_sandbox.drain()).retrying == 1
    perdure_sandbox.travel("1m")
    assert (await perdure_sandbox.drain()).retrying == 1
    perdure_sandbox.travel("1m")
    assert (await perdure_sandbox.drain()).attempts == 0
    perdure_sandbox.travel("1m")
    assert (await perdure_sandbox.drain("default")).succeeded == 1

    failed = await perdure_sandbox.attempts(charge)
    assert [attempt.message for attempt in failed] == ["away", "still away"]
    assert perdure_sandbox.now - began == timedelta(minutes=3)


async def test_a_bank_that_stays_away_leaves_a_dead_letter(perdure_sandbox: Sandbox, bank: PatientBank) -> None:
    bank.troubles = [ConnectionError("away")] * 3
    await shop.charge_card.enqueue(42, "ann@example.org", 999)

    drained = await perdure_sandbox.drain(travel=True)

    assert drained.attempts == 3
    assert [job.kind for job in await perdure_sandbox.dead()] == ["charge_card"]
    perdure_sandbox.assert_not_enqueued(shop.send_mail)


@pytest.mark.perdure(inline=True)
async def test_inline_the_order_is_charged_before_the_page_returns(
    perdure_sandbox: Sandbox, bank: PatientBank, outbox: list[tuple[str, str]]
) -> None:
    await shop.place_order(42, "ann@example.org", 999)

    assert outbox == [("ann@example.org", "Thank you for order 42")]


@pytest.mark.perdure(inline=True)
async def test_inline_an_error_reaches_the_caller(perdure_sandbox: Sandbox, bank: PatientBank) -> None:
    bank.troubles = [shop.CardDeclinedError("no")]

    with pytest.raises(shop.CardDeclinedError):
        await shop.place_order(42, "ann@example.org", 999)

    assert [job.state for job in await perdure_sandbox.dead()] == [JobState.DEAD]


def test_sync_code_is_tested_without_an_event_loop(
    perdure_sandbox: Sandbox, bank: PatientBank, outbox: list[tuple[str, str]]
) -> None:
    shop.place_order_sync(42, "ann@example.org", 999)

    perdure_sandbox.drain_sync(travel="7d")

    assert outbox == [("ann@example.org", "Thank you for order 42"), ("ann@example.org", "How was it?")]
