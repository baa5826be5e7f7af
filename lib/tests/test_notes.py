"""The notes: paragraphs that can be found alone, and no figure in digits that isn't computed or read anew."""

from __future__ import annotations

import importlib
from functools import lru_cache

import pytest

from lib.machinery import notebooks
from lib.passages import paragraphs, pieces
from lib.tests.figures import check, quoted
from lib.tests.figures.check import Entry, Result, figure_faults, form_faults, twins
from lib.tests.figures.quoted import ARTICLE, CHAPTER, QUOTED
from lib.tests.figures.read import QWEN, NotReady, count, vietnamese

NOTES = notebooks.ROOT / "data" / "notes"
CHAPTERS = [f"en/{number}" for number in range(1, 4)] + [f"vi/{number}" for number in range(1, 9)]
ENOUGH = {"en": 123, "vi": 120}  # paragraphs, as many as the text has that is measured again; pieces
EACH = pytest.mark.parametrize("chapter", CHAPTERS)


def raw(chapter: str) -> bytes:
    """The bytes of a chapter, such as 'en/1'; skips where it is not written yet."""
    found = sorted(NOTES.glob(f"{chapter}-*.md"))
    if not found:
        pytest.skip(f"the chapter {chapter} is not written yet")
    assert len(found) == 1, found
    return found[0].read_bytes()


@lru_cache
def checked(chapter: str) -> Result:
    """What the check of a chapter's figures found."""
    text, table = (
        raw(chapter).decode("utf-8"),
        importlib.import_module(f"lib.tests.figures.{chapter.replace('/', '_')}"),
    )
    return figure_faults(text, table.FIGURES, chapter[:2])


# --- the notes --------------------------------------------------------------


@EACH
def test_the_form_of_a_chapter(chapter):
    assert form_faults(raw(chapter), chapter[:2]) == []


@EACH
@pytest.mark.model
def test_every_figure_is_computed(chapter):
    assert checked(chapter).faults == []


@EACH
@pytest.mark.model
def test_no_figure_waits_for_an_optional_model(chapter):
    if held_up := checked(chapter).held_up:
        pytest.skip(f"not checked, for want of an optional model: {held_up}")


@pytest.mark.parametrize("language, cut", [("en", paragraphs), ("vi", paragraphs), ("vi", pieces)])
def test_there_are_enough_passages(language, cut):
    texts = [raw(chapter).decode() for chapter in CHAPTERS if chapter.startswith(language)]
    assert sum(len(cut(text)) for text in texts) >= ENOUGH[language]


def test_no_two_paragraphs_say_the_same():
    texts = [text for path in sorted(NOTES.glob("*/*.md")) for text in paragraphs(path.read_text(encoding="utf-8"))]
    assert twins(texts) == []


def test_quotations_hold_their_figures():
    assert [row for row in QUOTED if row[0] not in (ARTICLE, CHAPTER) or row[1] not in row[2]] == []


# --- the check itself: each fault is found ----------------------------------

WORD = ["", "one", "two", "three", "four", "five"]
TEXT = (
    "# A title\n\n## A part\n\nThe word model has 5 letters. It stands in line 3 of\nthe page.\n\nNo figure here.\n"
)
LETTERS: Entry = ("The word model has {} letters", lambda: len(WORD[3]))
LINE: Entry = ("stands in line {} of the page", lambda: len(WORD[1]))
LONG = " ".join(f"w{chr(97 + number // 26)}{chr(97 + number % 26)}" for number in range(120))  # 120 words, 479 signs


def faults(*table: Entry, text: str = TEXT) -> list[str]:
    return figure_faults(text, list(table)).faults


def test_a_right_table_has_no_faults():
    result = figure_faults(TEXT, [LETTERS, LINE])
    assert result == Result([], [LETTERS[0], LINE[0]], [])


def test_a_figure_outside_the_table_is_named_with_its_sentence():
    assert faults(LETTERS) == ["no entry computes '3' in: It stands in line 3 of the page."]


