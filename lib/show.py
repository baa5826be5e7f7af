"""What a cell shows: tables, tokens with their writers, traces, figures with alt text, source code, claims.

Everything is static text, HTML or PNG, so that it looks the same on GitHub, in JupyterLab and in a re-execution.
"""
from __future__ import annotations

import base64
import inspect
import io
import logging
import os
import re
from collections.abc import Callable, Iterable
from html import escape
from itertools import groupby, zip_longest
from textwrap import dedent, indent

from IPython.display import display
from wcwidth import wcswidth

from lib import trace as traces
from lib.chat import Span
from lib.episode import Episode, Turn
from lib.models import DEFAULT
from lib.trace import COLOURS, LONG, PIECE, VISIBLE, WHOLE, Line, shown

NUMBER = re.compile(r"[-+−]?\d[\d,]*(\.\d+)?( ?%)?")
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it warns in a cell while it lists the fonts


class Table:
    """Rows under a header, as text and as HTML; columns of numbers stand right, all others left."""

    def __init__(self, header: list[str], rows: Iterable[Iterable]):
        rows = [list(row) for row in rows]
        if any(len(row) != len(header) for row in rows):
            raise ValueError(f"every row needs {len(header)} cells, one for each of {header}")
        self.header, self.cells = header, [[cell_text(cell) for cell in row] for row in rows]
        columns = list(zip(*self.cells, strict=True)) or [()] * len(header)
        self.right = [bool(column) and all(map(NUMBER.fullmatch, column)) for column in columns]

    def __repr__(self) -> str:
        columns = list(zip(self.header, *self.cells, strict=True))
        widths = [max(map(wcswidth, column)) for column in columns]
        lines = [self._line(row, widths) for row in [self.header, ["─" * width for width in widths], *self.cells]]
        return "\n".join(lines)

    def _line(self, row: list[str], widths: list[int]) -> str:
        padded = [(" " * (width - wcswidth(cell)) + cell) if right else cell + " " * (width - wcswidth(cell))
                  for cell, width, right in zip(row, widths, self.right, strict=True)]
        return "  ".join(padded).rstrip()

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr>{''.join(self._html_cells(row, 'td'))}</tr>" for row in self.cells)
        header = "".join(self._html_cells(self.header, 'th scope="col"'))
        return f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>"

    def _html_cells(self, row: list[str], tag: str) -> list[str]:
        return [f'<{tag} style="text-align:{"right" if right else "left"}">{escape(cell)}</{tag[:2]}>'
                for cell, right in zip(row, self.right, strict=True)]


def table(rows: Iterable[Iterable], header: list[str]) -> Table:
    """A table of `rows` under `header`; integers get thousands separators, so format other numbers yourself."""
    return Table(header, rows)


def cell_text(value) -> str:
    """How a table writes a value: 1234 as 1,234, line breaks made visible."""
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_count else str(value).translate(VISIBLE)


class Tokens:
    """A prompt token by token: id, text, and who wrote it, in words and by colour."""

    def __init__(self, spans: list[Span]):
        self.spans = spans

    def __repr__(self) -> str:
        rows = [(str(span.id), repr(span.text)[1:-1], span.writer) for span in self.spans]
        return repr(Table(["id", "text", "written by"], rows))

    def _repr_html_(self) -> str:
        runs = [(writer, list(run)) for writer, run in groupby(self.spans, key=lambda span: span.writer)]
        return f'<div style="line-height:3.2em">{"".join(self._run(writer, run) for writer, run in runs)}</div>'

    def _run(self, writer: str, run: list[Span]) -> str:
        label = f'<small style="opacity:.75">{writer}:</small> '
        return f'<span style="margin-right:.7em">{label}{"".join(map(self._box, run))}</span> '

    def _box(self, span: Span) -> str:
        style = (f"display:inline-block;line-height:1.25em;margin:1px;padding:1px 3px;text-align:center;"
                 f"border-bottom:3px solid {COLOURS[span.writer]};background:{COLOURS[span.writer]}30")
        text = escape(span.text.translate(VISIBLE).replace(" ", "·")) or "…"
        return f'<span style="{style}"><code>{text}</code><br><small>{span.id}</small></span>'


def tokens(spans: list[Span]) -> Tokens:
    """The spans as boxes with text above and id below; as plain text a row per token."""
    return Tokens(spans)


