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
_IPYTHON = {"get_ipython", "run_line_magic", "run_cell_magic", "run_cell", "InteractiveShell"}
_SHELL = re.compile(r"system|popen|startfile|fork|(?:exec|spawn|posix_spawn)[a-z]*")
_HIDES = {"exec", "__import__", "import_module"}  # what they run, no check could read
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
    found = [f"line {node.lineno} reaches for {what}" for node in ast.walk(tree)
             if (what := _reaches_for(node, _names_of_os(tree)))]
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    found += [f"line {token.start[0]} ends with ';'" for token, after in zip(tokens, tokens[1:], strict=False)
              if token.type == tokenize.OP and token.string == ";" and after.type in _BLANK]
    return found + ["it holds a marker of nbval"] * bool(_MARKER.search(source))


def parsed(source: str) -> ast.Module:
    """The tree of a cell's source; an empty one where it is no plain Python, which `faults` says."""
    try:
        return compile(source, "<cell>", "exec", _PLAIN, dont_inherit=True)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _reaches_for(node: ast.AST, os_names: set[str]) -> str | None:
    """What of IPython, or of the system's shell, a piece of Python names: the same as magics and !, spelt out."""
    names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
    from_os = isinstance(node, ast.ImportFrom) and node.module == "os" and any(map(_SHELL.fullmatch, names))
    names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
    names |= {node.id} if isinstance(node, ast.Name) else {node.attr} if isinstance(node, ast.Attribute) else set()
    if names & _IPYTHON:
        return "IPython's magics"
    if isinstance(node, ast.Name | ast.Attribute) and names & _HIDES:
        return f"code that is not read ({', '.join(names & _HIDES)})"
    of_os = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in os_names
    shell = from_os or names & {"subprocess", "pip"} or (of_os and _SHELL.fullmatch(node.attr))
    return "the system's shell" if shell and not isinstance(node, ast.Name) else None


def _names_of_os(tree: ast.Module) -> set[str]:
    """What a cell may call the module `os`."""
    imports = [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {"os"} | {alias.asname for alias in imports if alias.name == "os" and alias.asname}
