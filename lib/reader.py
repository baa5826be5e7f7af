"""A reply read for tool calls: where each candidate stands, what its JSON holds, and what is left as an answer.

The form that the chat template asks for is `<tool_call>{"name": …, "arguments": {…}}</tool_call>`. Models write it
with faults of every kind, so the text is walked from mark to mark, and JSON is decoded as JSON: a tag, brace or quote
inside a string is data.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from lib.replies import CLOSE, OPEN, SENTENCES, Call, Finding, Reply, is_candidate
from lib.strict_json import decode

MARK = re.compile(r"</?tool_call>|(?i:</?think(?:ing)?\s*>|</?tool_(?:response|result)>)")
END_OF_THINKING = re.compile(r"(?i)</think(?:ing)?\s*>")
FENCES = re.compile(r"(?:[\s\ufeff\u200b]|[`~]{3,}[\w-]*|[`~]{1,2}|(?<=[}\]]),|(?:json|tool_call)(?=\s+[\[{]))*")
BETWEEN = re.compile(r"[\s,]*(?=\{)|\s*")  # what may stand between two objects in one tag
OTHER_TAG = re.compile(r"(?P<sure>\[TOOL_CALLS?\]\s*[\[{]|<function=\w|<invoke name=|<tool_call\s+\w|<[|\uff5c]tool)"
                       r"|(?:<[^<>\s/][^<>]{0,40}>|(?<![\w/<])tool_call>)\s*(?=[\[{])")
CALL_START = re.compile(r"""\{{1,2}\s*['"](?:name|function|arguments|parameters)['"]""")
CALL_KEYS = re.compile(r"""['"](name|function|arguments|parameters)['"]\s*:""")
CALL_BEGUN = re.compile(r"""\{{1,2}\s*['"]?\w*['"]?\s*$""")
LIST_OPENED = re.compile(r"(?:\[\s*)?")

Check = Callable[[object], tuple[tuple[str, ...], str, Call | None]]  # a decoded value -> codes, sentence, call


def read(text: str, check: Check, lenient: bool, truncated: bool) -> Reply:
    """The reply `text` judged; `check` says of a decoded value whether it is a call that may run."""
    return _Reader(text, check, lenient, truncated).reply()


class _Reader:
    """Walks from mark to mark; what stands between them is prose, and `end` is where an invented result begins."""

    def __init__(self, text: str, check: Check, lenient: bool, truncated: bool):
        self.text, self.check, self.lenient, self.truncated = text, check, lenient, truncated
        self.end = len(text)
        self.findings: list[Finding] = []
        self.prose: list[str] = []
        self.since = 0  # pieces of prose that stood before the end of the last candidate

    def reply(self) -> Reply:
        """The whole text, judged."""
        if not self._bare(self.text):
            self._walk()
            prose = "".join(self.prose)
            if not any(map(is_candidate, self.findings)) and not self._other_tag(prose):
                self._bare(prose)
        self._note_trailing_text()
        return Reply(self.text[:self.end], tuple(self.findings), "".join(self.prose).strip())

    def _walk(self) -> None:
        place = 0
        while place < self.end:
            mark = MARK.search(self.text, place)
            self.prose.append(self.text[place:mark.start() if mark else self.end])
            place = self._after(mark) if mark else self.end

    def _after(self, mark: re.Match) -> int:
        """Deal with one mark; returns where to go on."""
        if mark[0] == OPEN:
            return self._tag(mark)
        if mark[0] == CLOSE and any(map(is_candidate, self.findings)) and "{" not in self.prose[-1]:
            self.prose.append(CLOSE)  # one too many after a call is text like any other
            return mark.end()
        if mark[0] == CLOSE:
            return self._add("wrong_tag", mark.start(), mark.end())
        if "tool_re" in mark[0].lower():
            self.end = mark.start()
            return self._add("fabricated_result", mark.start(), len(self.text))
        return self._thinking(mark)

    def _thinking(self, mark: re.Match) -> int:
        """Skip a thinking part; a closing tag alone makes everything before it thinking."""
        start, close = mark.start(), END_OF_THINKING.search(self.text, mark.start())
        if mark[0].startswith("</"):
            start, self.since, self.findings, self.prose = 0, 0, [], []
        end = close.end() if close else len(self.text)
        if OPEN in self.text[start:end]:
            self._add("call_in_thinking", start, end)
        alone = not self.since and not "".join(self.prose).strip() and self._bare(self.text[end:])
        return len(self.text) if alone else end

    def _tag(self, mark: re.Match) -> int:
        """Judge what follows an opening tag; returns where to go on."""
        values, place, code = [], mark.end(), ""
        while code != "bad_json" and (not values or self.text.startswith("{", place)):  # some write two in one tag
            value, place, fault = decode(self.text, place)
            values.append(value)
            place, code = BETWEEN.match(self.text, place).end(), fault if fault == "bad_json" else code or fault
        after = MARK.search(self.text, place)
        if CALL_START.search(self.text, place, after.start() if after else len(self.text)):
            code = "bad_json"  # a second object, but words between: neither runs
        if self.truncated and (after is None or place >= len(self.text)):
            return self._add("truncated", mark.start(), len(self.text))
        if code == "bad_json":
            return self._add(code, mark.start(), self._end_of_broken(mark.end()))
        closed = after is not None and after[0] == CLOSE
        trails = len(values) > 1 or (closed and after.start() > place)
        notes = ["unclosed_tag"] * (not closed) + ["trailing_text"] * trails
        return self._judge(values, notes, code, mark.start(), after.end() if closed else place)

    def _end_of_broken(self, start: int) -> int:
        """Where a call that is no JSON ends: a call that opens inside it belongs to it, since it may be quoted."""
        depth, end = 1, 0
        for mark in MARK.finditer(self.text, start):
            if mark[0] not in (OPEN, CLOSE) or (mark[0] == OPEN and depth < 1):
                return end or mark.start()
            depth += 1 if mark[0] == OPEN else -1
            end = mark.end() if depth < 1 else end
        return end or len(self.text)

    def _judge(self, values: list, notes: list[str], code: str, start: int, end: int) -> int:
        """One finding for the values of one candidate, which run all or not at all."""
        checked = [] if code else [self.check(value) for value in values]
        codes = [*notes, *filter(None, [code]), *(code for codes, _, _ in checked for code in codes)]
        message = SENTENCES[code] if code else "; ".join(sentence for _, sentence, _ in checked if sentence)
        return self._add(codes, start, end, message, tuple(call for _, _, call in checked if call))

    def _add(self, codes: str | list[str], start: int, end: int, message: str | None = None, calls=()) -> int:
        codes = [codes] if isinstance(codes, str) else codes
        message = SENTENCES[codes[0]] if message is None else message
        self.findings.append(Finding(start, end, tuple(dict.fromkeys(codes)), message, calls))
        self.since = len(self.prose) if is_candidate(self.findings[-1]) else self.since
        return end

    def _note_trailing_text(self) -> None:
        """Text after the last candidate is noted with it."""
        places = [place for place, finding in enumerate(self.findings) if is_candidate(finding)]
        if places and "".join(self.prose[self.since:]).strip():
            last = self.findings[places[-1]]
            self.findings[places[-1]] = replace(last, codes=tuple(dict.fromkeys([*last.codes, "trailing_text"])))

    def _other_tag(self, prose: str) -> bool:
        """Refuse a call under a tag that is not ours; False if there is none."""
        for mark in OTHER_TAG.finditer(prose):
            value = decode(prose, mark.end())[0]
            shaped = value is None and CALL_START.match(prose, LIST_OPENED.match(prose, mark.end()).end())
            if mark["sure"] or shaped or self._looks_like_call(value):
                self._add("wrong_tag", 0, self.end)
                return True
        return False

    def _bare(self, text: str) -> bool:
        """Judge a reply that is nothing but calls in JSON, in a code fence or not; False if it is something else."""
        values, place, code, start = [], 0, "", 0
        while code != "bad_json" and (place := FENCES.match(text, place).end()) < len(text):
            start = place
            value, place, fault = decode(text, place)
            values.append(value)
            code = fault if fault == "bad_json" else code or fault
        if code == "bad_json":
            junk = not text[start:].strip("}]);,. \n`~")  # a brace too many after a whole call
            values, code = (values[:-1], "") if len(values) > 1 and junk else (values, code)
        if not values or not self._are_calls(values, text, start, code):
            return False
        form = "fenced_json" if text.strip().startswith(("`", "~")) else "bare_json"
        if self.truncated:
            self._add("truncated", 0, self.end)
        elif not self.lenient:
            self._add(form, 0, self.end)
        else:
            self._judge(values, [form], code, 0, self.end)
        return True

    def _are_calls(self, values: list, text: str, start: int, code: str) -> bool:
        """Whether all values look like calls; of the last one, when it is no JSON, its beginning."""
        if code == "bad_json":
            keys = 1 if self.truncated else 2
            start = LIST_OPENED.match(text, start).end()
            if not CALL_START.match(text, start) or len(set(CALL_KEYS.findall(text, start))) < keys:
                return self.truncated and bool(CALL_BEGUN.match(text, start))
            values = values[:-1]
        return all(map(self._looks_like_call, values))

    def _looks_like_call(self, value) -> bool:
        if isinstance(value, list):
            return bool(value) and all(map(self._looks_like_call, value))
        if not isinstance(value, dict):
            return False
        if any(self._looks_like_call(value.get(key)) for key in ("function", "tool_calls")):  # as OpenAI wraps one
            return True
        return "arguments" in value or {"name", "parameters"} <= value.keys() or (
            value.keys() == {"name"} and "unknown_tool" not in self.check(value)[0])
