"""The house rules of the code: small rooms that import only rooms above them, short functions, docstrings, a map."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lib.machinery

LIB = Path(lib.machinery.__file__).parents[1]
ROOMS = [  # in import order
    "chat", "strict_json", "schema", "replies", "reader", "checks", "tools", "expression", "calculator", "passages",
    "retrieval", "quantities", "denials", "claims", "grading", "grader_trial", "timing", "text_stream",
    "prefix_cache", "generation", "rag_prompt", "rag", "fast_linear", "models", "dense", "episode", "agent", "lines",
    "failures", "evaluations", "conditions", "agent_log", "trace", "show",
]
WITHOUT_TORCH = ROOMS[:ROOMS.index("text_stream")]
CODE = sorted(path for path in LIB.rglob("*.py") if "tests" not in path.relative_to(LIB).parts)


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> set[str]:
    """The modules of the course that a file imports, wherever in it: 'chat', 'machinery', ..."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {f"{node.module}.{name.name}" for name in node.names}
    return {name.split(".")[1] for name in found if name.startswith("lib.")}


def definitions(parent: ast.Module | ast.ClassDef) -> list:
    """The classes, functions and methods of a file; not the functions inside functions."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    own = [node for node in parent.body if isinstance(node, kinds)]
    return own + [node for item in own if isinstance(item, ast.ClassDef) for node in definitions(item)]


def test_every_room_is_listed():
    assert {path.stem for path in LIB.glob("*.py")} - {"__init__", "__main__"} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_above_it(room):
    assert imported(LIB / f"{room}.py") <= set(ROOMS[: ROOMS.index(room)])


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_the_first_rooms_never_import_torch(room):
    code = f"import sys, lib.{room}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=LIB.parent).returncode == 0


def test_the_rooms_can_be_read_aloud():
    assert sum(len((LIB / f"{room}.py").read_text(encoding="utf-8").splitlines()) for room in ROOMS) <= 4850


@pytest.mark.parametrize("path", CODE, ids=lambda path: path.relative_to(LIB).as_posix())
def test_files_functions_and_docstrings(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 250
    for node in definitions(tree(path)):
        assert node.name.startswith("_") or ast.get_docstring(node), f"{node.name} has no docstring"
        is_class = isinstance(node, ast.ClassDef)
        assert is_class or node.end_lineno - node.lineno < 25, f"{node.name} is too long"


def test_the_map_of_the_machinery_names_every_file():
    files = {path.relative_to(LIB / "machinery").parts[0] for path in CODE if "machinery" in path.parts}
    files = {name.removesuffix(".py") for name in files} - {"__init__"}
    listed = {word.strip(",.") for word in lib.machinery.__doc__.split()}
    assert files <= listed, f"not on the map in lib/machinery/__init__.py: {sorted(files - listed)}"
