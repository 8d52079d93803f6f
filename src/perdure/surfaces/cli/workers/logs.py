"""The log of a worker or server process: to standard error, for people or for machines."""

from __future__ import annotations

import logging
import sys
from enum import StrEnum
from typing import Annotated, Any, Final

import structlog
import typer

from perdure.surfaces.cli.terminal.hostile import lines, one_line

_AGENTS: Final = "mcp"
"""The logger of the MCP SDK: at level info it logs the begin and end of each session, with its id."""


class LogFormat(StrEnum):
    """The format of log lines."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    """The lowest level that is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class AttemptLines(StrEnum):
    """The level of the lines about each attempt that starts or succeeds."""

    INFO = "info"
    DEBUG = "debug"
    OFF = "off"


LOG_PANEL: Final = "Log"
Format = Annotated[
    LogFormat | None,
    typer.Option(
        "--log-format",
        help="The log format; replaces the app's own logging configuration.",
        show_default="console, unless the app configures logging",
        rich_help_panel=LOG_PANEL,
    ),
]
Level = Annotated[
    LogLevel | None,
    typer.Option(
        "--log-level", help="The lowest level that is logged.", show_default="info", rich_help_panel=LOG_PANEL
    ),
]
JsonLog = Annotated[bool, typer.Option("--json", help="Log and errors as JSON.", rich_help_panel=LOG_PANEL)]


def set_up_logging(log_format: LogFormat | None, level: LogLevel | None) -> bool:
    """Set up the log of a worker, unless the app has done so; returns whether it is perdure's own, and for people.

    An app that has configured logging or structlog keeps its own configuration, and perdure's lines go there. A
    requested format replaces it.
    """
    if log_format is None and (structlog.is_configured() or logging.getLogger().handlers):
        if not structlog.is_configured():
            _join_logging()
        if level is not None:
            logging.getLogger().setLevel(level.upper())
        return False
    _configure(log_format or LogFormat.CONSOLE, level or LogLevel.INFO)
    return log_format is not LogFormat.JSON


def _join_logging() -> None:
    """Pass perdure's lines to the standard library's logging, as the app has configured it."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            _as_message,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _as_message(_: Any, __: str, event: structlog.typing.EventDict) -> str:
    """One message: the sentence, the facts as key=value, and the traceback below."""
    cleaned = _cleaned(None, "", event)
    sentence, traceback = cleaned.pop("event", ""), cleaned.pop("exception", None)
    facts = " ".join([str(sentence), *(f"{key}={value!r}" for key, value in cleaned.items())])
    return (facts if traceback is None else f"{facts}\n{traceback}").replace("%", "%%")


def _configure(log_format: LogFormat, level: LogLevel) -> None:
    """Send log lines of perdure, the app and its libraries, through structlog or logging, to standard error."""
    is_terminal = log_format is LogFormat.CONSOLE and sys.stderr.isatty()
    stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S" if is_terminal else "iso", utc=not is_terminal)
    before: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        stamp,
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
        after += [*([_shortened] if is_terminal else []), _cleaned]
        after.append(structlog.dev.ConsoleRenderer(colors=is_terminal, pad_event_to=0, sort_keys=False))
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=after))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    if level is LogLevel.INFO:
        logging.getLogger(_AGENTS).setLevel(logging.WARNING)


def _shortened(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """A line of perdure for a terminal: the job's kind comes first, its long id last."""
    if event.get("logger") == "perdure":
        del event["logger"]
    for last in ("job_id", "error"):
        if last in event:
            event[last] = event.pop(last)
    for key, value in event.items():
        if isinstance(value, float):
            event[key] = round(value, 3)
    return event


def _cleaned(_: Any, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Escape control characters: texts of jobs, such as errors, may contain terminal escapes."""
    for key, value in event.items():
        if key in {"exception", "stack"}:
            margin = "    " if key == "exception" else ""  # so that a job cannot forge a line of perdure
            event[key] = "\n".join(f"{margin}{line}" for line in lines(str(value)))
        elif isinstance(value, str):
            event[key] = one_line(value)
    return event
