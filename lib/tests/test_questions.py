"""The questions about the notes: each answer stands in its passage and nowhere else, and each kind is what it says.

Nothing here searches: no question was changed for what a retriever finds, and no test looks at it.
"""
from __future__ import annotations

import ast
import json
import operator
import random
import re
import unicodedata
from collections import Counter
from fractions import Fraction

import pytest

from lib.evaluations import load_questions
from lib.machinery import notebooks
from lib.passages import passages
from lib.retrieval import words

NOTES = notebooks.ROOT / "data" / "notes"
READ = "same words", "paraphrase", "name or number"
ANSWERABLE = (*READ, "arithmetic")
KINDS = (*ANSWERABLE, "unanswerable")
FIELDS = {"id", "language", "kind", "question", "gold_passages", "answer", "gold"}
MORE = {"arithmetic": {"expression"}, "unanswerable": {"absent"}}  # fields that only these kinds have
ALONE = "self_contained"  # true for a calculation that needs no passage; other questions don't have the field
SEED, DRAWN, SIZES = 1, 16, {  # how many passages of each chapter were drawn, and how many it had then
    "1-text-into-tokens": 85, "2-tokens-through-the-model": 75, "3-why-it-is-fast-or-slow": 76}
SECTIONS = 6  # sections of each chapter that have a question, at least
SHARED = 1    # content words that a paraphrase has in common with its passage, at most, whatever their endings
OWN = 3       # content words that a question in the same words has in common with its passage, at least, and one is
RARE = 5      # rare: it stands in at most so many passages of the notes
COMMON = set("""
    a about after again all also although always among an and another any anybody are as at away be because
    become been before being between both but by can come could did do does done down during each either else
    ever every few fewer find first for from get give given gives had has have having he her his how if in
    instead into is it its itself just last less made make makes making many may merely mere might more most
    much must need never no none not nothing now of off often on once one only or other others out over own per
    put rather really same say she should since so some somebody someone something still such take than that the
    their them themselves then there these they thing this those three through thus to too two up upon use used
    very was way we well were what when where whether which while who whom whose why will with without would you
    your
""".split())
NAMES = {"qwen2", "5", "coder", "0", "5b", "1", "smollm2", "135m", "minilm"}  # the models: there is no other word
NUMBERS = {word: value for value, word in enumerate(
    "zero one two three four five six seven eight nine ten eleven twelve".split())}
NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)")

Corpus = dict[str, str]  # the text of each passage by its id, such as '1-text-into-tokens/12'


def corpus(language: str) -> tuple[Corpus, dict[str, str]]:
    """The passages of the notes in a language, and the section of each, by ids counted from 0 as `passages` does."""
    found = [part for path in sorted((NOTES / language).glob("*.md"))
             for part in passages(path.read_text(encoding="utf-8"), path.stem)]
    ids = [f"{part.document}/{part.number}" for part in found]
    return dict(zip(ids, (part.text for part in found), strict=True)), {
        key: part.heading for key, part in zip(ids, found, strict=True)}


def plain(text: str) -> str:
    """A text as it is compared: NFC, without regard to capitals, white space as one space."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def stands(answer: str, text: str) -> bool:
    """Whether the answer stands in the text as whole words, and not as part of a longer number."""
    return bool(re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(plain(answer))}(?!\w)(?![.,]\d)", plain(text)))


def begins(start: str, text: str) -> bool:
    """Whether a word of the text, or a row of words, begins so: 'dollar' finds dollars."""
    return bool(re.search(rf"(?<!\w){re.escape(plain(start))}", plain(text)))


def content(text: str) -> set[str]:
    """The words that carry meaning: no common ones, no names of models, no single letters."""
    return {word for word in words(text) if word not in COMMON | NAMES and (len(word) > 1 or word.isdigit())}


def overlap(question: str, passage: str) -> set[str]:
    """The content words of a question that the passage has too, whatever their endings."""
    others = content(passage)
    return {word for word in content(question) if any(_kin(word, other) for other in others)}


def _kin(one: str, other: str) -> bool:
    """Whether two words begin with the same five letters, or one of at least three letters begins the other."""
    if one == other or min(len(one), len(other)) < 3 or (one + other).isdigit():
        return one == other
    return one[:5] == other[:5] or one.startswith(other) or other.startswith(one)


def numbers(text: str) -> set[Fraction]:
    """The numbers of a text in digits; where there are none, those in words, from zero to twelve."""
    digits = {Fraction(found.replace(",", "")) for found in NUMBER.findall(text)}
    return digits or {Fraction(NUMBERS[word]) for word in words(text) if word in NUMBERS}


def value(expression: str) -> Fraction:
    """The exact value of numbers joined by + - * /; anything else is a ValueError."""
    return _value(ast.parse(expression, mode="eval").body, expression)


def _value(node: ast.expr, text: str) -> Fraction:
    signs = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Fraction(ast.get_source_segment(text, node))
    if isinstance(node, ast.BinOp) and type(node.op) in signs:
        return signs[type(node.op)](_value(node.left, text), _value(node.right, text))
    raise ValueError(f"no arithmetic: {text}")


# --- the check: a sentence for each fault, which names the question ----------


def form(row: dict) -> list[str]:
    """Faults of a question's fields, before its passage is looked at."""
    kind = row.get("kind")
    if kind not in KINDS:
        return [f"the kind {kind!r} is not one of {', '.join(KINDS)}"]
    wanted = FIELDS | MORE.get(kind, set()) | ({ALONE} & set(row) if kind == "arithmetic" else set())
    if set(row) != wanted:
        return [f"its fields differ from the known ones in {', '.join(sorted(set(row) ^ wanted))}"]
    texts = [row["id"], row["language"], row["question"], row["answer"] or ""]
    return [sentence for wrong, sentence in [
        (not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row["id"]) or len(row["id"]) > 40,
         "its id is no short kebab-case"),
        (row["language"] != "en", f"its language is {row['language']!r}"),
        (row["question"][-1:] not in "?." or row["question"] != " ".join(row["question"].split()),
         "it doesn't end as a question does, or has white space to spare"),
        (any(text != unicodedata.normalize("NFC", text) for text in texts), "a text is not in NFC"),
        (kind == "unanswerable" and (row["gold_passages"], row["answer"], row["gold"]) != ([], None, None),
         "an unanswerable question has no passage, answer or gold"),
        (kind != "unanswerable" and not (row["gold_passages"] and row["answer"] and row["gold"]),
         "it hasn't a passage, an answer and its gold"),
        (len(set(row["gold_passages"])) != len(row["gold_passages"]), "it has a passage twice"),
        (row.get(ALONE, True) is not True, f"its {ALONE} is not true"),
    ] if wrong]


