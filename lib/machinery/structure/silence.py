"""Source that silences warnings, asks whether it is tested, reads the recording, or shows facts of one machine."""
from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator

from nbformat import NotebookNode

from lib.machinery import notebooks
from lib.machinery.structure.honest import name_of
from lib.machinery.structure.source import parsed

_WIDE = {name for name in dir(builtins) if name.endswith("Warning")}  # Python's own: anything raises them
_CATEGORY = {"simplefilter": 1, "filterwarnings": 2}  # the place of the category among the arguments
_SILENT = {"redirect_stderr", "dup2", "captureWarnings"}
_OWN_MACHINE = {"getuser", "getlogin", "gethostname", "uname", "cpu_count", "today", "utcnow", "strftime", "ctime",
                "localtime", "expanduser", "getpid", "uuid1", "uuid4"}
_TESTED = re.compile(r"COURSE_(?:STRICT|LEDGER)|PYTEST_")
_RECORDING = re.compile(r"\.ipynb\b|\bgenerations/|\bnear-ties\b")


def faults(cell: NotebookNode) -> list[str]:
    """What a cell does that would make a comparison say less than it seems to."""
    found = [(node, what) for node in ast.walk(parsed(cell.source)) for what in _of(node)]
    if not notebooks.is_unchecked(cell):
        found += [(node, f"shows what differs from machine to machine or day to day ({name_of(node.func)})")
                  for node in ast.walk(parsed(cell.source))
                  if isinstance(node, ast.Call) and name_of(node.func) in _OWN_MACHINE]
    return [f"line {node.lineno} {what}" for node, what in found]


def _of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
        if isinstance(node, ast.Attribute) and node.attr == "stderr":
            yield "takes stderr away"
        elif isinstance(node, ast.Subscript) and name_of(node.value) == "environ":
            yield "sets a variable of the environment"
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if _TESTED.search(node.value):
            yield "asks whether it is tested"
        elif _RECORDING.search(node.value):
            yield "reads what was recorded"


def _of_call(node: ast.Call) -> Iterator[str]:
    name = name_of(node.func)
    if name in _CATEGORY and _is_wide(node, _CATEGORY[name]):
        yield "silences warnings of every kind: name the one that is meant"
    elif name == "catch_warnings" and node.keywords:
        yield "keeps warnings from being shown"
    elif name in _SILENT or (name == "disable" and isinstance(node.func, ast.Attribute)
                             and name_of(node.func.value) == "logging"):
        yield "takes stderr away"
    elif isinstance(node.func, ast.Attribute) and name_of(node.func.value) == "environ" and name != "get":
        yield "sets a variable of the environment"


def _is_wide(call: ast.Call, place: int) -> bool:
    """Whether a filter is one of no certain kind of warning."""
    first = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
    given = call.args[place] if len(call.args) > place else next(
        (word.value for word in call.keywords if word.arg == "category"), None)
    return first not in ("error", "always", "default") and (given is None or name_of(given) in _WIDE)
