"""The example of an environment file says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure import SettingsError
from perdure_systems.__main__ import read_env_file
from perdure_systems.certificates.settings import LOOPS, read_loops, read_settings

EXAMPLE = Path(__file__).parents[2] / "src/perdure_systems/certificates/.env.example"


class Watched(dict[str, str]):
    """An environment that notes which variables are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read: set[str] = set()

    def get(self, key: str, default: object = None) -> str:
        """Note it."""
        self.read.add(key)
        return str(default or "")


def test_the_example_names_every_variable_with_its_default() -> None:
    example = read_env_file(EXAMPLE)
    assert read_loops(example) == read_loops({})
    assert read_settings(example) == read_settings({})
    watched = Watched()
    read_loops(watched)
    read_settings(watched)
    assert watched.read == set(example)
    assert {loop.variable for loop in LOOPS} < set(example)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CERTCTL_JOB_MAX_ATTEMPTS", "0"),
        ("CERTCTL_JOB_MAX_ATTEMPTS", "many"),
        ("CERTCTL_JOB_AWAITING_CSR_TIMEOUT", "0s"),
        ("CERTCTL_JOB_AWAITING_APPROVAL_TIMEOUT", "soon"),
        ("CERTCTL_RENEW_BEFORE_DAYS", "-1"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(variable: str, value: str) -> None:
    with pytest.raises(SettingsError, match=variable):
        read_settings({variable: value})
