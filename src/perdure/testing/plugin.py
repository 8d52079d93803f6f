"""The pytest plugin: a sandbox for each test that asks for one.

`perdure_sandbox` holds your app, which pytest finds by the setting `perdure_app = "jobs:app"`, or through a fixture of
your own called `perdure_app`. The fixtures are plain, so that they serve sync and async tests under any async plugin.
Their modules are imported when a test asks for them.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from perdure.app.app import App
    from perdure.testing.sandbox import Sandbox

_MARKER = "perdure"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting that names the app."""
    parser.addini("perdure_app", "The perdure app of `perdure_sandbox`, as module:name.", type="string", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(**options): options of Sandbox for the `perdure_sandbox` of a test, "
        "such as inline=True, raising=False, start=…, seed=…",
    )


@pytest.fixture
def perdure_app(request: pytest.FixtureRequest) -> App:
    """The app to be tested, from the setting `perdure_app`; or define a fixture of this name."""
    from perdure.app.app import App  # noqa: PLC0415 - only where a test asks

    name = str(request.config.getini("perdure_app"))
    if not name:
        raise pytest.UsageError(
            'which app? Set perdure_app = "module:name" in the configuration of pytest, or define a fixture perdure_app'
        )
    try:
        app = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise pytest.UsageError(f"perdure_app = {name!r} cannot be found: {error}") from error
    if not isinstance(app, App):
        raise pytest.UsageError(f"perdure_app = {name!r} is not a perdure App, but {app!r}")
    return app


@pytest.fixture
def perdure_sandbox(request: pytest.FixtureRequest, perdure_app: App) -> Iterator[Sandbox]:
    """The app in a sandbox of its own; `@pytest.mark.perdure(inline=True)` sets its options."""
    from perdure.testing.sandbox import Sandbox  # noqa: PLC0415 - as above

    options: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(_MARKER))):  # the closest marker wins
        options |= marker.kwargs
    with Sandbox(perdure_app, **options) as box:
        yield box
