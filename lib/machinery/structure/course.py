"""What must be true of the course as a whole: its files, its README, and what its notebooks say of each other."""
from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from lib.machinery import notebooks
from lib.machinery.structure import links, markdown, paths, stray
from lib.machinery.structure.numbers import numbers

MOST_BYTES = 20_000_000
DOCUMENTS = ("README.md", "CONTRIBUTING.md")
_NOT_KEPT = {".git", ".venv", "__pycache__", ".ipynb_checkpoints", ".pytest_cache", ".ruff_cache", ".hypothesis"}
_OF_A_RUN = {("results", "run"), ("results", "lab")}
_TEXT = {".md", ".ipynb", ".json", ".jsonl", ".txt", ".py", ".yml", ".toml", ".ini", ".csv", ".svg", ".html", ".js",
         ".css"}
_LISTED = re.compile(r"^\| \[([^\[\]]+)\]\((notebooks/[^)#\s]+\.ipynb)\)", re.M)
_LESSON = re.compile(r"\b(?:lesson|notebook)s? (0\d)\b", re.I)


def faults(root: Path, there: list[Path]) -> list[str]:
    """All that is wrong with the course at `root` beyond its single notebooks, which are `there`."""
    files = kept_files(root)
    documents = [root / name for name in DOCUMENTS if (root / name).is_file()]
    found = size_faults(files) + [f"{file.relative_to(root).as_posix()}: {fault}" for file in files
                                  for fault in text_faults(file, root)]
    found += [f"{document.name}: {fault}" for document in documents for fault in links.document_faults(document)]
    found += [f"README.md: {fault}" for document in documents if document.name == "README.md"
              for fault in list_faults(document.read_text(encoding="utf-8", errors="replace"), there)]
    found += untracked_faults(files, documents, there)
    return found + lesson_faults(there) + stray.faults(root, files)


def untracked_faults(files: list[Path], documents: list[Path], there: list[Path]) -> list[str]:
    """Links to files that lie on this machine and are not part of the course."""
    texts = [(path, markdown.without_code(path.read_text(encoding="utf-8", errors="replace"))) for path in documents]
    texts += [(path, text) for path in there for _, text in markdown.cells(notebooks.read(path))]
    kept = {file.resolve() for file in files}
    return [f"{path.name}: it links to {file.name}, which is on this machine and not in the course: git add it"
            for path, text in texts for file in links.files(text, path) if file.resolve() not in kept]


def kept_files(root: Path) -> list[Path]:
    """The files that git tracks; where there is no git, all but what tools and runs leave behind."""
    if (root / ".git").exists():
        try:
            listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=True)
            names = listed.stdout.decode("utf-8", "surrogateescape").split("\0")
            there = [root / name for name in names if name]
            return sorted(file for file in there if file.is_file() or file.is_symlink())
        except (OSError, subprocess.CalledProcessError):  # no git, or a folder that it does not trust
            pass
    return list(_files(root, root))


def _files(folder: Path, root: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name in _NOT_KEPT or path.relative_to(root).parts in _OF_A_RUN or path.is_symlink():
            continue
        if path.is_dir():
            yield from _files(path, root)
        elif path.is_file():
            yield path


def size_faults(files: list[Path]) -> list[str]:
    """Whether the course is too large to be cloned in a classroom."""
    size = sum(file.lstat().st_size for file in files)
    return [f"its files take {size:,} bytes; at most {MOST_BYTES:,}"] if size > MOST_BYTES else []


def text_faults(file: Path, root: Path) -> list[str]:
    """What is wrong with a text file: its bytes, and paths of one machine in documents, data and results."""
    if file.suffix not in _TEXT or file.is_symlink():
        return []
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return ["the file is not UTF-8"]
    place = file.relative_to(root).parts
    read = place[0] in ("data", "results") or place[0] in DOCUMENTS
    path = paths.found_in(text) if read else None
    checks = {"it starts with a byte order mark": text.startswith("\ufeff"),
              "a line ends with CR, not with LF alone": "\r" in text,
              "it does not end with one newline": bool(text) and (not text.endswith("\n") or text.endswith("\n\n")),
              f"it holds a path of one machine ({path!r})": path is not None}
    return [fault for fault, wrong in checks.items() if wrong]


def list_faults(readme: str, there: list[Path]) -> list[str]:
    """Whether the README's table lists each notebook once, in order, by number and title, and counts them rightly."""
    listed = _LISTED.findall(readme)
    expected = [(f"{notebooks.number(path)} {title(path)}", f"notebooks/{path.name}") for path in there]
    wrong = [" ".join(one) for one in listed if one not in expected] + [
        " ".join(one) for one in expected if one not in listed]
    found = [f"its table of notebooks differs from what is there: {', '.join(wrong) or 'their order'}"
             ] if listed != expected else []
    return found + [f"it says {readme[number.start:number.end]} notebooks, and there are {len(there)}"
                    for number in numbers(readme) if re.match(r" (?:\w+ )?notebooks\b", readme[number.end:])
                    and number.value not in (1, len(there))]


def title(path: Path) -> str:
    """The title of a notebook; empty if it has none."""
    found = [words for _, text in markdown.cells(notebooks.read(path)) for _, words in markdown.headings(text)]
    return found[0] if found else ""


def lesson_faults(there: list[Path]) -> list[str]:
    """Lessons that a notebook sends its reader to, and that are not there."""
    known = {notebooks.number(path) for path in there}
    return [f"{path.name}: lesson {number} is not there" for path in there
            for _, text in markdown.cells(notebooks.read(path)) for number in _LESSON.findall(text)
            if number not in known]
