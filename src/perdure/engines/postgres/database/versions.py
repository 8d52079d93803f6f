"""Which server versions are supported."""

from __future__ import annotations

from typing import Final

from perdure.errors import StoreRefused

OLDEST_MAJOR: Final = 14  # the first with date_bin()
_NUMBERS_PER_MAJOR: Final = 10_000
_FIRST_MAJOR_OF_TWO_PARTS: Final = 10  # before it, 9.6.24 was 90624


def require_version(number: int) -> None:
    """Refuse a server that is too old, as libpq numbers it: 13.12 is 130012. A newer one is fine."""
    if number // _NUMBERS_PER_MAJOR < OLDEST_MAJOR:
        major, rest = divmod(number, _NUMBERS_PER_MAJOR)
        version = f"{major}.{rest}" if major >= _FIRST_MAJOR_OF_TWO_PARTS else f"{major}.{rest // 100}"
        raise StoreRefused(
            f"the server is PostgreSQL {version}, and perdure needs PostgreSQL {OLDEST_MAJOR} or later: "
            "upgrade the server"
        )
