"""The dashboards and alert rules that come with perdure, with links to a desk."""

from __future__ import annotations

from enum import StrEnum
from importlib.resources import files
from typing import Final
from urllib.parse import urlsplit

from perdure.errors import ArgumentError

DESK: Final = "http://127.0.0.1:8484"
"""The desk that the links in the packaged files lead to."""

_FOLDER: Final = files("perdure.signals.metrics").joinpath("grafana")


class Board(StrEnum):
    """A Grafana dashboard."""

    CLUSTER = "cluster"  # all queues, workers and kinds
    KIND = "kind"  # one kind at a time


def dashboard(board: Board, desk: str = DESK) -> str:
    """A dashboard as JSON, to import into Grafana."""
    return _with_links(f"{board}.json", desk)


def alert_rules(desk: str = DESK) -> str:
    """The alert rules as YAML, for `rule_files` of Prometheus."""
    return _with_links("rules.yml", desk)


def _with_links(name: str, desk: str) -> str:
    parts = urlsplit(desk)
    if parts.scheme not in {"http", "https"} or not parts.hostname or any(sign in desk for sign in "\"'\\{}\n\r\t "):
        raise ArgumentError("--desk", f'must be an address such as "https://desk.example.com", got {desk!r}')
    return _FOLDER.joinpath(name).read_text(encoding="utf-8").replace(DESK, desk.rstrip("/"))
