"""Signs that a reader does not see or takes for others: controls, invisible ones, two scripts in one word."""
from __future__ import annotations

import re
import unicodedata

from nbformat import NotebookNode

from lib.machinery import notebooks
from lib.machinery.outputs import values

_UNSEEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
# controls, and signs that make a line read in another order
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_WORD = re.compile(r"[^\W\d_]{2,}")


def faults(notebook: NotebookNode) -> list[str]:
    """Such signs in sources and outputs; what a model wrote may hold a joiner of emoji, and a source may not."""
    found = [(f"cell {cell.get('id')}", fault) for cell in notebook.cells for fault in source_faults(cell.source)]
    found += [(f"an output of cell {cell.get('id')}", f"it holds the control sign {sign!r}")
              for cell in notebooks.code_cells(notebook) for output in cell.outputs
              for text in values(output).values() for sign in _CONTROL.findall(text)[:1]]
    return [f"{where}: {fault}" for where, fault in found]


def source_faults(text: str) -> list[str]:
    """What is wrong with the signs of a source or of Markdown."""
    unseen = next((sign for sign in sorted(set(text) - {"\n"})
                   if unicodedata.category(sign) in _UNSEEN or sign == "\ufffd"), None)
    mixed = next((word for word in _WORD.findall(text) if not word.isascii() and _scripts(word) > 1), None)
    checks = {f"it holds the sign {unseen!r}, which nobody sees": unseen is not None,
              f"the letters of {mixed!r} are of two scripts": mixed is not None,
              "its letters and accents come apart (it is not in NFC)": not unicodedata.is_normalized("NFC", text)}
    return [fault for fault, wrong in checks.items() if wrong]


def _scripts(word: str) -> int:
    """How many of the scripts whose letters look alike a word is written in."""
    names = {unicodedata.name(letter, "").split(" ")[0] for letter in word}
    return len(names & {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"})
