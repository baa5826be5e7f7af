"""The working copy: a reader's edits survive whatever the course does; and a real JupyterLab on it."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from lib.machinery import environment, lab, notebooks
from lib.machinery.copies import Copies


@pytest.fixture
def course(tmp_path):
    """(original notebook, its working copy's folder)."""
    original = tmp_path / "notebooks" / "01-chào.ipynb"
    original.parent.mkdir()
    original.write_text('{"cells": ["một"]}\n', encoding="utf-8")
    return original, Copies(tmp_path / "lab")


def edit(path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def test_a_new_notebook_is_copied(course):
    original, copies = course
    assert copies.refresh([original]) == []
    assert copies.path(original).read_bytes() == original.read_bytes()


@pytest.mark.parametrize("edited, changed, stays, sentences", [
    (False, False, False, 0), (False, True, False, 0), (True, False, True, 0), (True, True, True, 1),
])
def test_only_what_the_reader_did_not_touch_follows_the_course(edited, changed, stays, sentences, course):
    original, copies = course
    copies.refresh([original])
    if edited:
        edit(copies.path(original), "mine")
    if changed:
        edit(original, "new")
    said = copies.refresh([original])
    assert len(said) == sentences and all("reset 01" in sentence for sentence in said)
    assert copies.path(original).read_text(encoding="utf-8") == ("mine" if stays else original.read_text("utf-8"))


def test_a_changed_notebook_reaches_an_untouched_copy_again_and_again(course):
    original, copies = course
    for text in ("one", "two", "three"):
        edit(original, text)
        copies.refresh([original])
        assert copies.path(original).read_text(encoding="utf-8") == text


@pytest.mark.parametrize("notes", [None, "", "{", "[]"])
def test_copies_whose_notes_were_lost_count_as_the_readers(notes, course):
    original, copies = course
    copies.refresh([original])
    edit(copies.path(original), "mine")
    state = copies.folder / ".originals.json"
    state.unlink() if notes is None else edit(state, notes)
    assert len(copies.refresh([original])) == 1
    assert copies.path(original).read_text(encoding="utf-8") == "mine"


def test_a_copy_made_by_a_killed_run_is_no_edit(course):
    original, copies = course
    copies.folder.mkdir()
    copies.path(original).write_bytes(original.read_bytes())  # copied, not yet written down
    assert copies.refresh([original]) == [] and not copies.is_edited(original)


def test_reset_never_loses_work(course):
    original, copies = course
    copies.refresh([original])
    assert "mine" not in copies.reset(original)
    for text in ("first", "second", "third"):
        edit(copies.path(original), text)
        assert ".mine" in copies.reset(original)
        assert copies.path(original).read_bytes() == original.read_bytes()
    kept = {path.name: path.read_text(encoding="utf-8") for path in copies.folder.glob("*.mine*.ipynb")}
    assert kept == {"01-chào.mine.ipynb": "first", "01-chào.mine-2.ipynb": "second", "01-chào.mine-3.ipynb": "third"}


def test_reset_brings_a_deleted_copy_back(course):
    original, copies = course
    copies.refresh([original])
    copies.path(original).unlink()
    copies.reset(original)
    assert copies.path(original).exists()


def test_the_command_line_of_jupyterlab(tmp_path):
    line = lab.command(tmp_path, [tmp_path / "x" / "01-a.ipynb"], no_browser=True, port=0)
    assert line[:3] == [sys.executable, "-m", "jupyterlab"] and line[-1] == str(tmp_path / "01-a.ipynb")
    assert {"--no-browser", "--port=0", f"--ServerApp.root_dir={tmp_path}"} <= set(line)
    assert not [part for part in lab.command(tmp_path, []) if part.endswith(".ipynb")]


def started(tmp_path) -> tuple[subprocess.Popen, str, str]:
    """A real JupyterLab in `tmp_path`, its address and its token."""
    code = ("import sys, pathlib; from lib.machinery import commands, lab; folder = pathlib.Path(sys.argv[1])\n"
            "commands.prepare(); sys.exit(lab.serve(lab.command(folder, [], True, 0), folder))")
    home = {name: str(tmp_path / "home") for name in ("HOME", "USERPROFILE", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    (tmp_path / "home").mkdir()
    surroundings = {**environment.variables(environment.Path(sys.executable)), **home}
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], cwd=environment.ROOT, env=surroundings,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    for line in process.stderr:
        if found := re.search(r"(http://127\.0\.0\.1:\d+)/lab\?token=(\w+)", line):
            return process, found[1], found[2]
    raise AssertionError("JupyterLab ended without an address")


def ask(address: str, token: str, body: dict | None = None) -> dict:
    """What the server's API answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data, {"Authorization": f"token {token}"})
    for patience in range(100):  # the address is printed a moment before somebody listens at it
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
                return json.load(reply)
        except urllib.error.URLError as error:
            if not isinstance(error.reason, ConnectionRefusedError) or patience == 99:
                raise
            time.sleep(0.2)


def execute(address: str, token: str, kernel: str, code: str) -> str:
    """What a cell prints in a kernel of the server's."""
    import websocket
    channels = f"{address.replace('http', 'ws')}/api/kernels/{kernel}/channels?token={token}"
    socket = websocket.create_connection(channels, timeout=60, http_no_proxy=["*"])
    header = {"msg_id": "1", "msg_type": "execute_request", "session": "s", "username": "", "version": "5.3"}
    content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
    socket.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "content": content,
                            "channel": "shell"}))
    printed = ""
    while (message := json.loads(socket.recv())).get("parent_header", {}).get("msg_id") != "1" or \
            message["msg_type"] != "execute_reply":
        if message["msg_type"] in ("stream", "error"):
            printed += message["content"].get("text") or message["content"]["evalue"]
    socket.close()
    return printed


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_real_jupyterlab_starts_imports_lib_and_ends_in_silence(end, tmp_path):
    process, address, token = started(tmp_path)
    try:
        assert "version" in ask(f"{address}/api", token)
        kernel = ask(f"{address}/api/kernels", token, {"name": "python3"})["id"]
        code = "import lib, os, sys; print(lib.__path__[0], sys.executable, os.environ['COURSE_RESULTS'], sep='|')"
        found = execute(address, token, kernel, code).strip().split("|")
        assert found == [str(environment.ROOT / "lib"), sys.executable, str(tmp_path / "results")]
    finally:
        begun = time.monotonic()
        process.send_signal(end)
        with process.stderr:
            said = process.stderr.read()
        code = process.wait(60)
    assert code == (0 if end == signal.SIGINT else 143)
    assert "Traceback" not in said and time.monotonic() - begun < 30


def test_lab_brings_the_copies_up_to_date_before_it_starts(tmp_path, monkeypatch, capsys):
    from lib.machinery import commands, fetch
    done = []
    monkeypatch.setattr(fetch, "ensure", lambda names: done.append("models"))
    monkeypatch.setattr(lab, "LAB", tmp_path)
    monkeypatch.setattr(lab, "Copies", lambda: Copies(tmp_path))
    monkeypatch.setattr(lab, "serve", lambda line, folder: done.append(line[-1]) or 0)
    first = notebooks.select([])[0]
    assert lab.main(commands.parse(["lab", first.name[:2]])) == 0
    assert done == ["models", str(tmp_path / first.name)] and (tmp_path / first.name).exists()
    assert "Ctrl-C" in capsys.readouterr().out
    (tmp_path / first.name).write_text("mine", encoding="utf-8")
    assert lab.reset(commands.parse(["reset", first.name[:2]])) == 0
    assert os.path.exists(tmp_path / f"{first.stem}.mine.ipynb")
