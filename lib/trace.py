"""An agent's episode made readable: every turn, who wrote what, what was judged and run, and what it cost.

As static HTML without script or style sheet; lib.show writes the same as text. The words carry the meaning, colours
only repeat it. Texts come from outside: each is escaped, and what hides is made visible.
"""
from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from html import escape
from itertools import groupby
from typing import NamedTuple

from lib.chat import WRITERS, Span
from lib.episode import Episode, Turn
from lib.lines import claim_holds
from lib.replies import Call, Finding
from lib.tools import Result

# Okabe and Ito's palette: told apart with every kind of colour vision; each use also says its meaning in words.
COLOURS = {"template": "#999999", "system": "#0072B2", "user": "#E69F00", "tool": "#009E73", "model": "#CC79A7"}
CLAIMS = {True: "as computed", False: "not as computed", None: "no number"}
TONES = {"ok": "#009E73", "answered": "#009E73", "as computed": "#009E73",  # of badges; all others are a warning
         "no call": "#999999", "no number": "#999999", "refused": "#D55E00", "failed": "#D55E00",
         "tool_fault": "#D55E00"}
VISIBLE = str.maketrans({"\n": "⏎", "\t": "⇥", "\r": "␍"})
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, bidi and zero-width marks, half characters, separators
KEPT = set("\n\t\r\u200c\u200d")  # the two joiners, which Persian and emoji need
CONTROL = re.compile(r"&lt;\|\w+\|&gt;|&lt;/?tool_call&gt;")  # in escaped text
NEAR_TIE = 1e-3  # a gap between the two best logits that noise might turn over
LONG, PIECE, WHOLE = 300, 600, 4000  # characters shown without a fold, of a piece of a prompt, of a reply or answer
PIECES, BOXES = 100, 400  # pieces of a prompt, and tokens with their ids, that are shown
CODE = "margin:.3em 0;padding:0;background:none;white-space:pre-wrap;overflow-wrap:anywhere"
PROSE, PRE = f"{CODE};font:inherit", f"{CODE};font-family:monospace;line-height:1.4;word-break:normal"
SECTION = "border-top:1px solid #99999980;margin-top:.8em;padding-top:.5em"


class Line(NamedTuple):
    """One thing said: what it is, badges of a word or two, and a text from outside."""
    label: str
    badges: tuple[str, ...]
    text: str


# --- what is said -----------------------------------------------------------

def header(episode: Episode) -> list[Line]:
    """What was asked of whom, and what came of it."""
    protocol = [str(episode.protocol[key]) for key in ("name", "policy") if episode.protocol.get(key)]
    lines = [Line("question", (), episode.question), Line("model", (), episode.model),
             Line("protocol", (), ", ".join(protocol) or "unnamed"), Line("status", (episode.status,), ""),
             Line("answer", () if episode.answer else ("no answer",), episode.answer or "")]
    return lines + [Line("fault", (), episode.fault)] * bool(episode.fault)


def outcome(turn: Turn) -> list[Line]:
    """What was made of a reply: verdicts, results, notices, near ties."""
    lines = [line for finding in turn.findings for line in (verdict(finding, turn.results), *claimed(finding))]
    lines = lines or [Line("verdict", ("no call",), "")]
    for result in turn.results:
        state = "ok" if result.ok else "failed" if result.ran else "refused"
        codes = result.codes if result.ran else ()  # of a refusal the verdict has said them
        badges = (state, *codes, *[f"{result.cut:,} characters cut"] * bool(result.cut))
        lines.append(Line(f"result of {result.call.name}" if result.call else "result", badges, result.text))
    return lines + [Line("notice", (), notice) for notice in turn.notices] + near_ties(turn)


def verdict(finding: Finding, results: list[Result]) -> Line:
    """The codes of a finding, its calls, and its message unless a result says the same."""
    said = any(result.text == f"Error: {finding.message}." for result in results)
    words = [", ".join(map(as_code, finding.calls)), "" if said else finding.message]
    return Line("verdict", finding.codes or ("ok",), ": ".join(filter(None, words)))


def claimed(finding: Finding) -> list[Line]:
    """What the model wrote as the result beside its calculation, and whether it is; no line without a claim."""
    expressions = [call.arguments["expression"] for call in finding.calls if finding.claim is not None]
    return [Line("claim", (CLAIMS[claim_holds(expression, finding.claim)],), finding.claim)
            for expression in expressions]


def as_code(call: Call) -> str:
    """A call as Python would write it, with its values in JSON."""
    values = [f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in call.arguments.items()]
    return f"{call.name}({', '.join(values)})"


