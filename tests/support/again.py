"""Tests of other modules, to be run once more under other fixtures."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any


def again(*modules: ModuleType) -> dict[str, Callable[..., Any]]:
    """The tests of these modules, under names that no two of them share."""
    return {
        f"{name}_{module.__name__.rpartition('.')[2].removeprefix('test_')}": value
        for module in modules
        for name, value in vars(module).items()
        if name.startswith("test_") and callable(value)
    }
