"""The check of the questions about the notes: a sentence for each fault, which names the question.

Each answer stands in its passage and nowhere else in the notes of that language, and each kind is what it says.
Nothing here searches: no question was changed for what a retriever finds.
"""
from __future__ import annotations

import ast
import operator
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

from lib.machinery import notebooks
from lib.passages import passages
from lib.retrieval import folded_words, words

NOTES = notebooks.ROOT / "data" / "notes"
OWN_WORDS = "same words", "without accents", "decomposed"  # kinds that have words of their passage, however typed
READ = (*OWN_WORDS, "paraphrase", "name or number", "other language")
ANSWERABLE = (*READ, "arithmetic")
KINDS = (*ANSWERABLE, "unanswerable")
FIELDS = {"id", "language", "kind", "question", "gold_passages", "answer", "gold"}
MORE = {"arithmetic": {"expression"}, "unanswerable": {"absent"}}  # fields that only these kinds have
ALONE = "self_contained"  # true for a calculation that needs no passage; other questions don't have the field
OWN = 3       # content words that a question in the same words has in common with its passage, at least, and one is
RARE = 5      # rare: it stands in at most so many passages of the notes
SHARED = {"en": 1, "vi": 2}  # content words that a paraphrase has in common with its passage, at most; in Vietnamese
OFTEN = 0.15                 # syllables, two of which mostly make a word. There the common words are those that stand
                             # in more than this share of the passages; the English ones are listed:
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
NUMBERS = {word: value for language in (
    "zero one two three four five six seven eight nine ten eleven twelve",
    "không một hai ba bốn năm sáu bảy tám chín mười") for value, word in enumerate(language.split())}
NUMBER = {"en": re.compile(r"(?<![\w.,])\d+(?:,\d{3})*(?:\.\d+)?(?!\w)"),
          "vi": re.compile(r"(?<![\w.,])\d+(?:\.\d{3})*(?:,\d+)?(?!\w)")}

Corpus = dict[str, str]  # the text of each passage by its id, such as '1-text-into-tokens/12'


@dataclass(frozen=True)
class Notes:
    """The notes in a language: passages by id, the section of each, all their text, the words too common to tell."""
    language: str
    texts: Corpus
    sections: dict[str, str]
    everything: str
    common: frozenset[str]


def notes(language: str) -> Notes:
    """The notes in a language; ids are counted from 0 as `passages` does."""
    files = {path.stem: path.read_text(encoding="utf-8") for path in sorted((NOTES / language).glob("*.md"))}
    found = {f"{part.document}/{part.number}": part for name, text in files.items() for part in passages(text, name)}
    texts = {key: part.text for key, part in found.items()}
    return Notes(language, texts, {key: part.heading for key, part in found.items()}, "\n".join(files.values()),
                 frozenset(COMMON | NAMES) if language == "en" else often(texts))


def often(texts: Corpus) -> frozenset[str]:
    """The words that stand in more than OFTEN of the passages."""
    count = Counter(word for text in texts.values() for word in set(words(text)))
    return frozenset(word for word, times in count.items() if times > OFTEN * len(texts))


def plain(text: str) -> str:
    """A text as it is compared: NFC, without regard to capitals, white space as one space."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def stands(answer: str, text: str) -> bool:
    """Whether the answer stands in the text as whole words, and not as part of a longer number."""
    return bool(re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(plain(answer))}(?!\w)(?![.,]\d)", plain(text)))


def begins(start: str, text: str) -> bool:
    """Whether a word of the text, or a row of words, begins so: 'dollar' finds dollars."""
    return bool(re.search(rf"(?<!\w){re.escape(plain(start))}", plain(text)))


def content(text: str, common: frozenset[str]) -> set[str]:
    """The words that carry meaning: none of the common ones, no single letters."""
    return {word for word in words(text) if word not in common and (len(word) > 1 or word.isdigit())}


def overlap(question: str, passage: str, notes: Notes) -> set[str]:
    """The content words of a question that the passage has too: in English whatever their endings."""
    ours, others = content(question, notes.common), content(passage, notes.common)
    if notes.language != "en":
        return ours & others
    return {word for word in ours if any(_kin(word, other) for other in others)}


def _kin(one: str, other: str) -> bool:
    """Whether two words begin with the same five letters, or one of at least three letters begins the other."""
    if one == other or min(len(one), len(other)) < 3 or (one + other).isdigit():
        return one == other
    return one[:5] == other[:5] or one.startswith(other) or other.startswith(one)


def numbers(text: str, language: str = "en") -> set[Fraction]:
    """The numbers of a text in digits, as its language writes them; where there are none, those in words."""
    marks = str.maketrans({",": ""} if language == "en" else {".": "", ",": "."})
    digits = {Fraction(found.translate(marks)) for found in NUMBER[language].findall(text)}
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


# --- faults of one question -------------------------------------------------


def form(row: dict) -> list[str]:
    """Faults of a question's fields, before its passage is looked at."""
    kind = row.get("kind")
    if kind not in KINDS:
        return [f"the kind {kind!r} is not one of {', '.join(KINDS)}"]
    wanted = FIELDS | MORE.get(kind, set()) | ({ALONE} & set(row) if kind == "arithmetic" else set())
    wanted |= {"english"} if row.get("language") != "en" else set()
    if set(row) != wanted:
        return [f"its fields differ from the known ones in {', '.join(sorted(set(row) ^ wanted))}"]
    return [*typing(row), *(sentence for wrong, sentence in [
        (not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row["id"]) or len(row["id"]) > 40,
         "its id is no short kebab-case"),
        (row["language"] not in SHARED, f"its language is {row['language']!r}"),
        (kind == "unanswerable" and (row["gold_passages"], row["answer"], row["gold"]) != ([], None, None),
         "an unanswerable question has no passage, answer or gold"),
        (kind != "unanswerable" and not (row["gold_passages"] and row["answer"] and row["gold"]),
         "it hasn't a passage, an answer and its gold"),
        (len(set(row["gold_passages"])) != len(row["gold_passages"]), "it has a passage twice"),
        (row.get(ALONE, True) is not True, f"its {ALONE} is not true"),
    ] if wrong)]