def place(row: dict, texts: Corpus) -> list[str]:
    """Faults of where the answer stands: in the first passage of the question and in no other.

    Further passages answer the question in other words, which a reader has to judge.
    """
    gold, answer = row["gold_passages"][0], row["answer"]
    there = [key for key, text in texts.items() if stands(answer, text)]
    if there == [gold]:
        return []
    now = f"stands now in {', '.join(there)}" if there else "stands nowhere in the notes"
    return [f"its answer {answer!r} should stand in {gold} alone and {now}"]


def right(row: dict) -> list[str]:
    """Faults of what counts as right: its form, and whether the answer itself would count."""
    gold, answer = row["gold"], row["answer"]
    if set(gold) == {"text", "rejected"}:
        lists = [gold["text"], gold["rejected"]]
        if not gold["text"] or any(not isinstance(text, str) or not text.strip() for each in lists for text in each):
            return ["its gold has no texts that count"]
        accepted, rejected = ([text for text in each if stands(text, answer)] for each in lists)
        return [] if accepted and not rejected else [f"its answer {answer!r} would not be right by its own gold"]
    if set(gold) != {"number", "unit", "tolerance"}:
        return [f"its gold has the fields {', '.join(sorted(gold))}"]
    try:
        number, tolerance = Fraction(gold["number"]), Fraction(gold["tolerance"])
    except (ValueError, TypeError):
        return ["the number or the tolerance of its gold is no number as text"]
    if not 0 <= tolerance < Fraction(1, 10) or not (gold["unit"] is None or gold["unit"].isalpha()):
        return ["the tolerance or the unit of its gold can't be meant so"]
    if row["kind"] != "arithmetic" and numbers(answer) != {number}:
        return [f"its answer {answer!r} is not the number {gold['number']}"]
    return []


def calculation(row: dict, passage: str) -> list[str]:
    """Faults of a question that has to be calculated: operands, result, and a result that can be copied."""
    if "number" not in row["gold"]:
        return ["the result of a calculation is a number"]
    given = numbers(passage) | numbers(row["question"]) | {Fraction(100)}  # 100 turns per cent into a share
    operands, number = numbers(row["expression"]), Fraction(row["gold"]["number"])
    off = abs(value(row["expression"]) - number)
    return [sentence for wrong, sentence in [
        (operands - given, f"a number of {row['expression']} stands neither in the passage nor in the question"),
        (not numbers(row["answer"]) or not operands & numbers(row["answer"]), "its answer holds no operand"),
        (off > Fraction(row["gold"]["tolerance"]) * number, f"{row['expression']} is not {row['gold']['number']}"),
        (number in numbers(passage), f"its result {row['gold']['number']} can be copied from the passage"),
        (operands <= numbers(row["question"]) | {Fraction(100)} and ALONE not in row,
         f"all its numbers stand in the question, and it has no {ALONE}"),
    ] if wrong]


def wording(row: dict, texts: Corpus) -> list[str]:
    """Faults of the words a question has in common with its passage: too many in a paraphrase, or too few."""
    passage = texts[row["gold_passages"][0]]
    for key in row["gold_passages"] if row["kind"] == "paraphrase" else []:
        if len(common := overlap(row["question"], texts[key])) > SHARED:
            return [f"it shares more than {SHARED} content word with its passage: {', '.join(sorted(common))}"]
    own = content(row["question"]) & content(passage)
    rare = [word for word in own if sum(word in words(text) for text in texts.values()) <= RARE]
    if row["kind"] == "same words" and (len(own) < OWN or not rare):
        return [f"it has too few words of its passage, or no rare one: {', '.join(sorted(own))}"]
    return []


