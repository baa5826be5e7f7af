"""Recording: the same bytes each time, nothing when something is wrong, times only when asked for."""
import json

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from lib.machinery import Stop, notebooks, record, structure
from lib.machinery.normalise import METADATA, keep_unchecked, normalise
from lib.tests.canaries.make import TIMED, UNCHECKED, stdout
from lib.tests.toys import GENERATES, WRITES, course, sources, tree


def test_three_recordings_are_equal_to_the_byte(tmp_path):
    path = course(tmp_path, ("print('một', flush=True)\nprint('hai')\n{'b', 'a'}", []), (GENERATES, []), (WRITES, []),
                  (TIMED, [], UNCHECKED))
    record.record(path, tmp_path)
    first = tree(tmp_path)
    assert set(first) == {"notebooks/01-toy.ipynb", "results/generations/01.json", "results/near-ties.json",
                          "results/table.txt", "results/timings/01.json"}
    for _ in range(2):
        assert record.record(path, tmp_path).endswith("nothing has changed.")
        assert tree(tmp_path) == first
    [fault] = structure.faults(path)
    assert fault.endswith("asks whether it is tested")  # since the toy writes into the ledger by hand


def test_times_are_renewed_only_when_asked_for(tmp_path):
    writes = WRITES.replace("table", "timings").replace('["COURSE_RESULTS"]', '["COURSE_RESULTS"], "timings"')
    writes = writes.replace("\n_ =", "\nfolder.mkdir(exist_ok=True)\n_ =")
    path = course(tmp_path, (TIMED, [stdout("old\n")], UNCHECKED), (writes, []))
    (tmp_path / "results" / "timings").mkdir(parents=True)
    (tmp_path / "results" / "timings" / "timings.txt").write_text("old", encoding="utf-8")
    record.record(path, tmp_path)
    assert tree(tmp_path)["results/timings/timings.txt"] == b"old" and b'"old\\n"' in path.read_bytes()
    record.record(path, tmp_path, times=True)
    assert tree(tmp_path)["results/timings/timings.txt"] == b"42" and b'"old\\n"' not in path.read_bytes()


@pytest.mark.parametrize("source, sentence", [
    ("1 / 0", r"cell 2 \(cell-2\): ZeroDivisionError"),
    ("%nosuch", r"cell 2 \(cell-2\): UsageError"),
    ("import sys\nprint('mind', file=sys.stderr)", r"cell 2 \(cell-2\) writes to stderr"),
    ("import os\nos.system('echo mind >&2')", r"cell 2 \(cell-2\) writes to stderr"),
    ("import os\nos._exit(3)", r"the kernel died in cell 2 \(cell-2\)"),
    ("from IPython.display import display\ndisplay(1, display_id=True).update(2)", "changes an output"),
    ("from IPython.display import clear_output\nclear_output()", "changes an output")])
def test_nothing_is_written_when_something_is_wrong(tmp_path, source, sentence):
    path = sources(tmp_path, WRITES, source)
    before = tree(tmp_path)
    with pytest.raises(Stop, match=f"01-toy is not recorded: .*{sentence}"):
        record.record(path, tmp_path)
    assert tree(tmp_path) == before


def test_an_edit_that_is_made_meanwhile_is_not_lost(tmp_path):
    edit = "from pathlib import Path\np = Path('01-toy.ipynb')\nt = p.read_text(encoding='utf-8')\n" \
           "_ = p.write_text(t.replace('t.replace', 't . replace'), encoding='utf-8')"
    path = sources(tmp_path, edit)
    with pytest.raises(Stop, match="was changed while it was executed"):
        record.record(path, tmp_path)
    assert "t . replace" in path.read_text(encoding="utf-8") and not (tmp_path / "results").exists()


def test_claims_are_strict_while_recording(tmp_path):
    path = sources(tmp_path, "from lib.show import claim\nclaim('two is three', 2 == 3)")
    with pytest.raises(Stop, match="two is three"):
        record.record(path, tmp_path)


def test_only_the_metadata_of_the_course_are_kept():
    raw = new_notebook(cells=[new_code_cell("1", metadata={"tags": ["x"], "collapsed": True, "course": {}})],
                       metadata={"kernelspec": {"name": "mine", "display_name": "Mine"}, "widgets": {},
                                 "language_info": {"name": "python", "version": "3"}})
    raw.nbformat_minor = 4
    del raw.cells[0]["id"]
    made = normalise(raw)
    assert made.metadata == METADATA and made.cells[0].metadata == {"tags": ["x"]}
    assert made.nbformat_minor == 5 and made.cells[0].id
    assert "id" not in raw.cells[0], "the notebook itself is left alone"


def test_old_outputs_of_another_kind_are_not_kept():
    def of(outputs):
        return new_notebook(cells=[new_code_cell(TIMED, id="a", outputs=outputs, metadata=UNCHECKED)])

    now = of([stdout("new")])
    assert keep_unchecked(now, of([])).cells[0].outputs[0].text == "new"
    assert keep_unchecked(now, of([stdout("old")])).cells[0].outputs[0].text == "old"


def test_a_later_notebook_sees_what_an_earlier_one_wrote(tmp_path):
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "earlier.json").write_text("[7]", encoding="utf-8")
    reads = WRITES.split("\n_ =")[0] + "\nprint((folder / 'earlier.json').read_text())"
    path = sources(tmp_path, reads)
    record.record(path, tmp_path)
    assert json.loads(notebooks.code_cells(notebooks.read(path))[0].outputs[0].text) == [7]
