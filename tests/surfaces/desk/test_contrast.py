"""Text can be read: WCAG AA for every pair of text and ground that the style sheet uses, in both themes."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

CSS = (files("perdure.surfaces.desk") / "static" / "desk.css").read_text()
VARIABLES = {
    name: (light, dark)
    for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", CSS)
}
STATES = ("ready", "running", "retrying", "waiting", "ok", "dead", "none")
GROUNDS = ("bg", "panel", "sunk")
PAIRS = [
    *((text, ground) for text in ("ink", "soft", "faint", "accent", *STATES) for ground in GROUNDS),
    *(("accent", "accent-bg"), ("faint", "accent-bg"), ("ink", "accent-bg"), ("dead", "accent-bg")),
    *((("dead", "dead-bg"), ("ink", "warn-bg"), ("soft", "warn-bg"), ("ink", "ok-bg"), ("on-accent", "accent"))),
]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_has_the_contrast_of_aa_on_its_ground(theme: int) -> None:
    found = {pair: contrast(VARIABLES[pair[0]][theme], VARIABLES[pair[1]][theme]) for pair in PAIRS}
    assert {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_edges_of_fields_and_focus_rings_can_be_seen(theme: int) -> None:
    pairs = [(edge, ground) for edge in ("edge", "accent") for ground in GROUNDS]
    found = {pair: contrast(VARIABLES[pair[0]][theme], VARIABLES[pair[1]][theme]) for pair in pairs}
    assert {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < 3} == {}


def test_every_colour_of_a_class_is_one_of_the_variables() -> None:
    assert set(re.findall(r"var\(--([\w-]+)", CSS)) <= VARIABLES.keys() | {"tone", "radius", "mono"}