def absent(row: dict, everything: str) -> list[str]:
    """Faults of an unanswerable question: what an answer would have to contain stands in the notes after all."""
    if not isinstance(row["absent"], list) or not 2 <= len(row["absent"]) <= 3:
        return ["it doesn't say in two or three strings what an answer would contain"]
    return [f"an answer could be in the notes, since they contain {text!r}"
            for text in row["absent"] if not text.strip() or begins(text, everything)]


def faults_of(row: dict, texts: Corpus, everything: str) -> list[str]:
    """All faults of one question; `everything` is the whole text of the notes, headings and lists included."""
    if found := form(row):
        return found
    if row["kind"] == "unanswerable":
        return absent(row, everything)
    if missing := [key for key in row["gold_passages"] if key not in texts]:
        return [f"there is no passage {', '.join(missing)}", *place(row, texts)]
    found = place(row, texts) + right(row) + wording(row, texts)
    passage = texts[row["gold_passages"][0]]
    return found + (calculation(row, passage) if row["kind"] == "arithmetic" and not found else [])


def faults(rows: list[dict], texts: Corpus, everything: str) -> list[str]:
    """All faults of a file of questions, each in a sentence that begins with the id of the question."""
    found = [f"{row.get('id')}: {fault}" for row in rows for fault in faults_of(row, texts, everything)]
    for name, key in (("id", lambda row: row["id"]), ("question", lambda row: " ".join(words(row["question"])))):
        count = Counter(key(row) for row in rows)
        found += [f"{row['id']}: another question has the same {name}" for row in rows if count[key(row)] > 1]
    return found


# --- the questions ----------------------------------------------------------

ROWS = load_questions("notes-en")
TEXTS, SECTION = corpus("en")
EVERYTHING = "\n".join(path.read_text(encoding="utf-8") for path in sorted((NOTES / "en").glob("*.md")))
GOLD = [row["gold_passages"][0] for row in ROWS if row["gold_passages"]]


def test_the_questions_hold():
    assert faults(ROWS, TEXTS, EVERYTHING) == []


def test_there_are_enough_of_each_kind():
    kinds = Counter(row["kind"] for row in ROWS)
    assert all(kinds[kind] >= 8 for kind in ANSWERABLE) and kinds["unanswerable"] >= 10, kinds
    assert len(ROWS) - kinds["unanswerable"] >= 44


@pytest.mark.parametrize("chapter", SIZES)
def test_every_chapter_is_asked_about(chapter):
    asked = [key for key in GOLD if key.startswith(f"{chapter}/")]
    assert len(asked) >= 12 and len({SECTION[key] for key in asked}) >= SECTIONS
    kinds = Counter(row["kind"] for row in ROWS if set(row["gold_passages"][:1]) & set(asked))
    assert set(kinds) == set(ANSWERABLE) and max(kinds.values()) - min(kinds.values()) <= 1, kinds


def test_no_passage_has_two_questions():
    assert [key for key, count in Counter(GOLD).items() if count > 1] == []


def test_the_draw_can_be_repeated():
    """The file keeps the order of the draw; it can be repeated while the chapters have as many passages as then."""
    sizes = Counter(key.split("/")[0] for key in TEXTS)
    if sizes != SIZES:
        pytest.skip(f"the chapters now have {dict(sizes)} passages, so ids have moved since the draw from {SIZES}")
    draw = random.Random(SEED)
    orders = {chapter: draw.sample(range(size), size) for chapter, size in SIZES.items()}
    assert GOLD == [f"{chapter}/{number}" for chapter, order in orders.items() for number in order[:DRAWN]]


def test_the_file_is_plain():
    raw = (notebooks.ROOT / "data" / "questions" / "notes-en.jsonl").read_bytes()
    assert b"\r" not in raw and raw.endswith(b"}\n") and b"\\u" not in raw
    assert unicodedata.is_normalized("NFC", raw.decode("utf-8"))
    assert [json.dumps(row, ensure_ascii=False) for row in ROWS] == raw.decode("utf-8").splitlines()


def test_the_readme_has_the_numbers():
    text = plain((notebooks.ROOT / "data" / "questions" / "README.md").read_text(encoding="utf-8"))
    for words_ in (f"seed {SEED}", f"first {DRAWN} of each chapter", f"`notes-en.jsonl` | {len(ROWS)},"):
        assert words_ in text


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
    return faults(list(rows), texts, "\n".join(texts.values()))


@pytest.mark.parametrize("kind", KINDS)
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
    ("same words", {"language": "vi"}, "its language is 'vi'"),
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
    assert numbers("Three of four") == {3, 4} and numbers("none") == numbers("") == set()
    assert value("12 * 5 + 3") == 63 and value("0.1 * 0.3") == Fraction(3, 100)
    for text in ("2 ** 9", "x + 1", "abs(1)", "'a'", "True"):
        with pytest.raises(ValueError, match="no arithmetic"):
            value(text)
