"""How much one transaction or query takes, the same on both engines: small enough to hold no lock for long."""

from __future__ import annotations

from typing import Final

ENDS_AT_ONCE: Final = 1_000
"""Ends of jobs with joined children that are counted together."""
WOKEN_AT_ONCE: Final = 2_000
"""Held jobs that are released together."""
CHILDREN_AT_ONCE: Final = 1_000
"""Children that are cancelled in one transaction when their parent is deleted."""
WAITING_FOR_KEYS_LOOKED_AT: Final = 1_000
"""Jobs that wait for unique keys, oldest first, among which `hasten` finds those of the freed keys."""
THROTTLE_KEYS_FORGOTTEN_AT_ONCE: Final = 20
"""Expired keys of `once_per` that are deleted when one is taken, and keys looked at that may lie ahead of the clock."""
JOBS_PER_LOOK: Final = 500
"""Jobs that a list or a search reads at once."""
JOBS_LOOKED_UP_SINGLY: Final = 10_000
"""Jobs up to which looking each up is quicker than finding them along all others."""
ENTRIES_PER_JOB: Final = 10
"""Expired audit entries that `prune` deletes, for each job of its limit."""
INDEX_PIECES_PER_TICK: Final = 10
"""Pieces of an index that one `prune` reads past jobs that their kinds keep longer."""
GROUPS_COUNTED_SINGLY: Final = 10_000
"""Groups of failures up to which each is counted; if there are more, the newest dead letters are grouped."""
