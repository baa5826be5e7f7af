"""Claims that can fail, and outputs that something computed: what a cell must not do to look checked."""
from __future__ import annotations

import ast
from collections.abc import Iterator
from decimal import Decimal

from nbformat import NotebookNode

from lib.machinery import notebooks
from lib.machinery.structure.numbers import in_digits, letters
from lib.machinery.structure.source import parsed

TICK = "✓"  # how `show.claim` marks what holds
_CLAIMED = {"show", "claim"}


def faults(notebook: NotebookNode) -> list[str]:
    """Claims that nothing could refute, figures that nothing computed, names of the course made to mean others."""
    trees = [(notebooks.label(place, cell), parsed(cell.source))
             for place, cell in enumerate(notebooks.code_cells(notebook), start=1)]
    known = {name for _, tree in trees for name in course_names(tree)}
    return [f"{label}: {fault}" for label, tree in trees
            for fault in [*claim_faults(tree), *print_faults(tree), *replaced(tree, known)]]


def claim_faults(tree: ast.Module) -> Iterator[str]:
    """What is wrong with the claims of a cell."""
    for claim in claims(tree):
        words = " ".join(text.value for text in _texts(claim.args[0])) if claim.args else ""
        named = [word.value for word in claim.keywords if word.arg == "holds"]
        holds = next(iter([*claim.args[1:2], *named]), None)
        if holds is not None and cannot_fail(holds):
            yield f"line {claim.lineno} claims what cannot fail ({ast.unparse(holds)})"
        missing = [f"{value:f}" for value in _numbers(words) if value not in _numbers_beside_claims(tree)]
        if missing:
            yield f"line {claim.lineno} claims {missing[0]}, and the cell's code compares nothing with it"
    for node in ast.walk(tree):
        if _swallows(node) and any(claims(child) for child in node.body):
            yield f"line {node.lineno} lets a claim fail unseen"


def claims(tree: ast.AST) -> list[ast.Call]:
    """The calls of `claim` in a piece of code."""
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and name_of(node.func) == "claim"]


def cannot_fail(condition: ast.expr) -> bool:
    """Whether a condition is true whatever is measured: it names nothing, or compares something with itself."""
    if isinstance(condition, ast.BoolOp):
        some = any if isinstance(condition.op, ast.Or) else all
        return some(map(cannot_fail, condition.values))
    if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
        left, right, sign = condition.left, condition.comparators[0], condition.ops[0]
        if isinstance(sign, ast.Eq | ast.LtE | ast.GtE | ast.Is) and ast.dump(left) == ast.dump(right):
            return True
        if isinstance(sign, ast.GtE) and ast.unparse(right) == "0" and isinstance(left, ast.Call):
            return name_of(left.func) in ("len", "abs")
    return not any(isinstance(node, ast.Name) for node in ast.walk(condition))


def print_faults(tree: ast.Module) -> Iterator[str]:
    """Ticks that no claim has set, and figures that a print has from nowhere."""
    in_claims = {id(text) for claim in claims(tree) for text in ast.walk(claim)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and str(node.value).strip().startswith(TICK) and id(node) not in in_claims:
            yield f"line {node.lineno} writes the tick of a claim without one"
        elif isinstance(node, ast.Call) and name_of(node.func) == "print":
            given = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            found = _numbers(" ".join(map(str, given))) if len(given) == len(node.args) else []
            yield from (f"line {node.lineno} prints {value:f}, which nothing has computed" for value in found[:1])


def replaced(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Where the course's own names, or attributes of them, are made to mean something else."""
    for node in ast.walk(tree):
        stored = isinstance(getattr(node, "ctx", None), ast.Store)
        if stored and isinstance(node, ast.Attribute) and name_of(node.value) in known:
            yield f"line {node.lineno} replaces {ast.unparse(node)}, which is the course's own"
        elif (stored and isinstance(node, ast.Name) and node.id in _CLAIMED) or (
                isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in _CLAIMED):
            yield f"line {node.lineno} gives another meaning to {getattr(node, 'id', None) or node.name}"
        elif isinstance(node, ast.Call) and name_of(node.func) == "setattr" and node.args \
                and name_of(node.args[0]) in known:
            yield f"line {node.lineno} replaces a part of {name_of(node.args[0])}, which is the course's own"


def course_names(tree: ast.Module) -> Iterator[str]:
    """The names that a cell imports from the course."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "lib":
            yield from (alias.asname or alias.name for alias in node.names)


def name_of(node: ast.expr) -> str:
    """The last name of `a`, `b.a` or `a()`; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _swallows(node: ast.AST) -> bool:
    if isinstance(node, ast.With):
        return any(isinstance(item.context_expr, ast.Call) and name_of(item.context_expr.func) == "suppress"
                   for item in node.items)
    return isinstance(node, ast.Try) and bool(node.handlers)


def _texts(node: ast.expr) -> list[ast.Constant]:
    """The texts that stand letter for letter in an expression; not those inside what an f-string computes."""
    if isinstance(node, ast.JoinedStr):
        return [part for part in node.values if isinstance(part, ast.Constant)]
    return [part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]


def _numbers(text: str) -> list[Decimal]:
    return [abs(number.value) for number in in_digits(letters(text))]


def _numbers_beside_claims(tree: ast.Module) -> set[Decimal]:
    """The numbers in a cell's code, but for those in the words of claims."""
    words = {id(text) for claim in claims(tree) for given in claim.args[:1] for text in _texts(given)}
    written = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in words]
    return {number for value in written if not isinstance(value, bool) for number in _numbers(str(value))}
