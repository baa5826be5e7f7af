"""Small defects for copies of a recording, each at a place that a seeded generator chooses."""
from __future__ import annotations

import base64
import copy
import io
import random
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple

from nbformat import NotebookNode
from PIL import ImageOps

from lib.machinery import notebooks, pictures
from lib.machinery.outputs import FIGURES, values
from lib.machinery.structure import borne, plain
from lib.machinery.structure.figures import figures

_DIGITS = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


class Change(NamedTuple):
    """A changed copy of a notebook, and where; each kind gives None for a notebook that has no place for it."""
    where: str
    notebook: NotebookNode


class Place(NamedTuple):
    """Something in an output: the indices of the code cell and of the output, and the keys that lead to it."""
    cell: int
    output: int
    keys: tuple[str, ...] = ()


def letter(notebook: NotebookNode, rng: random.Random) -> Change | None:
    """One letter or digit of a compared output, or of a figure's alternative text, is another one."""
    found = [place for place in texts(notebook) if re.search(r"[^\W_]", _text(notebook, place))]
    return _replaced(notebook, pick(found, rng), lambda text: _with_another_letter(text, rng))


def emptied(notebook: NotebookNode, rng: random.Random) -> Change | None:
    """One compared output holds nothing any more."""
    found = [place for place in texts(notebook) if place.keys[0] != "metadata" and _text(notebook, place).strip()]
    return _replaced(notebook, pick(found, rng), lambda text: "")


def removed(notebook: NotebookNode, rng: random.Random) -> Change | None:
    """One output is gone; the cell keeps its count."""
    place = pick([Place(cell, number) for cell, number, _, _ in _outputs(notebook)], rng)
    if place is None:
        return None
    made = copy.deepcopy(notebook)
    del notebooks.code_cells(made)[place.cell].outputs[place.output]
    return Change(_where(notebook, place), made)


def picture(notebook: NotebookNode, rng: random.Random) -> Change | None:
    """One figure is its own mirror image: another valid PNG of the same size."""
    found = [Place(cell, number, ("data", "image/png")) for cell, number, output, _ in _outputs(notebook)
             if "image/png" in output.get("data", {})]
    return _replaced(notebook, pick(found, rng), mirrored)


def figure(notebook: NotebookNode, rng: random.Random) -> Change | None:
    """One number of the prose is another one, which no output of the notebook holds."""
    found = [(index, number) for index, cell in enumerate(notebook.cells) for number in _figures(cell)]
    if not found:
        return None
    index, old = rng.choice(found)
    made, number = copy.deepcopy(notebook), _DIGITS.match(old).group()
    new = _unheard_of(number, _numbers(notebook), rng) + old[len(number):]
    made.cells[index].source = made.cells[index].source.replace(old, new)
    return Change(f"cell {made.cells[index].get('id')}, {old!r} made {new!r}", made)


KINDS = {"a letter changed": letter, "an output emptied": emptied, "an output removed": removed,
         "a picture mirrored": picture, "a figure of the prose changed": figure}


def texts(notebook: NotebookNode) -> list[Place]:
    """Every text that is compared letter for letter: streams, data but for pictures, alternative texts."""
    found = []
    for cell, number, output, checked in _outputs(notebook):
        keys = [("text",)] if isinstance(output.get("text"), str) else []
        keys += [("data", mime) for mime, value in output.get("data", {}).items()
                 if mime not in FIGURES and isinstance(value, str)]
        keys += [("metadata", mime, "alt") for mime, about in output.get("metadata", {}).items()
                 if mime in FIGURES and about.get("alt")]
        found += [Place(cell, number, key) for key in keys if checked]
    return found


def pick(found: list[Place], rng: random.Random) -> Place | None:
    """One of the places, each cell as likely as any other; None where there is none."""
    if not found:
        return None
    cell = rng.choice(sorted({place.cell for place in found}))
    return rng.choice([place for place in found if place.cell == cell])


def mirrored(data: str) -> str:
    """A PNG in base64, left and right changed over."""
    made = io.BytesIO()
    ImageOps.mirror(pictures.read(data).convert("RGBA")).save(made, format="PNG")
    return base64.b64encode(made.getvalue()).decode()


def _outputs(notebook: NotebookNode) -> Iterator[tuple[int, int, NotebookNode, bool]]:
    """(index of the code cell, index of the output, the output, whether its contents are compared) of each output."""
    for cell, holder in enumerate(notebooks.code_cells(notebook)):
        for number, output in enumerate(holder.outputs):
            yield cell, number, output, not notebooks.is_unchecked(holder)


def _holder(notebook: NotebookNode, place: Place) -> NotebookNode:
    node = notebooks.code_cells(notebook)[place.cell].outputs[place.output]
    for key in place.keys[:-1]:
        node = node[key]
    return node


def _text(notebook: NotebookNode, place: Place) -> str:
    return _holder(notebook, place)[place.keys[-1]]


def _replaced(notebook: NotebookNode, place: Place | None, change: Callable[[str], str]) -> Change | None:
    if place is None:
        return None
    made = copy.deepcopy(notebook)
    _holder(made, place)[place.keys[-1]] = change(_text(notebook, place))
    return Change(_where(notebook, place), made)


def _where(notebook: NotebookNode, place: Place) -> str:
    cell = notebooks.code_cells(notebook)[place.cell]
    kinds = f" ({', '.join(place.keys)})" if place.keys else ""
    return f"{notebooks.label(place.cell + 1, cell)}, output {place.output + 1}{kinds}"


def _with_another_letter(text: str, rng: random.Random) -> str:
    place = rng.choice([found.start() for found in re.finditer(r"[^\W_]", text)])
    old = text[place]
    new = rng.choice([one for one in ("0123456789" if old.isdigit() else "aeinorst") if one != old.lower()])
    return text[:place] + (new.upper() if old.isupper() else new) + text[place + 1:]


def _figures(cell: NotebookNode) -> list[str]:
    """The figures in digits that a Markdown cell does not list as given, with their nouns, where each stands once."""
    if cell.cell_type != "markdown":
        return []
    return [name for name in sorted(_checked(cell.source) - borne.given(cell).keys()) if _DIGITS.match(name)
            and cell.source.count(name) == 1 and re.search(rf"(?<![\w.,]){re.escape(name)}(?!\w)", cell.source)
            and name not in _checked(cell.source.replace(name, ""))]  # or it stands where nobody looks


def _checked(text: str) -> set[str]:
    return {str(figure) for block in plain.blocks(text) for figure in figures(block.text)}


def _numbers(notebook: NotebookNode) -> set[Decimal]:
    """Every number in an output, in the crudest reading."""
    text = "\n".join(value for _, _, output, _ in _outputs(notebook) for value in values(output).values())
    return {Decimal(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def _unheard_of(number: str, known: set[Decimal], rng: random.Random) -> str:
    """Another number of the same form, longer only if need be."""
    for tries in range(1000):
        new = "".join(rng.choice("123456789") if one.isdigit() else one for one in number)
        new += "7" * (tries // 50)
        if Decimal(new.replace(",", "")) not in known:
            return new
    raise ValueError(f"no number like {number} is missing from the outputs")
