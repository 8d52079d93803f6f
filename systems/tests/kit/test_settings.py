"""A setting that cannot be used is refused by name, with its value and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import SettingsError
from perdure_systems.__main__ import read_env_file
from perdure_systems.kit.settings import number_from_env, required_from_env, switch_from_env, text_from_env


def test_values_are_read_and_empty_ones_mean_the_default() -> None:
    environment = {"N": " 7 ", "EMPTY": "", "YES": "on", "NO": "0", "TEXT": "x"}
    assert number_from_env("N", 1, environment=environment) == 7
    assert number_from_env("EMPTY", 1, environment=environment) == 1
    assert switch_from_env("YES", default=False, environment=environment) is True
    assert switch_from_env("NO", default=True, environment=environment) is False
    assert switch_from_env("EMPTY", default=True, environment=environment) is True
    assert text_from_env("TEXT", environment=environment) == "x"
    assert text_from_env("MISSING", "y", environment=environment) == "y"


@pytest.mark.parametrize("value", ["15", "-1", "three", "1.5"])
def test_a_number_out_of_bounds_names_variable_value_and_bounds(value: str) -> None:
    with pytest.raises(SettingsError, match=rf"RETRIES must be a whole number from 0 to 10, got '?{value}'?"):
        number_from_env("RETRIES", 3, at_least=0, at_most=10, environment={"RETRIES": value})


def test_a_switch_and_a_required_value_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="SHOTS must be true or false, got 'maybe'"):
        switch_from_env("SHOTS", default=False, environment={"SHOTS": "maybe"})
    with pytest.raises(SettingsError, match="KEY is not set: it signs webhooks"):
        required_from_env("KEY", why="it signs webhooks", environment={})


def test_an_env_file_is_read_and_a_bad_line_is_named(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# comment\nA=1\nB = 'two words'\n")
    assert read_env_file(file) == {"A": "1", "B": "two words"}
    file.write_text("A=1\nnonsense\n")
    with pytest.raises(SettingsError, match=r"line 2 .* must be NAME=value, got 'nonsense'"):
        read_env_file(file)
