"""Which server versions are supported."""

from __future__ import annotations

from typing import Final

from perdure.errors import StoreRefused

OLDEST: Final = 14  # the first with date_bin()
_MAJOR: Final = 10_000
_TWO_PARTS: Final = 10  # before it, 9.6.24 was 90624


def require_version(number: int) -> None:
    """Refuse a server that is too old, as libpq numbers it: 13.12 is 130012. A newer one is fine."""
    if number // _MAJOR < OLDEST:
        major, rest = divmod(number, _MAJOR)
        version = f"{major}.{rest}" if major >= _TWO_PARTS else f"{major}.{rest // 100}"
        raise StoreRefused(
            f"the server is PostgreSQL {version}, and perdure needs PostgreSQL {OLDEST} or later: upgrade the server"
        )
