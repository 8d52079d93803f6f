"""The log of a worker process: to standard error, for people or for machines."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from typing import Any

import structlog

from perdure.surfaces.cli.hostile import lines, one_line


class LogFormat(StrEnum):
    """How log lines look."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """What is worth a line."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def set_up_logging(log_format: LogFormat, level: LogLevel) -> None:
    """Send what perdure, the app and its libraries log, through structlog or logging, to standard error alike."""
    before: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    after: list[Any] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
    ]
    if log_format is LogFormat.JSON:
        after.append(structlog.processors.JSONRenderer())
    else:
        after += [_cleaned, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0, sort_keys=False)]
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=after))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def _cleaned(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Texts of jobs, such as their errors, may try to write to the terminal: make them plain."""
    for key, value in event.items():
        if key in {"exception", "stack"}:
            event[key] = "\n".join(lines(str(value)))
        elif isinstance(value, str):
            event[key] = one_line(value)
    return event
