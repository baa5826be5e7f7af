"""The emulated processors: which can be had, what is said of those that can't, and a tiny model on one of them."""

from __future__ import annotations

import argparse
import io
import platform
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lib.machinery import Stop, environment, notebooks, pip
from lib.machinery.drift import arm, emulated, readme, report, verdict
from lib.machinery.drift.factors import REFERENCE, Factor
from lib.machinery.progress import Progress
from lib.tests import drifting


def asked(**change: object) -> argparse.Namespace:
    return argparse.Namespace(**{"notebooks": [], "whole": False, "emulated": True, **change})


@pytest.fixture(autouse=True)
def no_fetching(monkeypatch):
    monkeypatch.setattr(emulated.fetch, "ensure", lambda names: None)


def test_without_an_emulator_two_lines_say_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    with pytest.raises(Stop, match="No other instruction set can be emulated here"):
        emulated.main(asked())
    assert capsys.readouterr().out.splitlines() == [
        f"{name}: not measured: {program} is not there; it is in the package qemu-user of Debian or Ubuntu."
        for name, program in (("x86-64 without AVX", "qemu-x86_64"), ("ARM", "qemu-aarch64"))]


@pytest.mark.parametrize("change", [{"notebooks": ["01"]}, {"whole": True}])
def test_what_cannot_go_with_it_is_told(change):
    with pytest.raises(Stop, match="--emulated looks at one text"):
        emulated.main(asked(**change))


@pytest.mark.parametrize("system, architecture", [("Darwin", "x86_64"), ("Linux", "aarch64"), ("Windows", "AMD64")])
def test_this_python_without_avx_only_where_it_is_for_linux_on_x86(system, architecture, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: architecture)
    monkeypatch.setattr(platform, "system", lambda: system)
    with pytest.raises(Stop, match="it needs Linux on x86-64"):
        emulated.without_avx()


def test_the_emulators_version_is_part_of_the_name(monkeypatch):
    said = SimpleNamespace(stdout="qemu-aarch64 version 7.2.19 (Debian 1:7.2)\nCopyright (c) 2003\n")
    monkeypatch.setattr(shutil, "which", lambda name: name)
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: said)
    assert emulated.version("qemu-aarch64") == "QEMU 7.2.19"


def test_what_is_kept_takes_the_place_of_the_same_processor(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    read_me = tmp_path / "README.md"
    read_me.write_text(f"{readme.BEGIN}\n{readme.END}\n", encoding="utf-8")
    names = ("ARM, emulated (QEMU 7)", "ARM, emulated (QEMU 8)", "x86, emulated (a)")
    for change, name in zip((2e-5, 3e-5, 1e-5), names, strict=True):
        emulated.keep([verdict.Row("emulated", REFERENCE.name, {}, tokens=40, smallest_gap=0.1),
                       verdict.Row("emulated", name, {"machine": "x"}, False, "", 40, change, 0.1),
                       verdict.Row("emulated", "other", {}, not_measured="no")])
    kept = report.read(tmp_path)["emulated"]
    assert [(row["factor"], row["tokens"], row["largest_change"]) for row in kept] == [
        ("ARM, emulated (QEMU 8)", 40, 3e-5), ("x86, emulated (a)", 40, 1e-5)]
    assert "| ARM, emulated (QEMU 8) | 40 | 3.0e-05 | 3,333 | 0 |" in read_me.read_text(encoding="utf-8")


def test_a_python_for_arm_is_fetched_once_and_changes_nothing_of_the_system(tmp_path, monkeypatch):
    calls = []

    def call(*command: str) -> None:
        calls.append(command)
        if "--download-only" in command:
            archives = tmp_path / "results" / "run" / "arm64"
            next(archives.rglob("archives")).joinpath("python.deb").touch()
        if command[0] == "dpkg-deb":
            binary = type(tmp_path)(command[3], "usr", "bin", arm.PYTHON)
            binary.parent.mkdir(parents=True)
            binary.touch()

    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "pins", lambda: {environment.normalised(name): "1.0" for name in arm.COMPILED})
    monkeypatch.setattr(arm, "call", call)
    monkeypatch.setattr(arm, "check", lambda: None)
    monkeypatch.setattr(pip, "install", lambda python, arguments, *rest: calls.append(("pip", *arguments)))
    place = arm.folder(Progress(io.StringIO()))
    assert arm.folder(Progress(io.StringIO())) == place and arm.python(place).exists()
    assert [command[0] for command in calls] == ["apt-get", "apt-get", "dpkg-deb", "pip"]
    assert all(command[1] == "-c" for command in calls[:2]) and not (place / "apt").exists()
    assert {"manylinux_2_28_aarch64", "--only-binary", f"torch=={arm.TORCH}", "PyYAML==1.0"} <= set(calls[3])
    paths = arm.variables(place)["PYTHONPATH"].split(":")
    assert paths[:2] == [str(tmp_path), str(place / "site")] and len(paths) == 3


def test_where_debians_tools_fail_their_last_word_is_told(monkeypatch):
    failed = SimpleNamespace(returncode=100, stderr="W: x\nE: Unable to locate package\n", stdout="")
    monkeypatch.setattr(subprocess, "run", lambda *arguments, **options: failed)
    with pytest.raises(Stop, match="apt-get did not bring python.* for ARM .E: Unable to locate package.; Debian 12"):
        arm.call("apt-get", "update")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Stop, match="apt-get and dpkg-deb is not there"):
        arm.check()


def test_a_factor_with_another_command_is_run_by_it(tmp_path, monkeypatch):
    """The tiny model where the emulator would be: this Python itself, called through another command."""
    monkeypatch.setattr(emulated, "TOKENS", 6)
    here = Factor("here", {"machine": platform.machine()}, command=(sys.executable, "-X", "utf8"))
    there = Factor("elsewhere", {"machine": "vax"}, command=(sys.executable, "-X", "utf8"))
    rows = emulated.measure([here, there], drifting.LOADER, root=tmp_path, progress=Progress(io.StringIO()))
    assert [row.factor for row in rows] == [REFERENCE.name, "here", "elsewhere"] and rows[0].tokens == 6
    assert rows[1].not_measured == "the reference runs like this here"
    assert rows[2].not_measured == f"machine is {platform.machine()} and not vax"
