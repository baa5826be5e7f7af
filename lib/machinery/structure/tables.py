"""HTML taken apart into its tables and the text around them."""
from __future__ import annotations

from html.parser import HTMLParser

_INLINE = {"a", "b", "i", "em", "strong", "code", "small", "sub", "sup", "span", "u", "s", "mark", "kbd", "q", "abbr"}
Table = list[list[tuple[bool, str]]]  # rows of cells: whether it is a head, and its text


def taken_apart(html: str) -> tuple[str, list[Table]]:
    """The text outside of tables, a line for each block element, and the tables."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.text, reader.tables


class _Reader(HTMLParser):
    """Collects text, and the cells of tables; styles and scripts are not read."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.tables, self._cell, self._is_head, self._hidden = "", [], None, False, 0

    def handle_starttag(self, tag: str, attrs: list) -> None:
        """A table, row or cell begins; any other tag parts words."""
        if tag in ("style", "script"):
            self._hidden += 1
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self._cell, self._is_head = "", tag == "th"
        else:
            self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        """A cell ends; so does a block of text."""
        if tag in ("style", "script"):
            self._hidden -= 1
        elif tag in ("td", "th") and self._cell is not None:
            self.tables[-1][-1].append((self._is_head, self._cell.strip()))
            self._cell = None
        elif tag not in _INLINE:
            self._part(tag)

    def handle_data(self, data: str) -> None:
        """Text goes to the cell that is open, or stands outside of tables."""
        if self._hidden:
            return
        if self._cell is not None:
            self._cell += data
        else:
            self.text += data

    def _part(self, tag: str) -> None:
        """Inline elements leave a word whole; a line break is a blank, other blocks begin a line."""
        sign = "" if tag in _INLINE else " " if tag == "br" or self._cell is not None else "\n"
        self.handle_data(sign)
