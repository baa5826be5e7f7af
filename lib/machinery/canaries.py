"""Canaries: notebooks with one defect each, which prove that the gate still bites, each half of it alone."""
from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from lib.machinery import notebooks, structure
from lib.machinery.reexecute import reexecute

FOLDER = notebooks.ROOT / "lib" / "tests" / "canaries"
_COUNT, _TAG, _MARKER = "its count is", "a tag lets it raise or be skipped", "a marker of nbval"
_UNBORNE = "is borne out by no output"
_KIND, _LETTER = "is of another kind", "differs from line 1"


class Expected(NamedTuple):
    """What each half of the gate has to say about a canary; None where it has nothing to say against it."""
    structure: str | None
    execution: str | None


EXPECTED = {
    "clean": Expected(None, None),
    "stripped_outputs": Expected(_COUNT, _COUNT),
    "emptied_output": Expected(None, _KIND),
    "wrong_text": Expected(None, _LETTER),
    "wrong_value": Expected(None, _LETTER),
    "counts_out_of_order": Expected(_COUNT, _COUNT),
    "stderr": Expected("stderr is recorded", "stderr is recorded"),
    "bad_magic": Expected("no plain Python", "the kernel answers 'error'"),
    "dead_kernel": Expected(None, "the kernel died in this cell"),
    "missing_image": Expected(None, _KIND),
    "missing_alt_text": Expected("no alternative text", None),
    "lost_alt_text": Expected(None, _KIND),
    "swapped_output_order": Expected(None, _KIND),
    "value_recorded_as_display": Expected(None, _KIND),
    "changed_after_shown": Expected(None, "changes an output after showing it"),
    "raises_as_recorded": Expected("an exception is recorded", "caused an exception"),
    "raises_that_does_not_raise": Expected("'raises-exception' does not belong", _TAG),
    "ignored_in_a_string": Expected(_MARKER, _LETTER),
    "skipped_by_a_tag": Expected("'nbval-skip' does not belong", _LETTER),
    "unchecked_without_reason": Expected("it is unchecked, and", "unchecked without the reason"),
    "foreign_kernel_name": Expected("the metadata 'kernelspec'", "asks for the kernel"),
    "false_claim": Expected(None, "a recorded claim does not hold"),
    "trailing_semicolon": Expected("ends with ';'", None),
    "widgets_metadata": Expected("the metadata 'widgets'", None),
    "machine_path": Expected("a path of the machine", None),
    "path_in_alt_text": Expected("it holds a path of one machine", None),
    "shell_command": Expected("the system's shell", None),
    "raw_cell": Expected("a raw cell is neither shown nor run", None),
    "dead_link": Expected("leads nowhere", None),
    "dead_anchor": Expected("leads to a heading that is not there", None),
    "same_heading_twice": Expected("2 headings read", None),
    "unborne_figure": Expected(_UNBORNE, None),
    "unborne_in_words": Expected(f"'Three of six turns made' {_UNBORNE}", None),
    "unborne_with_its_noun": Expected(f"'29 calls' {_UNBORNE}", None),
    "unborne_in_a_heading": Expected(_UNBORNE, None),
    "unborne_in_a_link": Expected(_UNBORNE, None),
    "given_without_need": Expected("nothing there needs it", None),
    "exempt_by_a_tag": Expected("'course-no-figures' does not belong", None),
}

# What came out when every known way of passing unseen was gone through.
EXPECTED |= {
    "removed_output": Expected(None, _KIND),
    "doubled_output": Expected(None, _KIND),
    "removed_cell": Expected(_COUNT, _COUNT),
    "unrun_cell": Expected(_COUNT, _COUNT),
    "needs_a_deleted_cell": Expected(None, "NameError: name 'answer'"),
    "raises_now": Expected(None, "ZeroDivisionError"),
    "unchecked_raises": Expected(None, "ZeroDivisionError"),
    "unchecked_without_output": Expected(None, _KIND),
    "unchecked_emptied": Expected(None, "holds nothing as recorded"),
    "another_image": Expected(None, "is another picture"),
    "another_alt_text": Expected(None, _KIND),
    "wrong_html": Expected(None, _LETTER),
    "missing_mime": Expected(None, _KIND),
    "warns_now": Expected(None, _KIND),
    "warns_below_python": Expected("reaches for the system's shell", _KIND),
    "random_value": Expected(None, _LETTER),
    "order_of_a_set": Expected(None, _LETTER),
    "decomposed_letters": Expected(None, _LETTER),
    "lost_blank": Expected(None, _LETTER),
    "late_print": Expected(None, _LETTER),
    "killed_in_a_long_cell": Expected(None, "the kernel died in this cell"),
    "ends_its_kernel": Expected(None, "ends its kernel"),
    "asks_the_reader": Expected(None, "StdinNotImplementedError"),
    "widget_output": Expected("a live widget is recorded", "a live widget is recorded"),
    "unrecorded_generation": Expected("asks whether it is tested", "1 generations so far, and 0 are recorded"),
    "reordered_cells": Expected(None, _LETTER),
}