class Trace:
    """Episodes to look at: side by side as HTML, one after the other as text."""

    def __init__(self, episodes: tuple[Episode, ...], titles: list[str] | None = None, seconds: bool = False):
        if not episodes:
            raise ValueError("a trace needs at least one episode")
        if isinstance(titles, str):
            raise ValueError(f"titles are a list of titles, one per episode, not {titles!r}")
        if titles is not None and len(titles) != len(episodes):
            raise ValueError(f"a title for each episode, please: there are {len(titles)} for {len(episodes)}")
        names = titles or [", ".join(filter(None, [episode.model, episode.protocol.get("policy")]))
                           for episode in episodes] * (len(episodes) > 1)
        self.titled, self.seconds = list(zip_longest(episodes, names, fillvalue="")), seconds

    def __repr__(self) -> str:
        return "\n\n\n".join(self._text(episode, title) for episode, title in self.titled)

    def _text(self, episode: Episode, title: str) -> str:
        names, *rows = traces.ledger(episode, self.seconds)
        head = [_text_line(line, WHOLE) for line in traces.header(episode)]
        turns = [_text_turn(number, turn) for number, turn in enumerate(episode.turns, 1)]
        blocks = [[shown(title, LONG)], head, *turns, [repr(Table(names, rows)), traces.saving(episode)]]
        return "\n\n".join("\n".join(block) for block in (blocks if title else blocks[1:]))

    def _repr_html_(self) -> str:
        most = max([turn.prompt_tokens for episode, _ in self.titled for turn in episode.turns], default=1)
        parts = [traces.as_html(episode, title, self.seconds, most) for episode, title in self.titled]
        columns = "".join(f'<div style="flex:1 1 22em;min-width:0">{html}</div>' for html in parts)
        return ('<div class="mathjax_ignore tex2jax_ignore"><div style="display:flex;flex-wrap:wrap;gap:1.5em">'
                f"{columns}</div></div>")


def _text_turn(number: int, turn: Turn) -> list[str]:
    added = [f"    {writer}: {shown(text, LONG)}" for writer, text in traces.pieces(turn, 12)]
    outcome = [f"  {_text_line(line, PIECE)}" for line in traces.outcome(turn)]
    return [shown(traces.costs(number, turn)), f"  added to the prompt, {len(traces.parts(turn)[0]):,} tokens:",
            *added, "  reply:", f"    model: {shown(traces.reply_text(turn), WHOLE)}", *outcome]


def _text_line(line: Line, limit: int) -> str:
    badges = [f"[{shown(badge)}]" for badge in line.badges]
    return f"{shown(line.label)}: {' '.join(filter(None, [*badges, shown(line.text, limit)]))}"


def trace(*episodes: Episode, titles: list[str] | None = None, seconds: bool = False) -> Trace:
    """Episodes turn by turn, two or more side by side; `seconds` adds times, which differ from run to run."""
    return Trace(episodes, titles, seconds)


class Folds:
    """Long texts under a summary each, to open one by one; as plain text all of them, one after the other."""

    def __init__(self, texts: Iterable[tuple[str, str]]):
        self.texts = [(shown(name, LONG), shown(text, WHOLE, "\n")) for name, text in texts]
        if not self.texts:
            raise ValueError("there is nothing to fold")

    def __repr__(self) -> str:
        return "\n\n".join(f"{name}\n{indent(text, '    ')}" for name, text in self.texts)

    def _repr_html_(self) -> str:
        style = "white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0 .8em 1.2em"
        opened = "<details><summary>{}</summary><pre style=\"{}\">{}</pre></details>"
        return "".join(opened.format(escape(name), style, escape(text)) for name, text in self.texts)


def folds(texts: Iterable[tuple[str, str]]) -> Folds:
    """Texts that open one by one under their summaries, given as (summary, text); ValueError if there are none."""
    return Folds(texts)


def figure(fig, alt: str) -> None:
    """Show a matplotlib figure as PNG; `alt` is its content in a sentence and goes into the output's metadata."""
    if len(alt.split()) < 4:
        raise ValueError(f"say in a sentence what the figure shows, not {alt!r}")
    buffer = io.BytesIO()
    fig.savefig(buffer, format="png", dpi=110, metadata={"Software": None})
    data = {"image/png": base64.b64encode(buffer.getvalue()).decode(), "text/plain": alt}
    display(data, metadata={"image/png": {"alt": alt}}, raw=True)


def source(*things: Callable) -> None:
    """Show the source code of functions, methods or classes of this course."""
    code = "\n\n".join(dedent(inspect.getsource(thing)).rstrip() for thing in things)
    display({"text/plain": code, "text/markdown": f"```python\n{code}\n```"}, raw=True)


def claim(text: str, holds: bool, here: str = "it does not hold") -> None:
    """State what was recorded. Under `test` and `record` a false claim raises; a reader is told what came `here`."""
    if type(holds).__name__ not in ("bool", "bool_"):  # Python's or NumPy's; anything else is easily true by mistake
        raise TypeError(f"a claim holds or it does not: give True or False, not {holds!r}")
    if holds:
        print(f"✓ {text}")
    elif os.environ.get("COURSE_STRICT") == "1" and (os.environ.get("COURSE_MODEL") or DEFAULT) == DEFAULT:
        raise AssertionError(f"a recorded claim does not hold: {text}")
    else:
        print(f"recorded: {text}, here: {here}")
