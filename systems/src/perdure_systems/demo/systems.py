"""Which systems take part. Imported only when the environment is set: apps read it."""

from __future__ import annotations

import importlib
from typing import Final

from perdure_systems.kit.service import System

NAMES: Final = ("notifications", "certificates", "flags", "pulse", "authorities", "audits")


def all_systems() -> list[System]:
    """The systems in the order of the tour."""
    return [importlib.import_module(f"perdure_systems.{name}.system").SYSTEM for name in NAMES]
