"""What a kind declares for tools that do not have the app's code: checked before it is stored."""

from __future__ import annotations

from collections.abc import Mapping

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.jobs.states import JobState
from perdure.errors import SettingsError
from perdure.kinds.options import checked_name
from perdure.storage.operate.kinds import KindRecord
from perdure.storage.records import Keep


def declared_record(name: str, keep: Keep | Duration | None, state_words: Mapping[str, str] | None) -> KindRecord:
    """The stored record of a kind; invalid values are refused by name."""
    return KindRecord(
        name=name,
        words={} if state_words is None else _checked_words(f"state_words of job {name}", state_words),
        keep=None if keep is None else _checked_keep(f"keep of job {name}", keep),
    )


def _checked_keep(setting: str, keep: Keep | Duration) -> Keep:
    if isinstance(keep, Keep):
        return keep
    span = parse_duration(setting, keep, error=SettingsError)
    return Keep(succeeded=span, cancelled=span, dead=span)


def _checked_words(setting: str, words: object) -> dict[str, str]:
    if not isinstance(words, Mapping):
        raise SettingsError(setting, f'must give words by state, as {{"succeeded": "sent"}}, got {words!r}')
    checked = {}
    for state, word in words.items():
        if state not in set(JobState):
            raise SettingsError(setting, f"name {state!r}, which is not a state; states are {', '.join(JobState)}")
        if checked_name(f"{setting}: {state}", word) in set(JobState) - {state}:
            raise SettingsError(setting, f"call {state} {word!r}, which is the name of another state")
        checked[JobState(state).value] = word
    return checked
