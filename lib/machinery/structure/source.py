"""The source of a code cell: plain Python, short, without what only a notebook understands."""
from __future__ import annotations

import ast
import io
import re
import tokenize

from nbformat import NotebookNode
from wcwidth import wcswidth

MOST_LINES = 20
MOST_COLUMNS = 79
_BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
_PLAIN = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_IPYTHON = {"get_ipython", "run_line_magic", "run_cell_magic", "run_cell"}
_MARKER = re.compile(r"NBVAL_|PYTEST_VALIDATE_")


def faults(cell: NotebookNode) -> list[str]:
    """What is wrong with the source of a code cell."""
    if not cell.source.strip():
        return ["it is empty"]
    return size_faults(cell.source) + python_faults(cell.source)


def size_faults(source: str) -> list[str]:
    """Too many lines, or too long ones."""
    lines = source.split("\n")
    found = [f"it has {len(lines)} lines; at most {MOST_LINES}"] if len(lines) > MOST_LINES else []
    return found + [f"line {place} has {columns(line)} columns; at most {MOST_COLUMNS}"
                    for place, line in enumerate(lines, start=1) if columns(line) > MOST_COLUMNS]


def columns(line: str) -> int:
    """How wide a line is shown: a wide letter takes two columns, a tab leads to the next eighth."""
    line = line.expandtabs(8)
    width = wcswidth(line)
    return width if width >= 0 else len(line)


def python_faults(source: str) -> list[str]:
    """Magics, `!`, `?`, a `;` at a line's end, and markers that would change what is compared."""
    try:
        tree = compile(source, "<cell>", "exec", _PLAIN, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        where, why = getattr(error, "lineno", 1), getattr(error, "msg", error)
        return [f"line {where} is no plain Python ({why}); magics, ! and ? are not used here"]
    found = [f"line {node.lineno} reaches for {what}" for node in ast.walk(tree) if (what := _reaches_for(node))]
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    found += [f"line {token.start[0]} ends with ';'" for token, after in zip(tokens, tokens[1:], strict=False)
              if token.type == tokenize.OP and token.string == ";" and after.type in _BLANK]
    return found + ["it holds a marker of nbval"] * bool(_MARKER.search(source))


def _reaches_for(node: ast.AST) -> str | None:
    """What of IPython, or of the system's shell, a piece of Python names: the same as magics and !, spelt out."""
    names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
    names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
    names |= {node.id} if isinstance(node, ast.Name) else {node.attr} if isinstance(node, ast.Attribute) else set()
    if names & _IPYTHON:
        return "IPython's magics"
    of_os = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os"
    return "the system's shell" if "subprocess" in names or (of_os and node.attr in ("system", "popen")) else None
