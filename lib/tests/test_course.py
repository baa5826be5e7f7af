"""The course as a whole: its files, its README, and what its notebooks say of each other."""
import subprocess

import pytest

from lib.machinery import notebooks, structure
from lib.machinery.structure import course
from lib.tests import toys
from lib.tests.canaries.make import stdout

FINE = ("print(6 * 7)", [stdout("42\n")])
README = """# The course

Two notebooks.

| | what |
|---|---|
| [01 A canary](notebooks/01-toy.ipynb) | this |
| [02 A canary](notebooks/02-more.ipynb) | and more |
"""


@pytest.fixture
def root(tmp_path):
    """A sound course."""
    toys.course(tmp_path, FINE)
    toys.course(tmp_path, FINE, name="02-more", prose="As in lesson 01.")
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "note.md").write_text("A note.\n", encoding="utf-8")
    return tmp_path


def faults(root) -> list[str]:
    return structure.course_faults(sorted((root / "notebooks").glob("*.ipynb")))


def test_a_sound_course_has_no_faults(root):
    assert faults(root) == []


@pytest.mark.parametrize("old, new, fault", [
    ("Two notebooks", "Three notebooks", "it says Three notebooks, and there are 2"),
    ("Two notebooks", "7 notebooks", "it says 7 notebooks"),
    ("[02 A canary]", "[02 Another]", "its table of notebooks differs"),
    ("[02 A canary]", "[03 A canary]", "its table of notebooks differs"),
    ("| [02 A canary](notebooks/02-more.ipynb) | and more |\n", "", "differs from what is there: 02 A canary"),
    ("| this |\n| [02", "| this |\n| [01 A canary](notebooks/01-toy.ipynb) | this |\n| [02", "their order"),
    ("02-more.ipynb)", "03-none.ipynb)", "leads nowhere"),
    ("# The", "[a](#none)\n\n# The", "heading that is not there"),
    ("and more", "/home/ada/course", "README.md: it holds a path of one machine ('/home/ada')"),
    ("more |\n", "more |", "README.md: it does not end with one newline"),
    ("and more", "and\r more", "README.md: a line ends with CR")])
def test_each_defect_of_the_readme_is_named(root, old, new, fault):
    assert old in README
    (root / "README.md").write_text(README.replace(old, new), encoding="utf-8", newline="")
    assert any(fault in one for one in faults(root)), faults(root)


@pytest.mark.parametrize("name, content, fault", [
    ("data/x.md", b"\xe9\n", "data/x.md: the file is not UTF-8"),
    ("data/x.json", b"1", "data/x.json: it does not end"),
    ("results/x.json", b'"/home/ada/x"\n', "results/x.json: it holds a path"),
    ("data/x.txt", b"a\r\n", "ends with CR"),
    ("data/x.txt", b"\xef\xbb\xbfa\n", "byte order mark"), ("lib/x.py", b"1", "lib/x.py: it does not end"),
    ("README.md", README.encode() + b"\xe9\n", "README.md: the file is not UTF-8"),
    ("notebooks/02-more.ipynb", b"{}", "02-more.ipynb is no readable notebook"),
    ("CONTRIBUTING.md", b"[a](none.md)\n", "CONTRIBUTING.md: the link none.md leads nowhere"),
    ("data/big.bin", b"1" * 20_000_001, "bytes; at most 20,000,000")])
def test_each_defect_of_a_file_is_named(root, name, content, fault):
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(content)
    assert any(fault in one for one in faults(root)), faults(root)


@pytest.mark.parametrize("name", ["results/run/x.json", "results/lab/x.json", ".venv/x.py", "lib/__pycache__/x.txt"])
def test_what_runs_leave_behind_is_not_the_course(root, name):
    (root / name).parent.mkdir(parents=True)
    (root / name).write_bytes(b"\xe9" * 20_000_001)
    assert faults(root) == []


def test_with_git_what_is_tracked_is_the_course(root):
    def git(*words: str) -> None:
        subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    (root / "data" / "scratch.md").write_bytes(b"no newline")
    (root / "data" / "note.md").unlink()
    assert faults(root) == []
    git("add", ".")
    assert faults(root) == ["data/scratch.md: it does not end with one newline"]


def test_a_link_to_what_only_this_machine_has(root):
    subprocess.run(["git", "-C", str(root), "init", "-q"], check=True)
    subprocess.run(["git", "-C", str(root), "add", "."], check=True)
    (root / "data" / "mine.md").write_text("Mine.\n", encoding="utf-8")
    (root / "README.md").write_text(f"{README}\n[mine](data/mine.md#a) [not](data/note.md)\n", encoding="utf-8")
    toys.course(root, FINE, name="02-more", prose="As [mine](../data/mine.md) and [all](../data) say.")
    said = "it links to mine.md, which is on this machine and not in the course: git add it"
    assert {one for one in faults(root) if "machine" in one} == {f"README.md: {said}", f"02-more.ipynb: {said}"}


def test_a_lesson_that_a_notebook_names_is_there(root):
    toys.course(root, FINE, name="02-more", prose="As in lesson 07, and in 08.")
    assert faults(root) == ["02-more.ipynb: lesson 07 is not there"]


def test_the_course_itself():
    assert structure.course_faults(notebooks.select([])) == []
    assert len(course.kept_files(notebooks.ROOT)) > 100
