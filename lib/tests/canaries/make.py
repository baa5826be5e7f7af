"""Makes the canaries: tiny notebooks, each named for its one defect, that the gate has to catch.

`python3 -m lib.tests.canaries.make` writes them all anew; a test compares them with what this file makes. Nothing is
executed here: what a recording holds is written by hand, so that it can be wrong on purpose.
"""
from __future__ import annotations

import base64
import copy
import struct
import zlib
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, new_raw_cell

from lib.machinery import notebooks
from lib.machinery.normalise import METADATA

FOLDER = Path(__file__).parent
ALT = "a single black dot"
UNCHECKED = {"tags": [notebooks.UNCHECKED_TAG], "course": {"unchecked": "a time of this machine"}}
TIMED = "# not compared: a time of this machine\nimport time\nprint(time.time())"


def stdout(text: str) -> NotebookNode:
    """A recorded print."""
    return new_output("stream", name="stdout", text=text)


def result(text: str, count: int) -> NotebookNode:
    """The recorded value of a cell's last line."""
    return new_output("execute_result", data={"text/plain": text}, execution_count=count)


def dot(grey: int = 0) -> str:
    """A PNG image of one dot, black unless another grey is given, in base64."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes([0, grey]))
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode() + "\n"


def picture(alt: str | None = ALT) -> NotebookNode:
    """A recorded image."""
    metadata = {"image/png": {"alt": alt}} if alt else {}
    return new_output("display_data", data={"image/png": dot(), "text/plain": "a dot"}, metadata=metadata)


def shows_picture(alt: str | None = ALT) -> str:
    """The source of a cell that shows the dot."""
    metadata = ', metadata={"image/png": {"alt": "' + alt + '"}}' if alt else ""
    return ("from IPython.display import display\n"
            f"dot = \"{dot().strip()[:60]}\"\ndot += \"{dot().strip()[60:]}\\n\"\n"
            'data = {"image/png": dot, "text/plain": "a dot"}\n'
            f"display(data, raw=True{metadata})")


def notebook(*cells: tuple, prose: str = "A notebook whose one defect is its name.") -> NotebookNode:
    """A notebook of a title, `prose` and `cells`: each a source, its recorded outputs and, maybe, its metadata."""
    made = new_notebook(metadata=copy.deepcopy(METADATA))
    made.cells = [new_markdown_cell("# A canary", id="title")]
    for place, (source, outputs, *metadata) in enumerate(cells, start=1):
        made.cells.append(new_code_cell(source, outputs=outputs, execution_count=place, id=f"cell-{place}",
                                        metadata=metadata[0] if metadata else {}))
    made.cells.append(new_markdown_cell(prose, id="prose"))
    return made


def numbered(counts: list[int | None], *cells: tuple) -> NotebookNode:
    """A notebook whose code cells claim `counts`."""
    made = notebook(*cells)
    for cell, count in zip(notebooks.code_cells(made), counts, strict=True):
        cell.execution_count = count
    return made


def asking_for(kernel: str) -> NotebookNode:
    """A notebook recorded with another kernel."""
    made = notebook(("print(6 * 7)", [stdout("42\n")]))
    made.metadata.kernelspec.name = kernel
    return made


def with_widgets() -> NotebookNode:
    """A notebook that carries the state of live widgets."""
    made = notebook(("print(6 * 7)", [stdout("42\n")]))
    made.metadata.widgets = {"application/vnd.jupyter.widget-state+json": {"state": {}}}
    return made


def with_raw_cell() -> NotebookNode:
    """A notebook with a cell that nobody runs and nobody reads."""
    made = notebook(("print(6 * 7)", [stdout("42\n")]))
    made.cells.append(new_raw_cell("print(43)", id="raw"))
    return made


def given(figures: dict[str, str], tags: list[str] | None = None) -> NotebookNode:
    """A notebook whose prose lists figures as given, or is tagged."""
    made = notebook(("print(6 * 7)", [stdout("42\n")]), prose="It says 42.")
    made.cells[-1].metadata = {"tags": tags} if tags else {"course": {"given": figures}}
    return made


def all_canaries() -> dict[str, NotebookNode]:
    """Every canary by its name."""
    from lib.tests.canaries.cunning import hiding_canaries, silent_canaries
    from lib.tests.canaries.more import more_canaries
    return executed_canaries() | read_canaries() | more_canaries() | silent_canaries() | hiding_canaries()


def executed_canaries() -> dict[str, NotebookNode]:
    """The sound one, and those whose defect shows when they are executed."""
    fine = ("print(6 * 7)", [stdout("42\n")])
    error = new_output("error", ename="ZeroDivisionError", evalue="division by zero", traceback=[])
    warned = new_output("stream", name="stderr", text="mind the gap\n")
    updating = "from IPython.display import display\nshown = display('a', display_id=True)\nshown.update('b')"
    printing_then_value = "print('first')\n'second'"
    return {
        "clean": notebook(fine, (shows_picture(), [picture()]), ("6 * 7", [result("42", 3)]),
                          ("_ + 1", [result("43", 4)]), (TIMED, [stdout("1.5\n")], UNCHECKED), prose="It says 42."),
        "stripped_outputs": numbered([None, None], ("print(6 * 7)", []), ("import random\nrandom.random()", [])),
        "emptied_output": notebook(("print(6 * 7)", [])),
        "wrong_text": notebook(("print(6 * 7)", [stdout("43\n")])),
        "wrong_value": notebook(("6 * 7", [result("43", 1)])),
        "counts_out_of_order": numbered([2, 1], fine, fine),
        "stderr": notebook(("import sys\nprint('mind the gap', file=sys.stderr)", [warned])),
        "bad_magic": notebook(("%nosuch\nprint(6 * 7)", [])),
        "dead_kernel": notebook(("import os\nos._exit(3)", []), fine),
        "missing_image": notebook(("print(6 * 7)", [stdout("42\n"), picture()])),
        "lost_alt_text": notebook((shows_picture(None), [picture()])),
        "swapped_output_order": notebook((printing_then_value, [result("'second'", 1), stdout("first\n")])),
        "value_recorded_as_display": notebook(("6 * 7", [new_output("display_data", data={"text/plain": "42"})])),
        "changed_after_shown": notebook((updating, [new_output("display_data", data={"text/plain": "'b'"})])),
        "raises_as_recorded": notebook(("1 / 0", [error], {"tags": ["raises-exception"]})),
        "raises_that_does_not_raise": notebook((*fine, {"tags": ["raises-exception"]})),
        "ignored_in_a_string": notebook(('note = """\n# NBVAL_IGNORE_OUTPUT\n"""\nprint(6 * 7)', [stdout("43\n")])),
        "skipped_by_a_tag": notebook(("print(6 * 7)", [stdout("43\n")], {"tags": ["nbval-skip"]})),
        "unchecked_without_reason": notebook((*fine, {"tags": [notebooks.UNCHECKED_TAG]})),
        "foreign_kernel_name": asking_for("conda-env-mine"),
        "false_claim": notebook(("from lib.show import claim\nanswer = 6 * 7\n"
                                 "claim('six times seven is 43', answer == 43)", [])),
    }


