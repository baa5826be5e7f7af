"""What the structure half says about notebooks' files: one fault for one defect, nothing about a sound one."""
import json

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output, new_raw_cell

from lib.machinery import notebooks, structure
from lib.machinery.structure import prose, recorded, source
from lib.tests.canaries.make import FOLDER, TIMED, UNCHECKED, dot, notebook, stdout
from lib.tests.toys import course

FINE = ("print(6 * 7)", [stdout("42\n")])


def test_a_sound_notebook_has_no_faults(tmp_path):
    path = course(tmp_path, FINE, (TIMED, [stdout("1.5\n")], UNCHECKED),
                  prose="## A part\n\n[a link](01-toy.ipynb#a-part)")
    assert structure.faults(path) == []


@pytest.mark.parametrize("old, new, fault", [
    ('"nbformat_minor": 5', '"nbformat_minor": 4', "the format is 4.4, not 4.5"),
    ('   "id": "title",\n', "", "a cell has no id"),
    ('"id": "title"', '"id": "prose"', "two cells have the same id"),
    ('"id": "title"', '"id": "no blanks"', "it is no valid notebook"),
    ('"name": "python"\n', '"name": "python",\n   "version": "3.11.7"\n', "the metadata 'language_info'"),
    ('"nbformat": 4,', '"nbformat": 4,\n "extra": 1,', "it is no valid notebook"),
    ('"42\\n"', '"42\\u000a"', "the file is not in the form that `record` writes"),
    ("\n}\n", "\n}", "the file does not end with one newline"),
    ("\n}\n", "\n}\n\n", "the file does not end with one newline"),
    ("\n}\n", "\r\n}\n", "a line ends with CR"),
    ("6 * 7", "6 * é", "not UTF-8"),
    ("6 * 7", "x" * 1_000_001, "the file is larger than 1,000,000 bytes"),
    ("{\n", "[\n", "no readable notebook"),
    ('"execution_count": 1', '"execution_count": 2', "its count is 2, and it should be 1")])
def test_each_defect_of_the_file_is_named(tmp_path, old, new, fault):
    path = course(tmp_path, FINE)
    text = path.read_text(encoding="utf-8").replace(old, new, 1)
    path.write_bytes(text.encode("latin-1" if "é" in text else "utf-8"))
    assert any(fault in found for found in structure.faults(path)), structure.faults(path)


@pytest.mark.parametrize("text", [
    "x = 1", "'%d' % 3", "a = '!ls'; b = 2", "'''\n%time\n!ls\n'''", "# %time ? ;", "print('a;')", "await f()",
    "x = 7 % 2  # ends;", "protocol.system", "os.path.join('a')", "\n".join(["x = 1"] * 20), "x = " + "1" * 75])
def test_plain_python_is_fine(text):
    assert source.faults(new_code_cell(text)) == []


@pytest.mark.parametrize("text, fault", [
    ("", "it is empty"), (" \n", "it is empty"), ("%time 1", "no plain Python"), ("%%bash\nls", "no plain Python"),
    ("x = %time 1", "no plain Python"), ("!ls", "no plain Python"), ("x = !ls", "no plain Python"),
    ("print?", "no plain Python"), ("?print", "no plain Python"),
    ("get_ipython().run_line_magic('time', '')", "IPython's"), ("from IPython import get_ipython as g", "IPython's"),
    ("import IPython\nIPython.get_ipython()", "IPython's"), ("import os\nos.system('ls')", "the system's shell"),
    ("import subprocess", "the system's shell"), ("from subprocess import run", "the system's shell"),
    ("os.popen('ls')", "the system's shell"), ("# " + "漢" * 39, "80 columns"),
    ("# " + "x" * 50 + "\f" + "x" * 50, "103 col"),
    ("if 1:\n\tx = " + "1" * 70, "82 columns"),
    ("x = 1;", "line 1 ends with ';'"), ("x = 1;  # so\ny", "line 1 ends with ';'"), ("(1,\n2);\n", "line 2 ends"),
    ("\n".join(["x = 1"] * 21), "21 lines"), ("x = " + "1" * 76, "80 columns"), ("# NBVAL_SKIP", "marker of nbval"),
    ("'''\n# NBVAL_IGNORE_OUTPUT\n'''", "marker of nbval")])
