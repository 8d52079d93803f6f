"""What code declares about alerts is refused where it contradicts itself."""

from __future__ import annotations

import pytest

from perdure.errors import SettingsError
from perdure.operate.alerts.addresses import make_channel
from perdure.operate.alerts.declared import DeclaredAlerts
from perdure.operate.alerts.rules import make_rule


def test_a_rule_is_declared_once_and_after_its_channels() -> None:
    declared = DeclaredAlerts()
    rule = make_rule("deaths", "job_died", to=["ops", "boss"])
    with pytest.raises(SettingsError, match=r"to of rule deaths names no channel .*: 'ops'; there are: none"):
        declared.add_rule(rule)
    declared.add_channel(make_channel("ops", "env:OPS"))
    with pytest.raises(SettingsError, match=r"to of rule deaths names no channel .*: 'boss'; there are: ops"):
        declared.add_rule(rule)
    declared.add_channel(make_channel("boss", "env:BOSS"))
    declared.add_rule(rule)
    with pytest.raises(SettingsError, match="rule deaths is declared twice"):
        declared.add_rule(rule)
    with pytest.raises(SettingsError, match="channel ops is declared twice"):
        declared.add_channel(make_channel("ops", "env:ANOTHER"))
    assert (declared.rules, sorted(declared.channels)) == ({"deaths": rule}, ["boss", "ops"])
