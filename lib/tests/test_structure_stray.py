"""Files that would be read in place of others, or that another system cannot hold."""
import os
from pathlib import Path

import pytest

from lib.machinery import notebooks
from lib.machinery.structure import course, stray
from lib.tests import toys
from lib.tests.canaries.make import stdout


@pytest.fixture
def root(tmp_path):
    """A course with one notebook."""
    toys.course(tmp_path, ("print(6 * 7)", [stdout("42\n")]))
    for name in ("lib/__init__.py", "lib/tests/conftest.py", "lib/tests/canaries/a.ipynb", "scratch.py", "data/a.md",
                 "notebooks/.ipynb_checkpoints/a.ipynb", "notebooks/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("", encoding="utf-8")
    return tmp_path


def faults(root: Path) -> list[str]:
    return stray.faults(root, course.kept_files(root))


def test_a_sound_course_and_this_one(root):
    assert faults(root) == [] and faults(notebooks.ROOT) == []


@pytest.mark.parametrize("name, fault", [
    ("conftest.py", "change how tests"), ("lib/conftest.py", "change how tests"),
    ("pytest.ini", "in place of another"),
    ("lib/tests/tox.ini", "change how tests"), ("sitecustomize.py", "in place of another"),
    ("json.py", "in place of another"), ("torch.py", "in place of another"),
    ("torch/__init__.py", "in place of another"),
    ("notebooks/json.py", "would be read by a kernel"), ("notebooks/lib/a.txt", "would be read by a kernel"),
    ("notebooks/matplotlibrc", "would be read by a kernel"), ("data/a.ipynb", "outside of notebooks/"),
    ("notebooks/02-a.IPYNB", "not spelt .ipynb"), ("data/A.md", "differ in capitals alone"),
    ("data/aux.md", "Windows does not allow"), ("data/a:b.md", "Windows does not allow"),
    ("data/a./b.md", "Windows does not allow")])
@pytest.mark.skipif(os.name == "nt", reason="not every name is one there")
def test_what_does_not_belong_there(root, name, fault):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text("", encoding="utf-8")
    assert any(fault in found for found in faults(root)), faults(root)


@pytest.mark.parametrize("target", ["a.md", "nowhere.md", "/"])
@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_link_in_place_of_a_file(root, target):
    (root / "data" / "link.md").symlink_to(target)
    found = stray.faults(root, [*course.kept_files(root), root / "data" / "link.md"])
    assert found == ["data/link.md: it is a link to another file, which not every system keeps"]