def test_what_only_a_notebook_understands_is_named(text, fault):
    assert any(fault in found for found in source.faults(new_code_cell(text)))


@pytest.mark.parametrize("text", ["6 * 7 = 42", "p. 3 at 10:30", "port of call", "a/home/run", "3.5 tokens",
                                  "at 0 x", "version 2", "torch 3 lamps", "the /temperature"])
def test_an_output_that_tells_nothing_of_the_machine(text):
    assert recorded.faults(new_code_cell("1", outputs=[stdout(text)])) == []


@pytest.mark.parametrize("text, what", [
    ("see /home/ada/x", "path"), ("/" + "tmp/x", "path"), (r"C:\Users\Ada", "path"), ("C:\\\\Users\\\\Ada", "path"),
    ("/Users/ada", "path"), ("lib/site-packages/x", "path"), ("ipykernel_123", "path"), ("127.0.0.1", "address"),
    ("http://localhost:8888", "address"), ("port 8888", "address"), ("<f at 0x7f3a>", "object"),
    ("Python 3.11.7", "version"), ("2.13.0+cpu", "version"), ("torch 2.13", "version"),
    ("UsageError: no", "failed magic")])
@pytest.mark.parametrize("kind", ["stream", "value", "html"])
def test_what_an_output_tells_of_the_machine(text, what, kind):
    output = {"stream": stdout(text), "value": new_output("execute_result", data={"text/plain": text}),
              "html": new_output("display_data", data={"text/html": f"<p>{text}</p>"})}[kind]
    assert any(what in fault for fault in recorded.faults(new_code_cell("1", outputs=[output])))


@pytest.mark.parametrize("data, metadata, fault", [
    ({"image/png": dot()}, {"image/png": {"alt": "a single black dot"}}, False),
    ({"image/svg+xml": "<svg/>"}, {"alt": "a single black dot"}, False),
    ({"text/html": "<img alt='a single black dot' src='x'>"}, {}, False),
    ({"image/png": dot()}, {"image/png": {"alt": "a dot"}}, True), ({"image/svg+xml": "<svg/>"}, {}, True),
    ({"image/jpeg": "x"}, {"image/png": {"alt": "a single black dot"}}, True),
    ({"image/png": dot()}, {"image/png": {"alt": "image image image image"}}, True),
    ({"image/png": dot()}, {"image/png": {"alt": "figure 3 of it.png"}}, True),
    ({"text/markdown": "![a single black dot](x)"}, {}, False), ({"text/markdown": "![](x)"}, {}, True),
    ({"text/html": "<img src='x'>"}, {}, True)])
def test_images_say_what_they_show(data, metadata, fault):
    output = new_output("display_data", data=data, metadata=metadata)
    assert bool(recorded.image_faults(output)) == fault


@pytest.mark.parametrize("text, fault", [
    ("## A\n\n### B\n\n## C", None), ("```\n# no heading\n```\n## A", None), ("`# x`", None),
    ("# Again", "more than one title"), ("Again\n=====", "more than one title"), ("<h1>Again</h1>", "more than one"),
    ("## A\n\n## A", "2 headings read 'a'"), ("## A b\n\n### A *b*", "2 headings read 'a-b'"),
    ("##  ", "says nothing"), ("### Deep", "skips a level"), ("## A\n#### Deep", "'Deep' skips a level")])
def test_headings_in_order(text, fault):
    found = prose.heading_faults(notebook(prose=text))
    assert (fault is None and not found) or any(fault in one for one in found)


def test_a_notebook_starts_with_its_title():
    made = notebook(prose="# Late")
    made.cells[0].source = "## Early"
    assert prose.heading_faults(made)[0].startswith("the notebook does not start with a title")


def test_nothing_stands_before_the_title():
    made = notebook(FINE)
    made.cells.insert(0, made.cells.pop(1))
    assert prose.heading_faults(made) == ["the notebook does not start with a title (# …)"]
    made.cells.insert(0, new_markdown_cell("First this.\n\n# Then that", id="early"))
    assert prose.heading_faults(made)[0] == "the notebook does not start with a title (# …)"


