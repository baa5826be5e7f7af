"""The list of what is not compared: it and the notebooks' tags have to say the same."""
import json

import pytest

from lib.machinery import notebooks, unchecked
from lib.tests.canaries.make import TIMED, UNCHECKED, stdout
from lib.tests.toys import course

FINE = ("print(6 * 7)", [stdout("42\n")])
TIME = (TIMED, [stdout("1.5\n")], UNCHECKED)
REASON = UNCHECKED["course"]["unchecked"]


@pytest.mark.parametrize("cells, entries, says", [
    ([FINE], [], None), ([FINE, TIME], [("01-toy", "cell-2", REASON)], None),
    ([FINE, TIME], [], "cell cell-2 is not compared, and lib/machinery/list.json does not list it"),
    ([FINE, TIME], [("02-toy", "cell-2", REASON)], "does not list it"),
    ([FINE], [("01-toy", "cell-1", REASON)], "cell cell-1 is listed"),
    ([FINE, TIME], [("01-toy", "cell-2", "another")], "and lib/machinery/list.json gives 'another'")])
def test_tags_and_list_are_one(tmp_path, cells, entries, says):
    file = tmp_path / "list.json"
    names = ("notebook", "cell", "reason")
    file.write_text(json.dumps([dict(zip(names, entry, strict=True)) for entry in entries]), encoding="utf-8")
    found = unchecked.faults(course(tmp_path, *cells), file)
    assert len(found) == (says is not None) and all(says in fault for fault in found), found


def test_the_course_and_its_list_agree():
    paths = notebooks.select([])
    assert [fault for path in paths for fault in unchecked.faults(path)] == []
    entries = json.loads(unchecked.LIST.read_text(encoding="utf-8"))
    assert {entry["notebook"] for entry in entries} <= {path.stem for path in paths}
    assert all(set(entry) == {"notebook", "cell", "reason"} and entry["reason"] for entry in entries)
