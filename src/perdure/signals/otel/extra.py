"""What to say when OpenTelemetry is not installed."""

from __future__ import annotations

from perdure.errors import SettingsError


def missing_otel(error: ModuleNotFoundError) -> Exception:
    """A sentence that names the extra; any other import error stays as it is."""
    if (error.name or "").partition(".")[0] == "opentelemetry":
        return SettingsError("otel", f"needs {error.name}, which is not installed: pip install 'perdure[otel]'")
    return error