def near_ties(turn: Turn) -> list[Line]:
    """Which tokens of the reply another machine's rounding might have chosen otherwise; no line if none."""
    numbers = [number for number, gap in enumerate(turn.gaps, 1) if gap < NEAR_TIE]
    named = [f"{number}{' (cut off)' * (number > turn.reply_tokens)}" for number in numbers]
    which = f"number{'s' * (len(numbers) > 1)} {', '.join(named)}"
    return [Line("near ties", (), f"{len(numbers)} of the tokens that the model wrote, {which}")] * bool(numbers)


def costs(number: int, turn: Turn) -> str:
    """A turn's first line: its number and its tokens."""
    kept = f", {turn.reply_tokens:,} kept" if turn.reply_tokens < turn.generated_tokens else ""
    return (f"Turn {number}: prompt of {turn.prompt_tokens:,} tokens, {turn.fed_tokens:,} fed; "
            f"{turn.generated_tokens:,} generated, ended by {turn.stop_reason}{kept}")


def ledger(episode: Episode, seconds: bool = False) -> list[list[str]]:
    """Header, a row per turn, a total: the prompt's tokens, the new ones, those fed, and who wrote the prompt."""
    times = ["first token, seconds", "decode, seconds", "tools, seconds"] * seconds
    names = ["turn", "whole prompt", "new messages", "fed with cache", "generated", *WRITERS, *times]
    rows = [[turn.prompt_tokens, len(turn.spans) - turn.reply_tokens, turn.fed_tokens, turn.generated_tokens,
             *(turn.by_writer.get(writer, 0) for writer in WRITERS),
             *[turn.first_token_seconds, turn.decode_seconds, turn.tool_seconds] * seconds] for turn in episode.turns]
    total = [sum(filter(None, column)) for column in zip(*rows, strict=True)] or [0] * (len(names) - 1)
    return [names, *([str(number), *map(_number, row)] for number, row in enumerate(rows, 1)),
            ["total", *map(_number, total)]]


def _number(value: int | float | None) -> str:
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def saving(episode: Episode) -> str:
    """What the prefix cache saved, in a sentence."""
    whole, fed = (sum(getattr(turn, name) for turn in episode.turns) for name in ("prompt_tokens", "fed_tokens"))
    return f"Without a cache the loop would have fed {whole:,} prompt tokens; this one fed {fed:,}."


def parts(turn: Turn) -> tuple[list[Span], list[Span]]:
    """The tokens that a turn added to the prompt, and those of its reply."""
    start = len(turn.spans) - turn.reply_tokens
    return turn.spans[:start], turn.spans[start:]


