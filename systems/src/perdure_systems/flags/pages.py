"""The pages."""

from __future__ import annotations

from typing import Final

from starlette.routing import BaseRoute

PAGES: Final[list[BaseRoute]] = []
