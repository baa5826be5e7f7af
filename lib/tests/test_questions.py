"""The questions about the notes hold, file by file, and the check of them finds each fault."""
from __future__ import annotations

import json
import random
import unicodedata
from collections import Counter
from fractions import Fraction

import pytest

from lib.calculator import calculate
from lib.evaluations import load_questions
from lib.grading import grade
from lib.machinery import notebooks
from lib.tests import questions
from lib.tests.questions import (
    COMMON,
    FIELDS,
    NAMES,
    RARE,
    Corpus,
    Notes,
    begins,
    faults,
    notes,
    numbers,
    plain,
    stands,
    value,
)

FOLDER = notebooks.ROOT / "data" / "questions"
NOTES = {language: notes(language) for language in ("en", "vi")}
COMMON_KINDS = "same words", "paraphrase", "name or number", "arithmetic"
FILES = {  # by file: the language of the notes it is about, its kinds, questions of each
    "notes-en": ("en", COMMON_KINDS, 12),
    "notes-vi": ("vi", (*COMMON_KINDS, "without accents", "decomposed"), 8),
    "notes-en-asked-in-vi": ("en", ("other language",), 10),
    "notes-vi-asked-in-en": ("vi", ("other language",), 10),
}
UNANSWERABLE = 12  # in each of the first two files
ROWS = {name: load_questions(name) for name in FILES if (FOLDER / f"{name}.jsonl").is_file()}
EACH = pytest.mark.parametrize("name", ROWS)
DRAWS = {  # seed of the draw, and how many passages each chapter had then
    "en": (1, {"1-text-into-tokens": 85, "2-tokens-through-the-model": 75, "3-why-it-is-fast-or-slow": 76}),
    "vi": (2, {"1-van-ban-thanh-token": 24, "2-ben-trong-mo-hinh": 24, "3-vi-sao-nhanh-hay-cham": 24, "4-lay-mau": 24,
               "5-huan-luyen": 24, "6-phuc-vu-nhieu-nguoi": 24, "7-luong-tu-hoa": 24, "8-trien-khai-endpoint": 24}),
}
DRAWN = {  # which places of the order drawn in a chapter have their question in a file, for the chapters in turn
    "notes-en": [range(16)] * 3, "notes-vi": [range(6)] * 8,
    "notes-en-asked-in-vi": [range(16, 20), range(16, 19), range(16, 19)],
    "notes-vi-asked-in-en": [range(6, 8)] * 2 + [range(6, 7)] * 6,
}


def orders(language: str) -> dict[str, list[int]]:
    """The order in which each chapter's passages were drawn: one draw over all in English, one each in Vietnamese."""
    seed, sizes = DRAWS[language]
    draw = random.Random(seed)
    return {chapter: (draw if language == "en" else random.Random(f"{seed} {chapter}")).sample(range(size), size)
            for chapter, size in sizes.items()}


def gold(name: str) -> list[str]:
    """The first passage of each question of a file, in order."""
    return [row["gold_passages"][0] for row in ROWS[name] if row["gold_passages"]]


@EACH
def test_the_questions_hold(name):
    assert faults(ROWS[name], NOTES[FILES[name][0]]) == []


@EACH
def test_there_are_enough_of_each_kind(name):
    _, kinds, each = FILES[name]
    wanted = dict.fromkeys(kinds, each) | ({"unanswerable": UNANSWERABLE} if len(kinds) > 1 else {})
    assert Counter(row["kind"] for row in ROWS[name]) == wanted


@EACH
def test_a_question_is_asked_in_the_language_of_its_file(name):
    language = name[-2:]
    assert {row["language"] for row in ROWS[name]} == {language}


