"""What to say when the package of the metrics extra is missing."""

from __future__ import annotations

from perdure.errors import SettingsError

_PACKAGE = "prometheus_client"
MISSING = f"needs {_PACKAGE}, which is not installed: pip install 'perdure[metrics]'"


def missing_metrics(error: ModuleNotFoundError) -> Exception:
    """A sentence that names the extra; any other import error stays as it is."""
    if (error.name or "").partition(".")[0] == _PACKAGE:
        return SettingsError("metrics", MISSING)
    return error
