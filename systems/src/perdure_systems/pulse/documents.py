"""Documents: how text, Markdown and HTML are read and split."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

TYPES: Final = {
    ".txt": "text",
    ".text": "text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}
DOCUMENT_LIMIT_BYTES: Final = 5_000_000
_SOURCE_LIMIT_CHARACTERS: Final = 200
_BLOCKS: Final = {"p", "div", "section", "article", "li", "tr", "br", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5"}
_SILENT: Final = {"script", "style", "template", "noscript", "head"}
_MARKS: Final = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+|\d+[.)][ \t]+)", re.MULTILINE)
_LINK: Final = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_EMPHASIS: Final = re.compile(r"(\*\*|__|\*|`)(.+?)\1")
_FENCE: Final = re.compile(r"^[ \t]*(```|~~~).*$", re.MULTILINE)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+")


class UnreadableDocument(Exception):  # noqa: N818 - says what is the case
    """A document that cannot be used; the message names what is wrong with it."""


class Document(msgspec.Struct, frozen=True):
    """A document as plain text: paragraphs are separated by an empty line."""

    title: str
    body: str


def read_file(folder: Path, source: str) -> Document:
    """A file below the folder; raises UnreadableDocument."""
    _check_name(source)
    root = folder.resolve()
    path = (root / source).resolve()
    if not path.is_relative_to(root):
        raise UnreadableDocument(f"source {source!r} is outside of the folder of documents")
    type_of(source)
    if not path.is_file():
        raise UnreadableDocument(f"source {source!r} is not a file in the folder of documents")
    if (size := path.stat().st_size) > DOCUMENT_LIMIT_BYTES:
        raise UnreadableDocument(f"source {source!r} has {size:,} bytes, {DOCUMENT_LIMIT_BYTES:,} are allowed")
    return read(source, path.read_bytes())


def files_of(folder: Path) -> list[str]:
    """Every document below the folder, by its path in it."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix.lower() in TYPES)
    return [path.relative_to(folder).as_posix() for path in found]


def read(source: str, content: bytes | str) -> Document:
    """A document from its content; `source` names it and says its type; raises UnreadableDocument."""
    _check_name(source)
    kind = type_of(source)
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableDocument(f"source {source!r} is not UTF-8: {error.reason} at byte {error.start}") from None
    text = text.replace("\0", "").replace("\r\n", "\n")
    name = PurePosixPath(source).stem
    if kind == "html":
        page = _Page()
        page.feed(text)
        page.close()
        return _document(source, page.title.strip() or name, "".join(page.pieces))
    if kind == "markdown":
        heading = re.search(r"^#\s+(.+)$", text, re.MULTILINE)
        return _document(source, heading[1].strip() if heading else name, _plain(text))
    return _document(source, name, text)


def _check_name(source: str) -> None:
    if not 0 < len(source) <= _SOURCE_LIMIT_CHARACTERS or not source.isprintable():
        raise UnreadableDocument(
            f"source must have 1 to {_SOURCE_LIMIT_CHARACTERS} printable characters, "
            f"got {len(source):,}: {source[:50]!r}"
        )


def type_of(source: str) -> str:
    """The type of a document by its name; raises UnreadableDocument."""
    kind = TYPES.get(PurePosixPath(source).suffix.lower())
    if kind is None:
        raise UnreadableDocument(f"source {source!r} must end with one of {', '.join(TYPES)}")
    return kind


def split(body: str, most: int) -> list[str]:
    """Pieces of at most so many characters: whole paragraphs where they fit, else sentences, else cut."""
    pieces: list[str] = []
    for part in _parts(body, most):
        if pieces and len(pieces[-1]) + len(part) + 2 <= most:
            pieces[-1] = f"{pieces[-1]}\n\n{part}"
        else:
            pieces.append(part)
    return pieces


def paragraphs(body: str) -> list[str]:
    """The paragraphs of a text."""
    return [part.strip() for part in re.split(r"\n\s*\n", body) if part.strip()]


def _parts(body: str, most: int) -> list[str]:
    parts: list[str] = []
    for paragraph in paragraphs(body):
        if len(paragraph) <= most:
            parts.append(paragraph)
            continue
        for sentence in _SENTENCE.split(paragraph):
            parts += [sentence[start : start + most] for start in range(0, len(sentence), most)]
    return parts


def _document(source: str, title: str, text: str) -> Document:
    body = "\n\n".join(" ".join(part.split()) for part in paragraphs(text))
    if not body:
        raise UnreadableDocument(f"source {source!r} has no text")
    return Document(" ".join(title.split())[:200], body)


def _plain(text: str) -> str:
    for pattern, put in ((_FENCE, ""), (_MARKS, ""), (_LINK, r"\1"), (_EMPHASIS, r"\2")):
        text = pattern.sub(put, text)
    return text


class _Page(HTMLParser):
    """The text of a page and its title, without scripts and styles."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self.pieces: list[str] = []
        self._in_title = False
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a paragraph, the title, or something that is not read."""
        del attrs
        self._in_title = tag == "title"
        self._silent += tag in _SILENT
        if tag == "body":
            self._silent = 0
        if tag in _BLOCKS:
            self.pieces.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        """End it."""
        self._in_title = False
        self._silent = max(self._silent - (tag in _SILENT), 0)
        if tag in _BLOCKS:
            self.pieces.append("\n\n")

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        if self._in_title:
            self.title += data
        elif not self._silent:
            self.pieces.append(data)
