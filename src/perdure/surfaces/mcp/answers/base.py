"""The common part of all answers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from perdure.surfaces.mcp.quoting import NOTICE


class Part(BaseModel):
    """A part of an answer."""

    model_config = ConfigDict(frozen=True)


class Answer(Part):
    """An answer; it begins with a notice about the untrusted text in it."""

    notice: str = NOTICE