@pytest.mark.parametrize("name", [name for name in ROWS if len(FILES[name][1]) > 1])
def test_every_chapter_is_asked_about_in_every_kind(name):
    language, kinds, _ = FILES[name]
    for chapter in {key.split("/")[0] for key in NOTES[language].texts}:
        asked = [row for row in ROWS[name] if row["gold_passages"] and row["gold_passages"][0].startswith(chapter)]
        sections = {NOTES[language].sections[row["gold_passages"][0]] for row in asked}
        count = Counter(row["kind"] for row in asked)
        assert set(count) == set(kinds) and max(count.values()) - min(count.values()) <= 1, (chapter, count)
        assert len(sections) >= min(6, len(asked) // 2), (chapter, sections)


@pytest.mark.parametrize("language", NOTES)
def test_no_passage_has_two_questions(language):
    asked = [key for name in ROWS if FILES[name][0] == language for key in gold(name)]
    assert [key for key, count in Counter(asked).items() if count > 1] == []


@EACH
def test_the_draw_can_be_repeated(name):
    """The file keeps the order of the draw; it can be repeated while the chapters have as many passages as then."""
    language = FILES[name][0]
    sizes = DRAWS[language][1]
    now = Counter(key.split("/")[0] for key in NOTES[language].texts)
    if now != sizes:
        pytest.skip(f"the chapters now have {dict(now)} passages, so ids have moved since the draw from {sizes}")
    assert gold(name) == [f"{chapter}/{order[place]}" for (chapter, order), places in
                          zip(orders(language).items(), DRAWN[name], strict=True) for place in places]


@EACH
def test_the_file_is_plain(name):
    raw = (FOLDER / f"{name}.jsonl").read_bytes()
    assert b"\r" not in raw and raw.endswith(b"}\n") and b"\\u" not in raw
    assert [json.dumps(row, ensure_ascii=False) for row in ROWS[name]] == raw.decode("utf-8").splitlines()


@EACH
def test_the_readme_has_the_numbers(name):
    text = plain((FOLDER / "README.md").read_text(encoding="utf-8"))
    for said in (f"seed {DRAWS[FILES[name][0]][0]}", f"`{name}.jsonl` | {len(ROWS[name])},"):
        assert said in text


# --- the core questions of the agent ------------------------------------------

AGENT = load_questions("agent")
REFERENCES = [row for row in AGENT if "file" in row]
SUMS = {row["id"]: row for row in AGENT if "file" not in row}


def test_the_questions_about_the_notes_are_drawn_with_a_seed():
    answered = [row["id"] for row in ROWS["notes-en"] if row["gold_passages"] and row["kind"] != "arithmetic"]
    drawn = random.Random(3).sample(answered, 6)
    assert REFERENCES == [{"id": name, "file": "notes-en"} for name in drawn] and AGENT[:6] == REFERENCES


@pytest.mark.parametrize("name", SUMS)
def test_a_calculation_has_its_numbers_and_its_value(name):
    row, number = SUMS[name], Fraction(SUMS[name]["gold"]["number"])
    assert set(row) == FIELDS | {"expression", "self_contained"} and row["self_contained"] is True
    assert (row["language"], row["kind"], row["gold_passages"]) == ("en", "arithmetic", [])
    assert value(row["expression"]) == number == Fraction(row["answer"]) == calculate(row["expression"]).value
    assert numbers(row["expression"]) <= numbers(row["question"].replace("%", "")) | {100}
    assert grade(row["answer"], row["gold"]) == "correct" and row["question"][-1] in "?."
    assert row["id"] not in {each["id"] for rows in ROWS.values() for each in rows}


def test_the_calculations_are_of_the_chapters_kinds_and_one_is_worded_twice():
    assert [*SUMS] == ["percentage", "difference-compute", "difference-what-is", "product-of-three"]
    one, other = SUMS["difference-compute"], SUMS["difference-what-is"]
    assert one["question"].removeprefix("Compute ").rstrip(".") == one["expression"]
    assert other["question"].removeprefix("What is ").rstrip("?") == other["expression"] == one["expression"]
    assert one["gold"] == other["gold"] and all(len(part) == 6 for part in one["expression"].split(" - "))
    assert "%" in SUMS["percentage"]["question"] and SUMS["product-of-three"]["expression"].count("*") == 2
    theirs = {2450, 103244, 101644, 1500, 32, 128}  # the chapter's own numbers
    assert not theirs & {each for row in SUMS.values() for each in numbers(row["expression"])}


def test_the_file_of_the_agent_is_plain_and_described():
    raw = (FOLDER / "agent.jsonl").read_bytes().decode("utf-8")
    assert [json.dumps(row, ensure_ascii=False) for row in AGENT] == raw.splitlines() and raw.endswith("}\n")
    text = plain((FOLDER / "README.md").read_text(encoding="utf-8"))
    assert f"`agent.jsonl` | {len(AGENT)}," in text and "seed 3" in text


# --- the check itself: each fault is found ----------------------------------

TOY: Corpus = {
    "1-toy/0": "A heron waits in shallow water. It eats 12 fish a day, 3 of them before noon, and sleeps on one leg.",
    "1-toy/1": "A bakery opens at dawn. Its oven holds 40 loaves, and 1,250 are sold in a week of frost.",
    "1-toy/2": "The last tram leaves the harbour at night and reaches the depot within 25.5 minutes.",
}
NUMBER_GOLD = {"number": "40", "unit": None, "tolerance": "0"}
TEXT_GOLD = {"text": ["one leg"], "rejected": ["both legs"]}


def toy(like: str = "same words", **changes) -> dict:
    """A question about the toy notes that is right, but for the changes."""
    rows = {
        "same words": ("How does the heron of the shallow water sleep, which waits?", 0, "on one leg", TEXT_GOLD),
        "paraphrase": ("How many breads fit at the same moment?", 1, "40 loaves", NUMBER_GOLD),
        "name or number": ("How many loaves does the oven hold?", 1, "holds 40", NUMBER_GOLD),
        "arithmetic": ("How many fish does the heron eat after noon?", 0, "12 fish", NUMBER_GOLD | {"number": "9"}),
    }
    if like == "unanswerable":
        row = {"question": "What does a loaf cost?", "gold_passages": [], "answer": None, "gold": None,
               "absent": ["cent", "euro"]}
    else:
        question, number, answer, gold = rows[like]
        row = {"question": question, "gold_passages": [f"1-toy/{number}"], "answer": answer, "gold": gold}
    row |= {"id": "toy", "language": "en", "kind": like} | ({"expression": "12 - 3"} if like == "arithmetic" else {})
    return {key: each for key, each in (row | changes).items() if each is not ...}


def toy_faults(*rows: dict, texts: Corpus = TOY) -> list[str]:
    return faults(list(rows), Notes("en", texts, {}, "\n".join(texts.values()), frozenset(COMMON | NAMES)))


@pytest.mark.parametrize("kind", ["same words", "paraphrase", "name or number", "arithmetic", "unanswerable"])
def test_a_right_question_has_no_faults(kind):
    assert toy_faults(toy(kind)) == []


@pytest.mark.parametrize("like, changes", [
    ("same words", {"gold_passages": ["1-toy/0", "1-toy/2"]}),
    ("arithmetic", {"self_contained": True}),
    ("arithmetic", {"question": "A heron eats 12 fish, 3 before noon: how many after?", "self_contained": True}),
])
def test_further_passages_and_questions_that_need_none_are_right(like, changes):
    assert toy_faults(toy(like, **changes)) == []


@pytest.mark.parametrize("like, changes, said", [
    ("same words", {"kind": "trick"}, "the kind 'trick' is not one of"),
    ("same words", {"answer": ...}, "its fields differ from the known ones in answer"),
    ("same words", {"hint": "leg"}, "its fields differ from the known ones in hint"),
    ("same words", {"expression": "1"}, "its fields differ from the known ones in expression"),
    ("unanswerable", {"absent": ...}, "its fields differ from the known ones in absent"),
    ("same words", {"id": "Two Words"}, "its id is no short kebab-case"),
    ("same words", {"language": "fr", "english": "How?"}, "its language is 'fr'"),
    ("same words", {"language": "vi"}, "its fields differ from the known ones in english"),
    ("same words", {"question": "The heron waits in shallow water"}, "it doesn't end as a question does"),
    ("same words", {"question": "Does the  heron wait?"}, "it doesn't end as a question does"),
    ("same words", {"answer": "e\u0323"}, "a text is not in NFC"),
    ("same words", {"gold": None}, "it hasn't a passage, an answer and"),
    ("same words", {"gold_passages": []}, "it hasn't a passage, an answer and"),
    ("same words", {"gold_passages": ["1-toy/0", "1-toy/0"]}, "it has a passage twice"),
    ("same words", {"gold_passages": ["1-toy/1", "1-toy/0"]}, "should stand in 1-toy/1 alone and stands now in"),
    ("same words", {"gold_passages": ["1-toy/0", "1-toy/9"]}, "there is no passage 1-toy/9"),
    ("same words", {"self_contained": True}, "its fields differ from the known ones in self_contained"),
    ("arithmetic", {"self_contained": False}, "its self_contained is not true"),
    ("arithmetic", {"question": "A heron eats 12 fish, 3 before noon: how many after?"}, "it has no self_contained"),
    ("paraphrase", {"gold_passages": ["1-toy/1", "1-toy/2"], "question": "How many reach the depot at night?"},
     "more than 1 content word with its passage: depot"),
    ("same words", {"answer": ""}, "it hasn't a passage, an answer and"),
    ("unanswerable", {"answer": "cheap"}, "an unanswerable question has no passage"),
    ("unanswerable", {"gold_passages": ["1-toy/1"]}, "an unanswerable question has no passage"),
    ("same words", {"gold_passages": ["1-toy/9"]}, "there is no passage 1-toy/9"),
    ("same words", {"gold_passages": ["1-toy/1"]}, "and stands now in 1-toy/0"),
    ("same words", {"answer": "two legs"}, "and stands nowhere in the notes"),
    ("same words", {"answer": "one l"}, "and stands nowhere in the notes"),
    ("same words", {"answer": "A"}, "and stands now in 1-toy/0, 1-toy/1"),
    ("name or number", {"answer": "250"}, "and stands nowhere in the notes"),
    ("name or number", {"answer": "25", "gold_passages": ["1-toy/2"]}, "and stands nowhere in the notes"),
    ("same words", {"gold": {"text": [], "rejected": []}}, "its gold has no texts that count"),
    ("same words", {"gold": {"text": [" "], "rejected": []}}, "its gold has no texts that count"),
    ("same words", {"gold": {"text": ["two legs"], "rejected": []}}, "would not be right by its own gold"),
    ("same words", {"gold": {"text": ["leg"], "rejected": ["one"]}}, "would not be right by its own gold"),
    ("same words", {"gold": {"texts": ["leg"]}}, "its gold has the fields texts"),
    ("name or number", {"gold": NUMBER_GOLD | {"number": "forty"}}, "is no number as text"),
    ("name or number", {"gold": NUMBER_GOLD | {"number": "1,250"}}, "is no number as text"),
    ("name or number", {"gold": NUMBER_GOLD | {"tolerance": "1"}}, "can't be meant so"),
    ("name or number", {"gold": NUMBER_GOLD | {"unit": "a day"}}, "can't be meant so"),
    ("name or number", {"gold": NUMBER_GOLD | {"number": "41"}}, "is not the number 41"),
    ("name or number", {"answer": "oven holds"}, "is not the number 40"),
    ("arithmetic", {"gold": TEXT_GOLD, "answer": "one leg"}, "the result of a calculation is a number"),
    ("arithmetic", {"expression": "12 - 4"}, "stands neither in the passage nor in the question"),
    ("arithmetic", {"expression": "12 + 3"}, "12 + 3 is not 9"),
    ("arithmetic", {"answer": "a heron waits"}, "its answer holds no operand"),
    ("arithmetic", {"expression": "12 * 3 / 12", "gold": NUMBER_GOLD | {"number": "3"}}, "can be copied from"),
    ("paraphrase", {"question": "How many loaves does the oven hold?"}, "more than 1 content word with its passage"),
    ("paraphrase", {"question": "How many go into ovens at other bakeries?"}, "bakeries, ovens"),
    ("same words", {"question": "How does that bird rest?"}, "it has too few words of its passage"),
    ("unanswerable", {"absent": ["cent"]}, "in two or three strings"),
    ("unanswerable", {"absent": ["cent", "euro", "penny", "pound"]}, "in two or three strings"),
    ("unanswerable", {"absent": ["cent", "HERON"]}, "since they contain 'HERON'"),
    ("unanswerable", {"absent": ["cent", "minute"]}, "since they contain 'minute'"),
    ("unanswerable", {"absent": ["cent", " "]}, "since they contain ' '"),
])
def test_each_fault_is_said(like, changes, said):
    found = toy_faults(toy(like, **changes))
    assert found and found[0].startswith(f"{changes.get('id', 'toy')}: ") and any(said in fault for fault in found)


VIETNAMESE = Notes("vi", {
    "1-do/0": "Con diệc đứng trong vùng nước cạn. Mỗi ngày diệc ăn 1.250 con cá, nặng 2,5 kg, rồi ngủ trên một chân.",
    "1-do/1": "Lò bánh mở cửa lúc rạng sáng và nướng bốn mươi ổ một mẻ.",
}, {}, "diệc bánh", frozenset({"con", "một", "lúc"}))
DIEC = {"id": "diec", "language": "vi", "kind": "same words", "question": "Con diệc đứng trong nước cạn ngủ thế nào?",
        "english": "How does the heron sleep?", "gold_passages": ["1-do/0"], "answer": "trên một chân",
        "gold": {"text": ["một chân"], "rejected": ["hai chân"]}}
WEIGHT = {"question": "Cá nặng bao nhiêu?", "kind": "name or number", "answer": "2,5 kg",
          "gold": {"number": "2.5", "unit": "kg", "tolerance": "0"}}


@pytest.mark.parametrize("changes", [
    {}, WEIGHT,
    {"kind": "paraphrase", "question": "Loài chim ấy nghỉ ngơi theo tư thế gì?"},
    {"kind": "without accents", "question": "Con diec dung trong nuoc can ngu the nao?"},
    {"kind": "decomposed", "question": unicodedata.normalize("NFD", DIEC["question"])},
    {"kind": "other language", "language": "en", "question": "How does the heron sleep?", "english": ...},
    {"kind": "arithmetic", "question": "Hai ngày diệc ăn bao nhiêu con cá?", "answer": "1.250 con",
     "gold": {"number": "2500", "unit": None, "tolerance": "0"}, "expression": "2 * 1250"},
])
def test_a_right_question_about_vietnamese_notes(changes):
    row = {key: value for key, value in (DIEC | changes).items() if value is not ...}
    assert faults([row], VIETNAMESE) == []


@pytest.mark.parametrize("changes, said", [
    ({"english": ...}, "its fields differ from the known ones in english"),
    ({"english": "How so"}, "its English doesn't end as a question does"),
    ({"question": unicodedata.normalize("NFD", DIEC["question"])}, "a text is not in NFC"),
    ({"kind": "decomposed"}, "it is not decomposed"),
    ({"kind": "decomposed", "question": "Con chim?"}, "it is not decomposed"),
    ({"kind": "without accents"}, "it has accents"),
    ({"kind": "without accents", "question": "Loai chim ay nghi the nao?"}, "it has too few words of its passage"),
    ({"kind": "decomposed", "question": unicodedata.normalize("NFD", "Loài ấy ngủ à?")}, "it has too few words"),
    ({"kind": "paraphrase"}, "shares more than 2 content words with its passage: cạn, diệc, ngủ, nước, trong, đứng"),
    (WEIGHT | {"gold": WEIGHT["gold"] | {"number": "25"}}, "its answer '2,5 kg' is not the number 25"),
    (WEIGHT | {"answer": "5 kg"}, "and stands nowhere in the notes"),
])
def test_each_fault_about_vietnamese_notes_is_said(changes, said):
    row = {key: value for key, value in (DIEC | changes).items() if value is not ...}
    assert any(said in fault for fault in faults([row], VIETNAMESE)), faults([row], VIETNAMESE)


def test_words_that_stand_in_many_passages_are_common():
    texts = {word: f"mô hình {word}" for word in ("đọc", "viết", "nói", "nghe", "nhìn", "đi", "ăn")}
    assert questions.often(texts) == {"mô", "hình"}


def test_an_edit_that_moves_the_passages_is_said_with_the_new_place():
    moved = {f"1-toy/{number}": text for number, text in enumerate(["A new paragraph.", *TOY.values()])}
    assert toy_faults(toy(), texts=moved)[0] == (
        "toy: its answer 'on one leg' should stand in 1-toy/0 alone and stands now in 1-toy/1")
    assert toy_faults(toy("name or number"), texts=TOY | {"1-toy/3": "A shop that HOLDS\n40 of them."}) == [
        "toy: its answer 'holds 40' should stand in 1-toy/1 alone and stands now in 1-toy/1, 1-toy/3"]


def test_a_question_asked_twice_is_said():
    again = toy(id="other", question="how does the Heron of the shallow water sleep - which waits?")
    assert toy_faults(toy(), again) == [
        "toy: another question has the same question", "other: another question has the same question"]
    assert len(toy_faults(toy(), toy("paraphrase"))) == 2  # the same id


def test_the_words_common_to_all_passages_are_not_rare():
    many = TOY | {f"2-toy/{number}": TOY["1-toy/0"].replace("on one leg", "") for number in range(RARE)}
    assert "no rare one: heron, shallow, waits, water" in toy_faults(toy(), texts=many)[0]


def test_whole_words():
    assert stands("BỆNH viện", "the be\u0323\u0302nh vie\u0323\u0302n, closed") and not stands("viện", "việnn")
    assert stands("12", "12.") and stands("3", "1, 2, 3, and on")
    assert not any(stands(answer, "12.5 or 1,440") for answer in ("12", "5", "1", "440", "2.5"))
    assert begins("Re", "a relu") and not begins("lu", "a relu")


def test_numbers_and_values():
    assert numbers("Two of 1,250 at 0.5, `7`; qwen2.5 and 3rd") == {1250, Fraction(1, 2), 7}
    assert numbers("1.250 con, 2,5 kg", "vi") == {1250, Fraction(5, 2)} and numbers("hai ba", "vi") == {2, 3}
    assert numbers("Three of four") == {3, 4} and numbers("none") == numbers("") == set()
    assert value("12 * 5 + 3") == 63 and value("0.1 * 0.3") == Fraction(3, 100)
    for text in ("2 ** 9", "x + 1", "abs(1)", "'a'", "True"):
        with pytest.raises(ValueError, match="no arithmetic"):
            value(text)
