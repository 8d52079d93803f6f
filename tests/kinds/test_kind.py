"""A kind of job."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from perdure import App, Backoff, Breaker, Budget, Concurrency, Context, Rate, Retry
from perdure.kinds.kind import Kind, is_async


def a_kind(**options: Any) -> Kind:
    app = App("sqlite:///unused.db")

    @app.job(**options)
    async def send() -> None: ...

    return app.kinds["send"]


def test_only_gates_that_count_attempts_charge_each_start() -> None:
    assert not a_kind().is_gated
    assert a_kind(breaker=Breaker("gateway")).is_gated
    slots = a_kind(gates=[Concurrency(1)])
    assert (slots.is_gated, slots.charges_starts) == (True, False)
    assert a_kind(gates=[Rate(5, "1s", counts="attempts")]).charges_starts
    assert not a_kind(gates=[Rate(5, "1s", counts="runs")]).charges_starts


def test_budgets_are_found_by_name() -> None:
    kind = a_kind(gates=[Budget("openai", daily=5, estimate=1), Concurrency(1)])
    assert list(kind.budgets) == ["openai"]


def test_a_policy_that_a_function_reads_names_its_job_if_it_fails() -> None:
    assert a_kind(retry=Retry(attempts=3)).attempts == 3
    policies = iter([Retry(attempts=3), Retry(attempts=4)])
    assert a_kind(retry=Retry(attempts=3, backoff=Backoff.fixed("1s"))).attempts == 3

    def read() -> Retry:
        return next(policies)

    kind = a_kind(retry=read)
    with pytest.raises(StopIteration) as failed:  # noqa: PT012 - it is read until nothing is left
        while True:
            assert kind.attempts in {3, 4}
    assert failed.value.__notes__ == ["while reading the retry policy of job send"]


def test_the_context_comes_first_where_a_handler_takes_one() -> None:
    app = App("sqlite:///unused.db")

    @app.job
    async def with_it(ctx: Context, n: int) -> None: ...

    @app.job
    async def without(n: int) -> None: ...

    assert app.kinds["with_it"].with_context("ctx", (1,)) == ("ctx", 1)
    assert app.kinds["without"].with_context("ctx", (1,)) == (1,)


def test_an_async_handler_is_recognised_in_every_form() -> None:
    async def work() -> None: ...

    class Worker:
        async def __call__(self) -> None: ...

    assert is_async(work)
    assert is_async(partial(work))
    assert is_async(Worker())
    assert not is_async(lambda: None)
