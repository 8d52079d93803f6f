"""Flags, their changes, and who sees them."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import Annotated, Final

import msgspec

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
"""What a flag may be called."""
Rollout = Annotated[int, msgspec.Meta(ge=0, le=100)]
_ROLLOUT_BUCKETS: Final = 100


class Updates(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a schedule changes; a field that is left out stays as it is."""

    enabled: bool | None = None
    rollout: Rollout | None = None

    @property
    def is_empty(self) -> bool:
        """Whether it would change nothing."""
        return self.enabled is None and self.rollout is None


class Flag(msgspec.Struct, frozen=True, rename="camel"):
    """The current state of a flag; `version` rises with every change."""

    key: str
    enabled: bool
    rollout: int
    description: str
    version: int
    updated_at: datetime
    updated_by: str

    def is_on_for(self, user_id: str) -> bool:
        """Whether this user sees the feature: the flag is enabled, and the user's bucket lies within the rollout."""
        return self.enabled and bucket_of(user_id) < self.rollout


class Change(msgspec.Struct, frozen=True, rename="camel"):
    """One change of a flag, with its state afterwards; `schedule_id` None: by hand."""

    flag_key: str
    version: int
    action: str
    enabled: bool
    rollout: int
    schedule_id: str | None
    changed_at: datetime
    changed_by: str


def bucket_of(user_id: str) -> int:
    """The bucket of a user, 0 to 99: the same for every flag, process and day."""
    return int(hashlib.sha256(user_id.encode()).hexdigest()[:8], 16) % _ROLLOUT_BUCKETS
