"""Canaries whose outputs come out again as recorded: wrong is how they come about, or what they hide."""
from __future__ import annotations

from nbformat import NotebookNode

from lib.tests.canaries.make import notebook, stdout
from lib.tests.canaries.more import FINE, displayed

CLAIM = "from lib.show import claim\n"
PRINTED = [stdout("42\n")]


def claimed(condition: str, words: str = "it is so", before: str = "") -> NotebookNode:
    """A notebook with one claim that holds."""
    return notebook((f"{CLAIM}{before}answer = 6 * 7\nclaim({words!r}, {condition})", [stdout(f"✓ {words}\n")]))


def silent_canaries() -> dict[str, NotebookNode]:
    """Cells that cannot fail, or that take care not to be seen failing."""
    caught = "try:\n    claim('it is so', answer == 43)\nexcept AssertionError:\n    print('it is so')"
    return {
        "claim_that_cannot_fail": claimed("answer == 43 or True"),
        "claim_of_itself": claimed("answer == answer"),
        "claim_of_another_number": claimed("answer == 42", "the answer is 43"),
        "claim_in_a_try": notebook((f"{CLAIM}answer = 6 * 7\n{caught}", [stdout("it is so\n")])),
        "tick_without_a_claim": notebook(("print('✓ it is so')", [stdout("✓ it is so\n")])),
        "claim_replaced": claimed("answer == 43", before="def claim(text, holds):\n    print(chr(10003), text)\n"),
        "figure_from_nowhere": notebook(("print('43 tokens')", [stdout("43 tokens\n")]), prose="It took 43 tokens."),
        "silenced_warnings": notebook(("import warnings\nwarnings.simplefilter('ignore')", [])),
        "asks_whether_it_is_tested": notebook(("import os\nprint(6 * 7 if 'COURSE_STRICT' in os.environ else 43)",
                                               PRINTED)),
        "reads_its_recording": notebook(("print(len(open('01-toy.ipynb').read()) and 42)", PRINTED)),
        "name_of_its_reader": notebook(("import getpass\nprint(getpass.getuser())", [stdout("ada\n")])),
        "code_in_a_text": notebook(("exec('print(6 * 7)')", PRINTED)),
        "claim_recorded_as_false": notebook((f"{CLAIM}claim('it is so', len('a') == 2)",
                                             [stdout("recorded: it is so, here: it does not hold\n")])),
    }


def hiding_canaries() -> dict[str, NotebookNode]:
    """Signs, scripts and addresses that a reader does not see, or cannot follow."""
    attached = notebook(FINE, prose="![bars of what was found](attachment:bars.png)")
    attached.cells[-1]["attachments"] = {"bars.png": {"image/png": "iVBORw0KGgo="}}
    return {
        "invisible_sign": notebook(FINE, prose="It is \u202eso\u202c."),
        "letters_of_two_scripts": notebook(("tоtal = 6 * 7\nprint(tоtal)", PRINTED)),
        "colours_of_a_terminal": notebook(("print('\\x1b[1m42\\x1b[0m')", [stdout("\x1b[1m42\x1b[0m\n")])),
        "script_in_an_output": notebook(("from IPython.display import display\n"
                                         "display({'text/html': '<script>1</script>'}, raw=True)",
                                         [displayed(text_html="<script>1</script>")])),
        "picture_from_the_net": notebook(FINE, prose="![bars of what was found](https://example.org/bars.png)"),
        "picture_that_no_cell_made": attached,
        "link_to_one_machine": notebook(FINE, prose="See [the server](http://localhost:8888/tree)."),
        "hidden_from_its_reader": notebook(FINE, prose="<p style='display: none'>It is not so.</p>"),
        "comment_without_an_end": notebook(FINE, prose="It is so. <!-- What comes is not shown."),
        "cell_that_says_nothing": notebook(FINE, prose="<!-- later -->"),
        "two_columns_of_the_text": notebook(FINE, prose="| the text reports | The text reports |\n|---|---|\n"
                                                        "| 42 | 43 tokens |"),
    }