def test_a_figure_in_a_heading_or_a_list_is_a_fault():
    text = TEXT.replace("A part", "A part of 7") + "\n- a list of 8\n"
    assert [fault[:23] for fault in faults(LETTERS, LINE, text=text)] == [
        "no entry computes '7' i",
        "no entry computes '8' i",
    ]
    assert any(
        "not in a paragraph" in fault for fault in faults(("a list of {}", lambda: len(LONG) // 60 + 1), text=text)
    )


@pytest.mark.parametrize("wrong", [4, 6, 55, "5.0", ""])
def test_a_wrong_value_is_a_fault(wrong):
    values = [wrong]
    found = faults((LETTERS[0], lambda: values[0]), LINE)
    assert (
        found[0].startswith("found 0 times instead of once: 'The word model") and "no entry computes '5'" in found[1]
    )


def test_part_of_a_number_is_not_the_number():
    text = TEXT.replace("5 letters", "1,525.5 letters")
    for fragment in ("{} letters", "5{} letters", "model has {}"):
        assert any("'1,525.5'" in fault for fault in faults((fragment, lambda: len(WORD[3])), LINE, text=text))


def test_a_fragment_that_occurs_twice_is_a_fault():
    text = TEXT + "\nAgain: the page. The word model has 5 letters, still.\n"
    assert faults(LETTERS, LINE, text=text)[0].startswith("found 2 times instead of once")
    within = TEXT.replace("It stands", "The word model has 5 letters. It stands")
    assert faults(LETTERS, LINE, text=within)[0].startswith("found 2 times instead of once")


@pytest.mark.parametrize(
    "expression",
    [5, "5", lambda: 5, lambda: "5", lambda: str(5), lambda: f"{5:,}", lambda: tuple([5])],
    ids=["int", "text", "literal", "text literal", "str", "f-string", "tuple"],
)
def test_a_literal_is_no_expression(expression):
    assert faults((LETTERS[0], expression), LINE)[0].startswith("there is nothing to compute")


def test_a_fragment_without_placeholder_computes_nothing():
    assert faults(("The word model has 5 letters", LETTERS[1]), LINE)[0].startswith("there is nothing to compute")


def test_an_expression_that_never_ran_is_a_fault():
    def unready():
        raise NotReady(f"{QWEN} is not ready")

    found = figure_faults(TEXT, [(LETTERS[0], unready), LINE])
    assert found.faults[0].startswith("never ran") and found.ran == [LINE[0]]
    assert faults((LETTERS[0], lambda: LETTERS[1]), LINE)[0].startswith("found 0 times")  # a function, not its value
    assert faults((LETTERS[0], lambda: (len(word) for word in WORD)), LINE)[0].startswith("found 0 times")


def test_every_expression_runs_once():
    calls: list[int] = []
    assert faults((LETTERS[0], lambda: calls.append(1) or len(WORD[3])), LINE) == [] and calls == [1]


def test_an_expression_that_raises_is_a_fault_and_hides_no_other():
    found = faults((LETTERS[0], lambda: WORD[9]), ("no such words {}", lambda: len(WORD)), LINE)
    assert [fault.split(" (")[0][:24] for fault in found] == [
        "the expression raised In",
        "found 0 times instead of",
        "no entry computes '5' in",
    ]


def test_a_wrong_number_of_values_is_a_fault():
    assert faults((LETTERS[0], lambda: (len(WORD[3]), len(WORD))), LINE)[0].startswith("2 values for 1 placeholders")


def test_an_optional_model_that_is_missing_holds_an_entry_up():
    def missing():
        raise NotReady("minilm is not ready")

    result = figure_faults(TEXT, [(LETTERS[0], missing), LINE])
    assert (result.faults, result.held_up) == ([], [LETTERS[0]])
    assert faults(("The word giraffe has {} letters", missing), LINE)[0].startswith("found 0 times")


def test_values_are_written_as_the_notes_write_them():
    text = "The file has 1,234,567 bytes and the id 1234567, in the form {1}.\n"
    number = int("1234567")
    table = [
        ("has {} bytes", lambda: number),
        ("the id {},", lambda: str(number)),
        ("{{{}}}", lambda: len(str(number)) // 7),
    ]
    assert faults(*table, text=text) == []


def test_vietnamese_figures_are_written_the_vietnamese_way():
    text = "Tệp có 1.234.567 byte, tức 1,2 MB.\n"
    number = int("1234567")
    table = [("có {} byte", lambda: number), ("tức {} MB", lambda: vietnamese(f"{number / 10**6:.1f}"))]
    assert figure_faults(text, table, "vi").faults == []
    assert figure_faults(text, table).faults[0].startswith("found 0 times")
    constant = ("tức {} MB", lambda: vietnamese("1.2"))
    assert figure_faults(text, [table[0], constant], "vi").faults[0].startswith("there is nothing to compute")


@pytest.mark.parametrize(
    "name", ["UTF-8", "GPT-2", "float32", "qwen2.5-coder-0.5b", "(Gage, 1994)", "Q4_K_M", "BM25"]
)
def test_names_and_years_need_no_entry(name):
    assert faults(text=f"Here is {name} in a sentence.") == []


@pytest.mark.parametrize("figure", ["in 1994", "0.5B", "U+1EC7", "-5", "x = 3", "`[81]`", "3rd", "10%"])
def test_other_figures_need_one(figure):
    assert faults(text=f"Here is {figure} in a sentence.")[0].endswith(f"in: Here is {figure} in a sentence.")


def test_a_quotation_names_its_text(monkeypatch):
    monkeypatch.setattr(quoted, "QUOTED", [(ARTICLE, "5", "in 5 letters")])
    entry = (LETTERS[0], lambda: quoted.quoted(ARTICLE, "5"))
    assert faults(entry, LINE)[0] == f"quotes {ARTICLE!r} without naming it: {LETTERS[0]!r}"
    assert faults(entry, LINE, text=TEXT.replace("The word", f"As *{ARTICLE}* says: The word")) == []
    assert "KeyError" in faults((LETTERS[0], lambda: quoted.quoted(CHAPTER, "5")), LINE)[0]


@pytest.mark.parametrize(
    "change, fault",
    [
        ((LONG, LONG + " more"), "121 words"),
        ((LONG, LONG.replace(" ", "")), "1 words"),
        ((LONG, LONG[:99]), "100 characters"),
        ((LONG, LONG.replace("w", "www", 110).replace(" ", "  ")), ""),
        ((LONG, LONG.replace(" ", " long")), "956 characters"),
        (("waa", "wẹ\u0302"), "not in NFC"),
        (("\n", "\r\n"), "a carriage return"),
        (("waa", "/home/me"), "a path of some machine"),
        (("waa", "C:\\x"), "a path of some machine"),
        (("waa", "a\u2014b"), "an em-dash"),
        (("## Part", "# Part"), "not exactly one title"),
        (("# Title", "Title"), "not exactly one title"),
        (("## Part", "### Part"), "no section"),
        ((".\n", "."), "not one line break at the end"),
        ((".\n", ".\n\n"), "not one line break at the end"),
    ],
)
def test_faults_of_form(change, fault):
    text = f"# Title\n\n## Part\n\n{LONG}.\n"
    assert form_faults(text.encode()) == []
    found = form_faults(text.replace(*change).encode())
    assert any(line.startswith(fault) for line in found) if fault else not found


def test_blocks_that_are_no_paragraphs_have_no_size():
    others = "- item\n\n```\ncode\n\nmore\n```\n\n| a | b |\n|---|---|\n| c | d |\n\n> said\n"
    text = f"# Title\n\n## Part\n\n{LONG}.\n\n{others}"
    assert form_faults(text.encode()) == [] and len(paragraphs(text)) == 1


def test_twins_share_most_of_their_words():
    other = LONG.upper().split()
    assert twins([LONG, " ".join(other)]) == [(LONG, " ".join(other))]  # capitals change nothing
    assert len(twins([LONG, " ".join(other[:80] + ["new"] * 40)])) == 1
    assert twins([LONG, " ".join(other[:60] + [f"n{i}" for i in range(60)])]) == []
    assert twins(["too short", "too short"]) == []


@pytest.mark.model
def test_a_real_tokenizer_is_read():
    text = TEXT.replace("5 letters", "3 tokens")
    entry = ("The word model has {} tokens", lambda: count(QWEN, "Xin chào"))
    assert faults(entry, LINE, text=text) == []
    assert check.written(count(QWEN, "Xin chào " * 1000)).count(",") == 1
