"""Stored JSON as people read it."""

from __future__ import annotations

from perdure.surfaces.desk.view.documents import MOST_CHARACTERS, MOST_LINES, as_document, document


def test_json_is_shown_as_text_with_its_size_and_cut_where_it_is_long() -> None:
    short = document('{"a":[1,2]}')
    assert short is not None
    assert (short.text, short.size, short.cut, short.is_long) == (
        '{\n  "a": [\n    1,\n    2\n  ]\n}',
        11,
        False,
        False,
    )
    long = as_document(list(range(5_000)))
    assert long is not None
    assert long.cut
    assert long.is_long
    assert len(long.text.split("\n")) <= 400
    broken = document("{oops")
    assert broken is not None
    assert broken.text == "{oops"
    assert document(None) is None
    deep = document("[" * 5_000 + "]" * 5_000)
    assert deep is not None
    assert deep.text.startswith("[[[")


def test_a_very_long_text_is_cut_without_being_read() -> None:
    """Laying out a document of megabytes would take seconds."""
    text = "[" + "1," * 200_000 + "1]"
    huge = document(text)
    assert huge is not None
    assert (huge.text, huge.size, huge.cut) == (text[:MOST_CHARACTERS], len(text), True)


def test_a_size_is_in_bytes_of_the_stored_text() -> None:
    for text, size in (('"ü"', 4), ('"\ud800"', 5), ("[]", 2)):
        found = document(text)
        assert found is not None
        assert (found.size, found.text) == (size, text)


def test_a_document_is_cut_and_folded_only_beyond_its_limits() -> None:
    def shown(lines: int) -> tuple[int, bool, bool]:
        found = document("\n".join(["x"] * lines))
        assert found is not None
        return found.lines, found.cut, found.is_long

    assert [shown(lines) for lines in (24, 25, MOST_LINES, MOST_LINES + 1)] == [
        (24, False, False),
        (25, False, True),
        (MOST_LINES, False, True),
        (MOST_LINES, True, True),
    ]
    whole = document("x" * MOST_CHARACTERS)
    assert whole is not None
    assert not whole.cut
    empty = document("[ ]")
    assert empty is not None
    assert empty.text == "[]"
