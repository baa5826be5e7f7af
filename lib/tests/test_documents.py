"""What people read beside the notebooks: links lead somewhere, files that are named exist, commands can be given."""
from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from lib import models
from lib.machinery import commands, evaluations, notebooks
from lib.machinery.structure import links, markdown
from lib.machinery.structure.paths import PATHS

ROOT = notebooks.ROOT
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "data").glob("*/README.md")]
FORMS = [*(ROOT / ".github").rglob("*.yml")]
EACH = pytest.mark.parametrize("path", DOCUMENTS + FORMS, ids=lambda path: path.relative_to(ROOT).as_posix())
CODE = re.compile(r"^(```+)\w*\n(.*?)^\1|`([^`\n]+)`", re.M | re.S)
FILE = re.compile(r"\.?[\w-][\w.-]*(?:/[\w.-]+)*/?")
ENDINGS = (".py", ".md", ".json", ".jsonl", ".yml", ".toml", ".txt", ".ipynb", "/")
MADE = ("results/run/", "results/drift.json", "results/lab/", ".venv", "course.xml", "manifest.json")  # by a command
STAND_INS = {"NN": "01"}  # words that stand for others


def code(text: str) -> list[str]:
    """What stands in code spans and fenced blocks of a Markdown text, a line each."""
    return [line for block in CODE.finditer(text) for line in (block[2] or block[3]).splitlines()]


def lines_of(path: Path) -> list[str]:
    """The lines in which a document gives commands: those in code, or of a form or workflow all."""
    text = path.read_text(encoding="utf-8")
    return code(text) if path.suffix == ".md" else text.splitlines() + code(text)


def course_commands(lines: list[str]) -> list[list[str]]:
    """The words behind each `-m lib`, up to a comment, a pipe or what a workflow puts in."""
    found = [re.search(r"(?:py|python3?) -m lib(?![\w.])([^|#&;`]*)", line) for line in lines]
    return [shlex.split(re.sub(r"\$\{\{.*|[,.)]*$", "", match[1].strip())) for match in found if match]


def module_commands(lines: list[str]) -> list[tuple[str, list[str]]]:
    """(module, its arguments) of each `python -m` that is not the course's own command."""
    found = [re.search(r"python3? -m (?!lib\b(?!\.))(\S+)([^|#&;`]*)", line) for line in lines]
    return [(match[1], shlex.split(match[2])) for match in found if match]


def named_files(lines: list[str]) -> set[str]:
    """What in code is the name of a file or folder of the course."""
    words = {word.rstrip(",.:") if not word.endswith("/") else word for line in lines for word in line.split()}
    return {word for word in words if FILE.fullmatch(word) and word.endswith(ENDINGS) and "NN" not in word}


def exists(name: str, beside: Path) -> bool:
    """Whether a file is there as it is named: from the course's folder, beside the document, or by its name alone."""
    if name.startswith(MADE) or (ROOT / name).exists() or (beside / name).exists():
        return True
    return "/" not in name and any([*(ROOT / folder).rglob(name)] for folder in ("lib", "results", "data"))


def test_the_documents_are_found():
    names = {path.relative_to(ROOT).as_posix() for path in DOCUMENTS + FORMS}
    assert names >= {"README.md", "CONTRIBUTING.md", "data/questions/README.md", "data/cases/README.md",
                     ".github/ISSUE_TEMPLATE/output-differs.yml", ".github/ISSUE_TEMPLATE/problem.yml",
                     ".github/workflows/course.yml"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    assert links.document_faults(path) == []


@EACH
def test_files_that_are_named_exist(path):
    lines = code(path.read_text(encoding="utf-8"))
    assert [name for name in sorted(named_files(lines)) if not exists(name, path.parent)] == []


@EACH
def test_commands_can_be_given(path):
    for words in course_commands(lines_of(path)):
        parsed = commands.parse([STAND_INS.get(word, word) for word in words])
        given = vars(parsed)
        assert not given.get("notebooks") or notebooks.select(given["notebooks"])
        assert set(given.get("names") or []) | set(given.get("models") or []) <= models.MODELS.keys()
        assert given.get("evaluation", "loop") in evaluations.names()


@EACH
def test_modules_and_test_files_that_are_named_exist(path):
    for module, arguments in module_commands(lines_of(path)):
        assert importlib.util.find_spec(module), module
        assert [name for name in arguments if name.endswith(".py") and not (ROOT / name).is_file()] == []


@EACH
def test_it_is_plain_text_without_paths_of_a_machine(path):
    text = path.read_bytes().decode("utf-8")
    assert "\r" not in text and text.endswith("\n") and not text.endswith("\n\n")
    assert not PATHS.search(text.replace("site-packages", "")) and "\t" not in text
    assert not re.search(r"\b(?:TODO|FIXME|TBD|XXX)\b", text)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_headings_are_in_order(path):
    levels = [level for level, _ in markdown.headings(markdown.without_code(path.read_text(encoding="utf-8")))]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))


def test_contributing_says_how_everything_is_done():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    given = {words[0] for words in course_commands(code(text))}
    assert given >= {"test", "lab", "run", "record", "evaluate", "segment", "doctor"}
    assert "](CONTRIBUTING.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    for subject in ("A notebook", "A check of notebooks", "A question", "A passage", "A case", "A model", "A package",
                    "An evaluation"):
        assert f"**{subject}" in text
    renewal = (ROOT / ".github" / "workflows" / "course.yml").read_text(encoding="utf-8")
    for line in re.findall(r"^```\n(.*?)^```", text, re.M | re.S)[0].splitlines():
        assert line in renewal, "the workflow renews environment.yml in another way than CONTRIBUTING.md says"


# --- the checks themselves: each fault is found --------------------------------

def test_commands_and_files_are_found_in_code():
    lines = code("Say `python3 -m lib fetch no-such-model`, `lib/no_such.py`, then\n\n"
                 "```\npy -m lib run 03  # all\n```\nand `.venv/bin/python -m pytest lib/tests/no.py`, "
                 "or `.venv/bin/python -m lib.tests.no`.\n")
    assert course_commands(lines) == [["fetch", "no-such-model"], ["run", "03"]]
    assert module_commands(lines) == [("pytest", ["lib/tests/no.py"]), ("lib.tests.no", [])]
    assert {name for name in named_files(lines) if not exists(name, ROOT)} == {"lib/no_such.py", "lib/tests/no.py"}
