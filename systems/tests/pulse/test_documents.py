"""Documents: text, Markdown and HTML are read as plain text, and split without losing anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure_systems.pulse.documents import UnreadableDocument, files_of, read, read_file, split


def test_markdown_is_read_without_its_marks() -> None:
    found = read("notes/engine.md", "# The *engine*\n\n- It **turns** [fast](http://x).\n\n```\ncode\n```\n\n> Quote")
    assert found.title == "The *engine*"
    assert found.body == "The engine\n\nIt turns fast.\n\ncode\n\nQuote"


def test_html_is_read_without_scripts_styles_and_tags() -> None:
    page = (
        "<!doctype html><html><head><title>An &amp; engine</title><style>p{}</style></head><body>"
        "<script>evil()</script><h1>Hi</h1><p>One <b>bold</b> word.</p><p>Two</p></body></html>"
    )
    assert read("page.html", page).title == "An & engine"
    assert read("page.html", page).body == "Hi\n\nOne bold word.\n\nTwo"


def test_text_keeps_its_paragraphs_and_loses_marks_of_order_and_nul() -> None:
    assert read("a.txt", "\ufeffOne\r\nline.\r\n\r\nTwo\0.".encode()).body == "One line.\n\nTwo."


@pytest.mark.parametrize("most", [10, 37, 100, 10_000])
def test_pieces_are_small_enough_and_nothing_is_lost(most: int) -> None:
    body = "\n\n".join(["A short one.", "A long one. " * 20, "y" * 250, "End."])
    pieces = split(body, most)
    assert all(0 < len(piece) <= most for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(body.split())


def test_bytes_that_are_no_text_are_refused_by_name() -> None:
    with pytest.raises(UnreadableDocument, match=r"source 'a.txt' is not UTF-8: invalid start byte at byte 1"):
        read("a.txt", b"a\xff")


def test_a_link_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("secret", encoding="utf-8")
    folder = tmp_path / "documents"
    (folder / "sub").mkdir(parents=True)
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "sub" / "in.txt").write_text("in", encoding="utf-8")
    with pytest.raises(UnreadableDocument, match="outside of the folder"):
        read_file(folder, "link.txt")
    assert read_file(folder, "sub/in.txt").body == "in"
    assert "sub/in.txt" in files_of(folder)
