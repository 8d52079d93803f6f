"""Test your own jobs: a sandbox for an app, with a temporary database and a clock that the test controls.

Modules are loaded on first use, because pytest imports this package to find its plugin.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from perdure.testing.drained import Drained
    from perdure.testing.enqueued import Enqueued
    from perdure.testing.sandbox import Sandbox

__all__ = ["Drained", "Enqueued", "Sandbox"]


def __getattr__(name: str) -> Any:
    """Load on demand."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - needed here alone

    return getattr(import_module(f"{__name__}.{name.lower()}"), name)
