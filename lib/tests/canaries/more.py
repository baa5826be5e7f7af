"""More canaries: defects that came out when every known way of passing unseen was gone through."""
from __future__ import annotations

import unicodedata

from nbformat import NotebookNode
from nbformat.v4 import new_output

from lib.tests.canaries.make import TIMED, UNCHECKED, dot, notebook, numbered, picture, result, shows_picture, stdout

FINE = ("print(6 * 7)", [stdout("42\n")])
TWO = "print('first')\n'second'"
SHOWS_HTML = ("from IPython.display import display\n"
              "display({'text/html': '<b>42</b>', 'text/plain': '42'}, raw=True)")
LATE = ("import threading\nimport time\n\n\ndef late():\n    time.sleep(0.5)\n    print('late')\n\n\n"
        "threading.Thread(target=late).start()")
DIES_LATER = "import os\nimport threading\nimport time\nthreading.Timer(0.3, os._exit, [3]).start()\ntime.sleep(50)"
GENERATES = """import json, os
entry = {"model": "m", "prompt_ids": [1, 2], "ids": [3, 4], "text": "",
         "stop_reason": "eos", "gaps": [0.5, 0.5]}
with open(os.environ["COURSE_LEDGER"], "a", encoding="utf-8") as lines:
    print(json.dumps(entry), file=lines)"""
SET = "print(*{'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight'})"
VIEW = "application/vnd.jupyter.widget-view+json"


def displayed(**data: str) -> NotebookNode:
    """A recorded display; underscores stand for the slashes of its MIME types."""
    return new_output("display_data", data={mime.replace("_", "/"): text for mime, text in data.items()})


def more_canaries() -> dict[str, NotebookNode]:
    """They all show when they are executed."""
    other = picture()
    other.data["image/png"] = dot(255)
    widget = new_output("display_data", data={VIEW: {"model_id": "a"}, "text/plain": "a bar"})
    return {
        "removed_output": notebook((TWO, [stdout("first\n")])),
        "doubled_output": notebook((shows_picture(), [picture(), picture()])),
        "removed_cell": numbered([1, 3], FINE, FINE),
        "unrun_cell": numbered([1, None, 2], FINE, ("print(6 * 7)", []), FINE),
        "needs_a_deleted_cell": notebook(("print(answer)", [stdout("42\n")])),
        "raises_now": notebook(("print(1 / 0)", [stdout("0\n")])),
        "unchecked_raises": notebook((TIMED + "\n1 / 0", [stdout("1.5\n")], UNCHECKED)),
        "unchecked_without_output": notebook((TIMED, [], UNCHECKED)),
        "unchecked_emptied": notebook((TIMED, [stdout("")], UNCHECKED)),
        "another_image": notebook((shows_picture(), [other])),
        "another_alt_text": notebook((shows_picture(), [picture("a single white dot")])),
        "wrong_html": notebook((SHOWS_HTML, [displayed(text_html="<b>43</b>", text_plain="42")])),
        "missing_mime": notebook((SHOWS_HTML, [displayed(text_plain="42")])),
        "warns_now": notebook(("import warnings\nwarnings.warn('mind the gap')", [])),
        "warns_below_python": notebook(("import os\n_ = os.system('echo mind the gap >&2')", [])),
        "random_value": notebook(("import random\nprint(random.SystemRandom().random())", [stdout("0.5\n")])),
        "order_of_a_set": notebook((SET, [stdout("one five three two six four seven eight\n")])),
        "decomposed_letters": notebook(("print('sáu')", [stdout(unicodedata.normalize("NFD", "sáu\n"))])),
        "lost_blank": notebook(("print('six ')", [stdout("six\n")])),
        "late_print": notebook((LATE, []), ("time.sleep(1.5)\nprint(6 * 7)", [stdout("42\n")])),
        "killed_in_a_long_cell": notebook((DIES_LATER, []), FINE),
        "ends_its_kernel": notebook(("exit()", [])),
        "asks_the_reader": notebook(("print(input('?'))", [stdout("42\n")])),
        "widget_output": notebook((*FINE[:1], [widget])),
        "unrecorded_generation": notebook((GENERATES, [])),
        "reordered_cells": notebook(("x = 6 * 7\nx", [result("43", 1)]), ("x = 6 * 7 + 1\nx", [result("42", 2)])),
    }
