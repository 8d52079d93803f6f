"""The alert rules and channels that the code of an app declares."""

from __future__ import annotations

from perdure.domain.alerts.channel import Channel
from perdure.domain.alerts.rule import AlertRule
from perdure.errors import SettingsError


class DeclaredAlerts:
    """Rules and channels of one app, by name. Its workers store them in the database."""

    def __init__(self) -> None:
        self.rules: dict[str, AlertRule] = {}
        self.channels: dict[str, Channel] = {}

    def add_rule(self, rule: AlertRule) -> None:
        """Declare a rule, once. Its channels must be declared already: those made at run time can be deleted."""
        if rule.name in self.rules:
            raise SettingsError(f"rule {rule.name}", "is declared twice: give one another name")
        if unknown := [name for name in rule.to if name not in self.channels]:
            known = ", ".join(sorted(self.channels)) or "none"
            raise SettingsError(
                f"to of rule {rule.name}",
                f"names no channel that this app declares: {unknown[0]!r}; there are: {known}",
            )
        self.rules[rule.name] = rule

    def add_channel(self, channel: Channel) -> None:
        """Declare a channel, once."""
        if channel.name in self.channels:
            raise SettingsError(f"channel {channel.name}", "is declared twice: give one another name")
        self.channels[channel.name] = channel
