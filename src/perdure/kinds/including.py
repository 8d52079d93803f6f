"""Imports the modules that declare an app's jobs."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from typing import Final

from perdure.errors import SettingsError

_ALL_BELOW: Final = ".*"


def checked_modules(field: str, given: Iterable[str] | str) -> tuple[str, ...]:
    """Names of modules: `shop.jobs`, or `shop.jobs.*` for all modules of that package."""
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not all(
            part.isidentifier() for part in name.removesuffix(_ALL_BELOW).split(".")
        ):
            problem = f"must be names of modules such as shop.jobs, or shop.jobs.* for a whole package, got {name!r}"
            raise SettingsError(field, problem)
    return names


def import_modules(names: Iterable[str]) -> None:
    """Import these modules; for a name that ends with `.*`, every module of the package, at any depth."""
    for name in names:
        module = importlib.import_module(name.removesuffix(_ALL_BELOW))
        if name.endswith(_ALL_BELOW):
            if not hasattr(module, "__path__"):
                raise SettingsError("include", f"{name!r}: {module.__name__} is a module, not a package: drop the .*")
            for found in pkgutil.walk_packages(module.__path__, f"{module.__name__}."):
                importlib.import_module(found.name)
