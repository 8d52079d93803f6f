"""A plan: statements to run one after another, without any I/O of its own.

A plan is a generator: it yields one statement after another (`Ask` or `Do`) and is sent the answers. The store's
writer runs it in its own transaction; an adapter runs it on a connection of the caller, in the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from msgspec import Struct

from perdure.domain.jobs.job import Receipt
from perdure.engines.sqlite.database.drivers import Params
from perdure.engines.sqlite.database.transaction import Transaction

T = TypeVar("T")


class Ask(Struct, frozen=True):
    """A statement whose rows the plan wants to be sent, as a list."""

    sql: str
    params: Params


class Do(Struct, frozen=True):
    """A statement that writes; the plan wants to be sent the number of rows it touched."""

    sql: str
    params: Params


Statements = dict[str, str]
Turns = Callable[[int], int]
Part = Generator[Ask | Do, Any, T]
Plan = Part[list[Receipt]]


def follow(transaction: Transaction, part: Part[T]) -> T:
    """Run a plan, or a part of one, in a transaction of the store's own."""
    answer: Any = None
    while True:
        try:
            step = part.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value
        if isinstance(step, Do):
            answer = transaction.change(step.sql, step.params)
        else:
            answer = transaction.run(step.sql, step.params)
