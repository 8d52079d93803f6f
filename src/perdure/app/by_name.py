"""Jobs by the name of their kind and arguments as JSON: for command lines and HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.app.app import App
from perdure.kinds.encoding import encode


def typed_arguments(app: App, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that came as JSON, as the handler's own types: as a call from Python would give them.

    Raises NotFoundError for an unknown kind, and PayloadError for arguments that do not fit its handler.
    """
    signature = app.job_named(kind).kind.signature
    signature.bind((), dict(given))
    values = dict(zip(signature.names, signature.values(encode(dict(given))), strict=True))
    return {name: values[name] for name in given}