@pytest.mark.parametrize("text, faults", [
    ("![a dot](x.png)", 0), ("![](x.png)", 1), ("<img src='x' alt='a dot'>", 0), ("<img src='x'>", 1),
    ("<img src='x' alt=''>", 1), ("![plot.png](x.png)", 1), ("![ ](x.png)", 1), ("![image](x.png)", 1),
    ("![Figure 1](x.png)", 1), ("<img src='x' alt='the plot'>", 1), ("<img src='x' alt=\"the model's turns\">", 0)])
def test_pictures_in_markdown_say_what_they_show(text, faults):
    assert len(prose.image_faults(notebook(prose=text))) == faults


@pytest.mark.parametrize("change, fault", [
    (lambda made: made.cells[0].metadata.update(tags=["course-no-figures"]), "'course-no-figures' does not belong"),
    (lambda made: made.cells[0].metadata.update(course={"note": "x"}), "'note' does not belong"),
    (lambda made: made.cells[0].metadata.update(course={"unchecked": "x"}), "'unchecked' does not belong"),
    (lambda made: made.cells[1].metadata.update(course={"given": {}}), "'given' does not belong"),
    (lambda made: made.cells[1].metadata.update(collapsed=True), "'collapsed' does not belong"),
    (lambda made: made.cells[1].metadata.update(tags=["nbval-skip"]), "'nbval-skip' does not belong"),
    (lambda made: made.metadata.update(widgets={}), "'widgets' does not belong"),
    (lambda made: made.metadata.kernelspec.update(name="mine"), "the metadata 'kernelspec' is"),
    (lambda made: made.cells.append(new_raw_cell("x", id="raw")), "a raw cell")])
def test_metadata_that_no_recording_holds(change, fault):
    made = notebook(FINE)
    assert structure.metadata_faults(made) == []
    change(made)
    assert [fault in one for one in structure.metadata_faults(made)] == [True]


@pytest.mark.parametrize("text, left", [("we measured LEDGER_READ", True), ("TODO: say why", True), ("3 XXX", True),
                                        ("the name `IN_A_ROW` in code", False), ("BM25, JSON and NFC", False)])
def test_words_left_to_be_filled_in_are_faults(text, left):
    assert bool(prose.placeholder_faults(notebook(prose=text))) == left


@pytest.mark.parametrize("cells, unchecked, faults", [(3, 1, 0), (3, 2, 1), (20, 1, 0), (20, 2, 1), (21, 2, 0)])
def test_one_cell_in_twenty_may_be_unchecked(tmp_path, cells, unchecked, faults):
    made = [(TIMED, [], UNCHECKED)] * unchecked + [FINE] * (cells - unchecked)
    paths = [course(tmp_path, *made[:2], name="01-a"), course(tmp_path, *made[2:], name="02-b")]
    assert len(structure.share_faults(paths)) == faults


@pytest.mark.parametrize("metadata, source_text, faults", [
    (UNCHECKED, TIMED, 0), (UNCHECKED, "1", 1), ({"tags": UNCHECKED["tags"]}, TIMED, 1),
    ({"tags": UNCHECKED["tags"]}, "1", 2), ({"course": UNCHECKED["course"]}, TIMED, 1)])
def test_an_unchecked_cell_says_why(metadata, source_text, faults):
    assert len(structure.unchecked_faults(new_code_cell(source_text, metadata=metadata))) == faults


def test_the_canaries_are_those_that_their_maker_makes():
    from lib.tests.canaries.make import all_canaries
    made = {f"{name}.ipynb": notebooks.dumps(canary) for name, canary in all_canaries().items()}
    assert {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.ipynb")} == made
    assert all(json.loads(text) for text in made.values())


@pytest.mark.parametrize("text", ["", "AAAA", "bm90IGEgcGljdHVyZQ==", dot()[:40]])
def test_what_is_no_picture_is_a_fault(text):
    alt = {"image/png": {"alt": "a single black dot"}}
    output = new_output("display_data", data={"image/png": text}, metadata=alt)
    assert recorded.image_faults(output) == ["an image is no PNG that can be shown"]
