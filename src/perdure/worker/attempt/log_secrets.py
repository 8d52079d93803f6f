"""Masks the secrets of a job in what its handler logs, both in the log and in the lines stored with the job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from perdure.policy.failures import failure_of
from perdure.policy.secrets.redaction import is_secret_name, redact_failure, redact_text
from perdure.policy.secrets.secret import MASK
from perdure.worker.attempt.log_lines import error_of

_HARMLESS: Final = (int, float, type(None), BaseException)


class WithoutSecrets:
    """A processor of structlog, before all others. `known` returns the secrets of the job."""

    def __init__(self, known: Callable[[], tuple[str, ...]]) -> None:
        self._known = known

    def __call__(self, _: Any, __: str, event: Any) -> Any:
        """Mask values by their names, and texts by their content."""
        known = self._known()
        shown = {name: MASK if is_secret_name(name) else _shown(value, known) for name, value in event.items()}
        error = error_of(shown.get("exc_info"))
        if error is not None:
            kept = failure_of(error)
            failure = redact_failure(kept, known)
            if failure != kept or MASK in f"{kept.message}{kept.traceback}":  # else the log may show it its own way
                del shown["exc_info"]
                shown |= {"error": str(failure), "exception": failure.traceback}
        return shown


def _shown(value: Any, known: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        return redact_text(value, known)
    if isinstance(value, _HARMLESS):
        return value
    if isinstance(value, tuple):
        return tuple(_shown(each, known) for each in value)
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - it is the app's own code, and the log reports its error
        return value
    masked = redact_text(text, known)
    return value if masked == text else masked
