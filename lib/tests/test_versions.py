"""What is installed is what environment.yml pins, whole and exact, and no other file is a second list."""
from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from lib.machinery import environment
from lib.machinery.environment import ROOT, normalised

FILE = ROOT / "environment.yml"
LISTS = ["requirements*.txt", "requirements*.in", "constraints*.txt", "setup.py", "setup.cfg", "Pipfile*", "*.lock",
         "poetry.toml", "pixi.toml", "pylock*.toml", "environment*.yaml", "environment-*.yml", "conda-lock*"]
WRITTEN = (".md", ".yml", ".yaml", ".toml", ".cfg", ".ini", ".sh", "")  # kinds of files that could name a version
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the list was made on Linux")
NAMED = re.compile(r"([\w.-]+)(?:==| )(\d+\.\d+\.\d+)\b")
HINT = "run `python3 -m lib doctor`, or give `python3 -m lib run` in a folder without .venv"


@cache
def files() -> list[Path]:
    """The files of the course: those git knows or would add, else all outside folders that are ignored."""
    done = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          capture_output=True, text=True, encoding="utf-8")
    if done.returncode == 0:
        return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]
    parts = {".venv", ".git", "__pycache__", "run", "lab"}
    return [path for path in ROOT.rglob("*") if path.is_file() and not parts & set(path.relative_to(ROOT).parts)]


def by_name() -> list[str]:
    """The packages of environment.yml that the course uses by name, as they stand in its first part."""
    first = FILE.read_text(encoding="utf-8").split("# what those need in turn")[0]
    return [normalised(name) for name in re.findall(r"- ([\w.-]+)==", first)]


def needed(names: list[str]) -> set[str]:
    """These packages, and all that they need in turn on this machine, extras included, by their own metadata."""
    seen, waiting = set(), [(name, "") for name in names]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) not in seen:
            seen.add((name, extra))
            for requirement in map(Requirement, metadata.requires(name) or []):
                if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                    waiting += [(normalised(requirement.name), each) for each in ("", *requirement.extras)]
    return {name for name, _ in seen}


def test_what_is_installed_is_what_is_pinned():
    assert environment.missing() == {}, f"other versions than in environment.yml are installed: {HINT}"


@on_linux
def test_the_pins_are_whole():
    missing = needed(by_name()) - environment.pins().keys()
    assert not missing, f"environment.yml lacks {', '.join(sorted(missing))}, which a package in it needs"


@on_linux
def test_no_pin_is_left_over():
    spare = environment.pins().keys() - needed(by_name())
    assert not spare, f"environment.yml pins {', '.join(sorted(spare))}, which nothing in it needs on this machine"


def test_the_pins_are_read_as_conda_reads_them():
    content = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    assert content.keys() == {"name", "channels", "dependencies"} and content["channels"] == ["conda-forge"]
    python, pip, section = content["dependencies"]
    assert (python, pip, list(section)) == ("python>=3.11,<3.14", "pip", ["pip"])
    pairs = [Requirement(line) for line in section["pip"]]
    assert {normalised(pair.name): str(pair.specifier) for pair in pairs} == {
        name: f"=={version}" for name, version in environment.pins().items()}
    assert len(pairs) == len(environment.pins())


def test_there_is_no_second_list():
    assert [str(path.relative_to(ROOT)) for path in files() for kind in LISTS if path.match(kind)] == []
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.search(r"^\s*(?:optional-)?dependencies\b", project, re.M)
    assert not re.search(r"^\[dependency-groups\]|^\[tool\.(?:poetry|pdm|uv|pixi)", project, re.M)


def test_the_peers_are_a_list_of_other_packages():
    lines = (ROOT / "lib" / "tests" / "extras.txt").read_text(encoding="utf-8").splitlines()
    peers = [Requirement(line) for line in lines if line.strip()]
    assert all(re.fullmatch(r"==[\w.]+", str(peer.specifier)) for peer in peers)
    assert environment.pins().keys().isdisjoint(normalised(peer.name) for peer in peers)


def test_a_version_that_a_document_names_is_the_pinned_one():
    pins, found = environment.pins(), []
    for path in files():
        if path.suffix in WRITTEN and path != FILE and path.parts[-2] != "notes":
            named = NAMED.findall(path.read_text(encoding="utf-8"))
            found += [(path.name, name, version) for name, version in named
                      if pins.get(normalised(name), version) != version]
    assert found == []


def test_a_version_in_a_text_is_noticed():
    assert NAMED.findall("with torch 2.9.1, numpy==1.2.3") == [("torch", "2.9.1"), ("numpy", "1.2.3")]


@pytest.mark.parametrize("name", ["torch", "transformers", "tokenizers", "numpy", "pytest", "pyyaml"])
def test_what_the_course_imports_is_pinned_by_name(name):
    assert name in by_name()
