"""Links lead to files and headings that are there, in the course, spelt as they are."""
import pytest

from lib.machinery import notebooks
from lib.machinery.structure import links
from lib.tests.canaries.make import stdout
from lib.tests.toys import course

FINE = ("print(6 * 7)", [stdout("42\n")])


@pytest.fixture
def root(tmp_path):
    """A course of two notebooks and a README."""
    course(tmp_path, FINE, prose="## A part")
    course(tmp_path, FINE, name="02-more", prose="## More: *of* it")
    (tmp_path / "README.md").write_text("# The course\n\n## How it is built\n", encoding="utf-8")
    (tmp_path.parent / "outside.md").write_text("# Out\n", encoding="utf-8")
    return tmp_path


def faults(root, text: str) -> list[str]:
    path = course(root, FINE, prose=f"## A part\n\n{text}")
    return links.faults(notebooks.read(path), path)


@pytest.mark.parametrize("text", [
    "[a](02-more.ipynb) [b](<02-more.ipynb>) [c](../README.md) [d](..)",
    "[e](https://example.org) [f](mailto:a@b.org)",
    "[a](#a-part) [b](#A-part) [c](02-more.ipynb#more-of-it) [d](../README.md#how-it-is-built)", "`[a](nowhere)`",
    "[lesson 02](02-more.ipynb)", "[a][b]\n\n[b]: 02-more.ipynb", "<a href='02-more.ipynb'>a</a>"])
def test_sound_links(root, text):
    assert faults(root, text) == []


@pytest.mark.parametrize("text, fault", [
    ("[a](03-none.ipynb)", "leads nowhere"), ("![a picture](none.png)", "leads nowhere"), ("[a]()", "leads nowhere"),
    ("[a](/etc)", "leads nowhere"), ("[a](02-More.ipynb)", "leads nowhere"),
    ("[a](../../outside.md)", "leads nowhere"),
    ("<a href='none.md'>a</a>", "leads nowhere"), ("<img alt='a dot' src='none.png'>", "leads nowhere"),
    ("[a][b]\n\n[b]: none.md", "leads nowhere"), ("[a][b]", "defined nowhere"),
    ("[![dot](none.png)](..)", "leads nowhere"),
    ("![a dot](attachment:dot.png)", "leads nowhere"), ("[a](#none)", "a heading that is not there"),
    ("[a](02-more.ipynb#none)", "a heading that is not there"),
    ("[a](../README.md#none)", "a heading that is not there"),
    ("[lesson 01](02-more.ipynb)", "which is another notebook")])
def test_links_that_mislead(root, text, fault):
    assert [fault in one for one in faults(root, text)] == [True]


def test_an_attached_image_is_there(root):
    path = course(root, FINE, prose="![a dot](attachment:dot.png)")
    notebook = notebooks.read(path)
    notebook.cells[-1]["attachments"] = {"dot.png": {"image/png": ""}}
    assert links.faults(notebook, path) == []


@pytest.mark.parametrize("text, faults", [("[a](notebooks/01-toy.ipynb#a-part) [b](#the-course)", 0),
    ("[a](data)", 1),
                                          ("[a](#none)", 1), ("[a](notebooks/01-toy.ipynb#none)", 1)])
def test_links_of_a_document(root, text, faults):
    document = root / "README.md"
    document.write_text(f"# The course\n\n{text}\n", encoding="utf-8")
    assert len(links.document_faults(document)) == faults