def pieces(turn: Turn, limit: int) -> list[tuple[str, str]]:
    """(writer, text) of what a turn added to the prompt; of very many, the first and the last `limit` / 2."""
    runs = groupby(parts(turn)[0], key=lambda span: span.writer)
    texts = [(writer, "".join(span.text for span in run)) for writer, run in runs]
    note = ("not shown", f"{len(texts) - limit:,} more pieces")
    return [*texts[:limit // 2], note, *texts[-limit // 2:]] if len(texts) > limit else texts


def reply_text(turn: Turn) -> str:
    """The reply with the token that ended it, if that was kept."""
    ended = turn.stop_reason == "eos" and turn.reply_tokens == turn.generated_tokens
    return turn.text + (turn.spans[-1].text if ended else "")


def shown(text: str, limit: int = PIECE, line_break: str = "⏎") -> str:
    """At most the first `limit` characters, how many more there are, and all that hides made visible, as [U+202E]."""
    left_out = f" … [{len(text) - limit:,} more characters, not shown]" if len(text) > limit else ""
    text = text[:limit]
    hidden = {character for character in set(text) - KEPT if unicodedata.category(character) in HIDDEN}
    spelt = {ord(character): f"[U+{ord(character):04X}]" for character in hidden}
    return text.translate(VISIBLE | spelt | {ord("\n"): line_break}) + left_out


# --- as HTML ----------------------------------------------------------------

def as_html(episode: Episode, title: str = "", seconds: bool = False, most: int = 1) -> str:
    """The episode as HTML; a bar of full width stands for a prompt of `most` tokens."""
    name = f"<p><b>{_code(title, LONG, PROSE)}</b></p>" if title else ""
    rows = "".join(f'<tr><th scope="row" style="text-align:left;vertical-align:top">{line.label}</th>'
                   f'<td style="text-align:left">{_said(line, WHOLE)}</td></tr>' for line in header(episode))
    turns = "".join(_html_turn(number, turn, most) for number, turn in enumerate(episode.turns, 1))
    return f"{name}<table><tbody>{rows}</tbody></table>{turns}{_html_ledger(episode, seconds)}"


def _html_turn(number: int, turn: Turn, most: int) -> str:
    added, reply = parts(turn)
    texts = pieces(turn, PIECES)
    short = sum(len(text) for _, text in texts) <= LONG
    prompt = "".join(_piece(writer, text, PIECE) for writer, text in texts)
    ids = f"<div>{_boxes(added)}</div><div>{_boxes(reply, turn.gaps)}</div>"
    return "".join([
        f'<div style="{SECTION}"><b>{_escaped(costs(number, turn))}</b>', _bar(turn, most),
        _fold(f"added to the prompt: {len(added):,} tokens", f'<pre style="{PRE}">{prompt}</pre>', short),
        f'<pre style="{PRE}">{_piece("model", reply_text(turn), WHOLE)}</pre>',
        *map(_html_line, outcome(turn)),
        _fold(f"token ids: {len(added):,} in the prompt, {len(reply):,} in the reply", ids), "</div>"])


def _html_line(line: Line) -> str:
    label = f"<small>{_code(line.label, PIECE, PROSE)}:</small>"
    return f'<div style="line-height:1.6">{label} {_said(line, PIECE)}</div>'


def _html_ledger(episode: Episode, seconds: bool) -> str:
    names, *rows = ledger(episode, seconds)
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(f'<tr><th scope="row">{first}</th><td>{"</td><td>".join(cells)}</td></tr>'
                   for first, *cells in rows)
    table = f'<table style="text-align:right"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="{SECTION};overflow-x:auto">{table}</div><div>{saving(episode)}</div>'


def _bar(turn: Turn, most: int) -> str:
    inner = "".join(f'<span style="width:{100 * turn.by_writer.get(writer, 0) / max(most, 1):.1f}%;'
                    f'background:{COLOURS[writer]}"></span>' for writer in WRITERS)
    return f'<div style="display:flex;height:.4em;margin:.3em 0">{inner}</div>'


def _said(line: Line, limit: int) -> str:
    """Badges and text; a long text is folded where `limit` is that of a piece."""
    badges = " ".join(map(_badge, line.badges))
    inner = _code(line.text, limit, CODE if line.badges and limit == PIECE else PROSE)
    if limit == PIECE and len(line.text) > LONG:
        return _fold(f"{badges} {_code(line.text[:60], LONG, CODE)} … ({len(line.text):,} characters)", inner)
    return " ".join(filter(None, [badges, inner * bool(line.text)]))


def _badge(word: str) -> str:
    tone = TONES.get(word, "#E69F00")
    style = f"border:1px solid {tone};border-radius:.7em;padding:0 .5em;background:{tone}30"
    return f'<b style="{style}">{_escaped(word)}</b>'


def _fold(summary: str, inner: str, is_open: bool = False) -> str:
    return f"<details{' open' * is_open}><summary>{summary}</summary><div>{inner}</div></details>"


def _code(text: str, limit: int, style: str) -> str:
    return f'<code style="{style}">{_escaped(text, limit)}</code>'


def _piece(writer: str, text: str, limit: int) -> str:
    """A stretch of text with its writer, control tokens in bold, line breaks visible and kept."""
    marked = CONTROL.sub(r"<b>\g<0></b>" if writer in ("template", "model") else r"\g<0>", _escaped(text, limit))
    colour, after = COLOURS.get(writer, "#999999"), "" if text.endswith("\n") else " "
    return (f'<span style="background:{colour}30;border-bottom:1px solid {colour}">'
            f'<small style="opacity:.75">{writer}:</small> {marked}</span>{after}')


def _escaped(text: str, limit: int = PIECE, line_break: str = "⏎\n") -> str:
    """Visible, escaped, and set apart from the direction of what stands around it."""
    safe = escape(shown(text, limit, line_break))
    return safe if safe.isascii() else f"<bdi>{safe}</bdi>"


def _boxes(spans: list[Span], gaps: Iterable[float] = ()) -> str:
    """Tokens with their ids, a writer's run at a time; near ties are named."""
    ties = {number for number, gap in enumerate(gaps) if gap < NEAR_TIE}
    runs = groupby(enumerate(spans[:BOXES]), key=lambda item: item[1].writer)
    shown = "".join(_box_run(writer, [(span, number in ties) for number, span in run]) for writer, run in runs)
    return shown + (f" … {len(spans) - BOXES:,} more tokens" if len(spans) > BOXES else "")


def _box_run(writer: str, run: list[tuple[Span, bool]]) -> str:
    start = f'<span style="background:{COLOURS[writer]}30">'
    boxes = [f"{start}{'<mark>near tie</mark> ' * is_tie}{_escaped(span.text.replace(' ', '·'), LONG, '⏎') or '…'}"
             f"<sub>{span.id}</sub></span>" for span, is_tie in run]
    return f'<code style="{CODE};line-height:1.9"><small>{writer}:</small> {" ".join(boxes)}</code> '
