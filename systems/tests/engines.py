"""Which engines a test runs on, where it is not both."""

from __future__ import annotations

import pytest

# For what has nothing to do with the database: the other engine would only take time.
on_sqlite = pytest.mark.parametrize("engine_url", ["sqlite"], indirect=True)
