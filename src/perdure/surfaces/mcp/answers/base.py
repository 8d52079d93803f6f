"""What all answers have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from perdure.surfaces.mcp.quoting import NOTICE


class Part(BaseModel):
    """A piece of an answer."""

    model_config = ConfigDict(frozen=True)


class Answer(Part):
    """An answer; it begins with what to make of the text in it."""

    notice: str = NOTICE
