"""Paths of one machine are found wherever they stand, and nothing else is taken for one."""
import pytest
from nbformat.v4 import new_output

from lib.machinery.notebooks import ROOT
from lib.machinery.structure import paths
from lib.tests.canaries.make import notebook, picture


@pytest.mark.parametrize("text", [
    "/home/ada/x", "/" + "root/x", "/srv/x", "(/" + "tmp/x)", "/Users/ada",
    "/var/folders/x", "/var/" + "tmp/x", "/mnt/c/x", "/Volumes/x",
    "/usr/lib/python3", r"C:\Users\Ada", "C:\\\\Users\\\\Ada", "c:/users/ada", "%TEMP%", "lib/site-packages/x",
    "lib/dist-packages/x", "ipykernel_123", "<ipython-input-1>", "file:///x", "&#47;home&#47;ada", "%2Fhome%2Fada",
    r"\\lab-server\course\x", r"D:\data\model", "c:/course/x", "/content/drive/MyDrive", "/kaggle/input/x",
    "/workspace/x",
    "/nix/store/x", "/dev/shm/x", "/etc/x", "/usr/share/x", "/Library/Python", "/Applications/x", "/var/lib/x",
    "/cygdrive/c", "/proc/12/maps", "miniconda3/envs/x", "dbfs:/x", "vscode-remote://x", "D:\\\\data\\\\model",
    f"in {ROOT}" if len(ROOT.parts) > 2 else "/home/x"])
def test_a_path_of_one_machine(text):
    assert paths.found_in(text)


@pytest.mark.parametrize("text", ["", "a/home/run", "https://example.org/home/x", "the /temperature", "~/.cache",
                                  "data/notes", "/v1/chat/completions", "/healthz", "10/12",
                                  "a profile://x", "Q:\\nWhat\\nnow", r"\\hline\n", r"\frac{a}{b}", "a:/b", "1:2/3",
                                  "the /library of it", "https://example.org/etc/x", "system/etc/x", "x: a/b/c",
                                  "http://a/b"])
def test_no_path_of_a_machine(text):
    assert paths.found_in(text) is None


@pytest.mark.parametrize("where", ["source", "markdown", "metadata", "notebook", "alt", "svg", "attachment"])
def test_every_place_of_a_notebook_is_looked_at(where):
    path = "see /home/ada/course"
    drawing = new_output("display_data", data={"image/svg+xml": f"<svg>{path}</svg>"}, metadata={"alt": "x"})
    outputs = {"alt": [picture(path)], "svg": [drawing]}.get(where, [])
    made = notebook((f"# {path}" if where == "source" else "1", outputs), prose=path if where == "markdown" else "so")
    if where == "metadata":
        made.cells[0].metadata["course"] = {"given": {path: "1"}}
    if where == "notebook":
        made.metadata["authors"] = [{"name": path}]
    if where == "attachment":
        made.cells[0]["attachments"] = {path: {"image/png": ""}}
    assert len(paths.faults(made)) == 1


def test_a_sound_notebook_and_the_letters_of_a_picture_are_none():
    made = notebook(("1", [picture()]))
    made.cells[0]["attachments"] = {"a.png": {"image/png": "AAAA /home/ada/x"}}
    assert paths.faults(made) == []