def typing(row: dict) -> list[str]:
    """Faults of how the texts of a question are typed: the form of Unicode, white space, accents."""
    question, kind = row["question"], row["kind"]
    texts = [row["id"], row["language"], row["answer"] or "", row.get("english", "")]
    texts += [] if kind == "decomposed" else [question]
    return [sentence for wrong, sentence in [
        (question[-1:] not in "?." or question != " ".join(question.split()),
         "it doesn't end as a question does, or has white space to spare"),
        (any(text != unicodedata.normalize("NFC", text) for text in texts), "a text is not in NFC"),
        (kind == "decomposed" and (unicodedata.normalize("NFD", question) != question or question.isascii()),
         "it is not decomposed"),
        (kind == "without accents" and not question.isascii(), "it has accents"),
        (row.get("english", "?")[-1:] not in "?.", "its English doesn't end as a question does"),
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


def right(row: dict, language: str) -> list[str]:
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
    if row["kind"] != "arithmetic" and numbers(answer, language) != {number}:
        return [f"its answer {answer!r} is not the number {gold['number']}"]
    return []


def calculation(row: dict, passage: str, language: str) -> list[str]:
    """Faults of a question that has to be calculated: operands, result, and a result that can be copied."""
    if "number" not in row["gold"]:
        return ["the result of a calculation is a number"]
    asked = numbers(row["question"], row["language"])
    given = numbers(passage, language) | asked | {Fraction(100)}  # 100 turns per cent into a share
    operands, number = numbers(row["expression"]), Fraction(row["gold"]["number"])
    off = abs(value(row["expression"]) - number)
    return [sentence for wrong, sentence in [
        (operands - given, f"a number of {row['expression']} stands neither in the passage nor in the question"),
        (not operands & numbers(row["answer"], language), "its answer holds no operand"),
        (off > Fraction(row["gold"]["tolerance"]) * number, f"{row['expression']} is not {row['gold']['number']}"),
        (number in numbers(passage, language), f"its result {row['gold']['number']} can be copied from the passage"),
        (operands <= asked | {Fraction(100)} and ALONE not in row,
         f"all its numbers stand in the question, and it has no {ALONE}"),
    ] if wrong]


def wording(row: dict, notes: Notes) -> list[str]:
    """Faults of the words a question has in common with its passage: too many in a paraphrase, or too few."""
    passages, most = [notes.texts[key] for key in row["gold_passages"]], SHARED[notes.language]
    for passage in passages if row["kind"] == "paraphrase" else []:
        if len(common := overlap(row["question"], passage, notes)) > most:
            some = f"{most} content word{'s' if most > 1 else ''}"
            return [f"it shares more than {some} with its passage: {', '.join(sorted(common))}"]
    if row["kind"] not in OWN_WORDS:
        return []
    cut = folded_words if row["kind"] == "without accents" else words
    own = set(cut(row["question"])) & {word for text in content(passages[0], notes.common) for word in cut(text)}
    rare = [word for word in own if sum(word in cut(text) for text in notes.texts.values()) <= RARE]
    return [] if len(own) >= OWN and rare else [
        f"it has too few words of its passage, or no rare one: {', '.join(sorted(own))}"]


def absent(row: dict, everything: str) -> list[str]:
    """Faults of an unanswerable question: what an answer would have to contain stands in the notes after all."""
    if not isinstance(row["absent"], list) or not 2 <= len(row["absent"]) <= 3:
        return ["it doesn't say in two or three strings what an answer would contain"]
    return [f"an answer could be in the notes, since they contain {text!r}"
            for text in row["absent"] if not text.strip() or begins(text, everything)]


def faults_of(row: dict, notes: Notes) -> list[str]:
    """All faults of one question."""
    if found := form(row):
        return found
    if row["kind"] == "unanswerable":
        return absent(row, notes.everything)
    if missing := [key for key in row["gold_passages"] if key not in notes.texts]:
        return [f"there is no passage {', '.join(missing)}", *place(row, notes.texts)]
    found = place(row, notes.texts) + right(row, notes.language) + wording(row, notes)
    passage = notes.texts[row["gold_passages"][0]]
    return found + (calculation(row, passage, notes.language) if row["kind"] == "arithmetic" and not found else [])


def faults(rows: list[dict], notes: Notes) -> list[str]:
    """All faults of questions about the notes in one language; each sentence begins with the id of a question."""
    found = [f"{row.get('id')}: {fault}" for row in rows for fault in faults_of(row, notes)]
    for name, key in (("id", lambda row: row["id"]), ("question", lambda row: " ".join(words(row["question"])))):
        count = Counter(key(row) for row in rows)
        found += [f"{row['id']}: another question has the same {name}" for row in rows if count[key(row)] > 1]
    return found
