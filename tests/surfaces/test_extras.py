"""A package that is missing is told with the extra that brings it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from perdure.errors import SettingsError
from perdure.signals.metrics.extra import missing_metrics
from perdure.signals.otel.extra import missing_otel
from perdure.surfaces.mcp.extra import missing_mcp
from perdure.surfaces.server.extra import missing_web


@pytest.mark.parametrize(
    ("missing", "package", "extra"),
    [
        (missing_metrics, "prometheus_client", "metrics"),
        (missing_otel, "opentelemetry.sdk", "otel"),
        (missing_mcp, "mcp.server", "mcp"),
        (missing_web, "starlette.requests", "web"),
    ],
)
def test_only_an_error_about_the_extra_names_it(
    missing: Callable[[ModuleNotFoundError], Exception], package: str, extra: str
) -> None:
    told = missing(ModuleNotFoundError(name=package))
    assert isinstance(told, SettingsError)
    assert f"pip install 'perdure[{extra}]'" in str(told)
    for name in ("shop.jobs", f"{package.partition('.')[0]}x", None):
        other = ModuleNotFoundError(name=name)
        assert missing(other) is other