# Their outputs come out again: only how they come about, or what they hide, is wrong.
EXPECTED |= {name: Expected(words, None) for name, words in {
    "claim_that_cannot_fail": "claims what cannot fail",
    "claim_of_itself": "claims what cannot fail",
    "claim_of_another_number": "claims 43, and the cell's code compares nothing",
    "claim_in_a_try": "lets a claim fail unseen",
    "tick_without_a_claim": "writes the tick of a claim",
    "claim_replaced": "gives another meaning to claim",
    "figure_from_nowhere": "prints 43, which nothing has computed",
    "silenced_warnings": "silences warnings of every kind",
    "asks_whether_it_is_tested": "asks whether it is tested",
    "reads_its_recording": "reads what was recorded",
    "name_of_its_reader": "differs from machine to machine",
    "code_in_a_text": "reaches for code that is not read",
    "claim_recorded_as_false": "says that a claim does not hold",
    "invisible_sign": "which nobody sees",
    "letters_of_two_scripts": "are of two scripts",
    "colours_of_a_terminal": "it holds the control sign",
    "script_in_an_output": "holds a script, a frame or a style",
    "picture_from_the_net": "comes from the net",
    "picture_that_no_cell_made": "it has an attachment",
    "link_to_one_machine": "leads to one machine",
    "hidden_from_its_reader": "it hides a part of itself",
    "comment_without_an_end": "a comment is begun and not ended",
    "cell_that_says_nothing": "it says nothing",
    "two_columns_of_the_text": "a table's heads are",
}.items()}

LEAST = 14          # canaries with a defect; with fewer the list has been cut
LEAST_LETTERS = 8   # of an expectation; a shorter one could stand in any complaint
SOUND = {name for name, expected in EXPECTED.items() if not any(expected)}


class Caught(NamedTuple):
    """One canary in one half of the gate: what was expected of it, and what it said (empty: nothing against it)."""
    name: str
    half: str
    expected: str | None
    got: str

    @property
    def is_right(self) -> bool:
        """Whether the half says what it has to say, or holds its peace where it should."""
        return self.expected in self.got if self.expected else not self.got

    def __str__(self) -> str:
        wanted = f"says {self.expected!r}" if self.expected else "is green"
        return f"{self.name}, {self.half}: expected that it {wanted}; it says {self.got[:300] or 'nothing'!r}"


def canaries(folder: Path = FOLDER) -> list[Caught]:
    """Every canary in both halves of the gate; a file that nobody expects, or one that is missing, is no catch."""
    found = {path.stem: path for path in sorted(folder.glob("*.ipynb"))}
    strays = [Caught(name, "list", "an entry and a file", "") for name in sorted(found.keys() ^ EXPECTED.keys())]
    known = {name: found[name] for name in EXPECTED if name in found}
    return strays + weakened() + in_structure(known) + in_execution(known)


def weakened() -> list[Caught]:
    """Where the list itself would let too much pass: too few canaries, none that is sound, words that say nothing."""
    few = [Caught("all", "list", f"at least {LEAST} defects", "")] * (len(EXPECTED) - len(SOUND) < LEAST)
    unsound = [Caught("all", "list", "one that is sound", "")] * (not SOUND)
    return few + unsound + [Caught(name, "list", f"at least {LEAST_LETTERS} letters", repr(words))
                            for name, halves in EXPECTED.items() for words in halves
                            if words is not None and len(words) < LEAST_LETTERS]


def in_structure(known: dict[str, Path]) -> list[Caught]:
    """What the structure half says about each canary."""
    return [Caught(name, "structure", EXPECTED[name].structure, "\n".join(structure.faults(path)))
            for name, path in known.items()]


def in_execution(known: dict[str, Path]) -> list[Caught]:
    """What the executing half says, in one process; those that only the structure shows are not executed."""
    executed = {name: path for name, path in known.items()
                if EXPECTED[name].execution or not EXPECTED[name].structure}
    verdict = reexecute(list(executed.values()), quiet=True, cell_timeout=60)
    return [Caught(name, "execution", EXPECTED[name].execution, "\n".join(verdict.faults.get(path, [])))
            for name, path in executed.items()]
