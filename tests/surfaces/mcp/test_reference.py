"""The reference of the tools is what the server says."""

from __future__ import annotations

from tools.mcp_tools import PAGE, page


def test_the_page_of_tools_is_as_the_server_lists_them() -> None:
    assert PAGE.read_text() == page(), "run python tools/mcp_tools.py"