def read_canaries() -> dict[str, NotebookNode]:
    """Those whose defect is seen without executing them."""
    fine = ("print(6 * 7)", [stdout("42\n")])
    return {
        "missing_alt_text": notebook((shows_picture(None), [picture(None)])),
        "trailing_semicolon": notebook(("6 * 7;", [])),
        "widgets_metadata": with_widgets(),
        "machine_path": notebook(("print('/ho' 'me/ada/model')", [stdout("/home/ada/model\n")])),
        "path_in_alt_text": notebook((shows_picture(), [picture("a dot that was kept in /home/ada/dots")])),
        "shell_command": notebook(("import os\n_ = os.system('true')", [])),
        "raw_cell": with_raw_cell(),
        "dead_link": notebook(fine, prose="See [the next lesson](02-none.ipynb)."),
        "dead_anchor": notebook(fine, prose="See [above](#what-is-not-there)."),
        "same_heading_twice": notebook(fine, prose="## A part\n\n## A part"),
        "unborne_figure": notebook(fine, prose="It took 43 tokens."),
        "unborne_in_words": notebook(("print('3 calls, 6 turns')", [stdout("3 calls, 6 turns\n")]),
                                     prose="Three of six turns made a call."),
        "unborne_with_its_noun": notebook(("print('29 tokens')\nprint('3 calls')", [stdout("29 tokens\n3 calls\n")]),
                                          prose="It took **29** calls."),
        "unborne_in_a_heading": notebook(fine, prose="## 43 tokens for a word"),
        "unborne_in_a_link": notebook(fine, prose="See [what 43 tokens are](#a-canary)."),
        "given_without_need": given({"42": "a number of this example"}),
        "exempt_by_a_tag": given({}, tags=["course-no-figures"]),
    }


def write_all() -> None:
    """Writes every canary beside this file."""
    for name, made in all_canaries().items():
        notebooks.write_atomically(FOLDER / f"{name}.ipynb", notebooks.dumps(made))


if __name__ == "__main__":
    write_all()
