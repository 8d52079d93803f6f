"""The docstrings that users read say it in words, without the numbers of our own documents."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import perdure
from perdure import events
from perdure.operate.commands.calendar import Calendar
from perdure.operate.commands.holds import Holds
from perdure.operate.desk import Desk

NUMBER = re.compile(r"\([A-H]\d{1,2}\)")


def public() -> Iterator[tuple[str, Any]]:
    """Every public name with its public members, the desk and every event."""
    named = {name: getattr(perdure, name) for name in perdure.__all__}
    classes: list[type] = [Desk, Calendar, Holds, *events.Event.__subclasses__()]
    shown = {each.__name__: each for each in classes}
    for name, thing in (named | shown).items():
        yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{each}", getattr(thing, each)) for each in dir(thing) if not each.startswith("_"))


def test_no_public_docstring_has_a_number_of_the_specification() -> None:
    found = dict(public())
    assert {"Desk.requeue", "WorkerClosed", "App.cron"} <= found.keys()
    assert [name for name, thing in found.items() if NUMBER.search(inspect.getdoc(thing) or "")] == []
