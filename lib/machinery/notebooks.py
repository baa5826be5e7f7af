"""The course's notebooks as files: which there are, what is in them, and the surroundings their kernels get."""
from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from lib.machinery import Stop

ROOT = Path(__file__).resolve().parents[2]
UNCHECKED_TAG = "nbval-ignore-output"
UNCHECKED_COMMENT = "# not compared:"
# What a person's shell or another test run could bring along, and what would change an output.
_DROPPED = ("PYTEST_CURRENT_TEST", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "MPLBACKEND",
            "MATPLOTLIBRC", "PYTHONSTARTUP", "PYTHONWARNINGS", "PYTHONOPTIMIZE", "PYTHONINSPECT", "COLUMNS", "LINES",
            "FORCE_COLOR", "NO_COLOR", "JPY_PARENT_PID", "COURSE_STRICT", "COURSE_LEDGER")
# families of variables that make libraries talk on stderr or compute otherwise
_CHATTY = ("TRANSFORMERS_", "TORCH_", "ONEDNN_", "DNNL_", "MKL_VERBOSE", "OMP_DISPLAY_", "ATEN_")


def select(numbers: list[str], folder: Path | None = None) -> list[Path]:
    """The notebooks whose names start with `numbers` (all when none is given), in order; Stop for an unknown one."""
    folder = folder or ROOT / "notebooks"
    there = {number(path): path for path in sorted(folder.glob("[0-9][0-9]-*.ipynb"))}
    strays = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.ipynb"))
              if path not in there.values() and ".ipynb_checkpoints" not in path.parts]
    if strays:
        raise Stop(f"notebooks/ holds {', '.join(strays)}, which no command would look at: give each notebook a "
                   "number of its own, as in 01-name.ipynb, or take it out.")
    wanted = sorted({given.zfill(2) for given in numbers}) or sorted(there)
    unknown = [given for given in wanted if given not in there]
    if unknown or not there:
        raise Stop(f"There is no notebook {', '.join(unknown)}".rstrip() + f"; there are: {', '.join(there)}.")
    return [there[given] for given in wanted]


def number(path: Path) -> str:
    """The two digits that a notebook's name starts with."""
    return path.name[:2]


def read(path: Path) -> NotebookNode:
    """The notebook at `path` as it stands: nothing is repaired or added; Stop when it is no notebook of format 4."""
    try:
        notebook = nbformat.v4.reads(path.read_text(encoding="utf-8"))
        return notebook if notebook.nbformat == 4 and isinstance(notebook.cells, list) else _no_notebook(path)
    except (ValueError, AttributeError, TypeError, KeyError):
        return _no_notebook(path)


def _no_notebook(path: Path) -> NotebookNode:
    raise Stop(f"{path.name} is no readable notebook of format 4; bring it back with `git checkout`.")


def dumps(notebook: NotebookNode) -> str:
    """The one text form of a notebook: keys sorted, one blank per level, letters as they are, a final newline."""
    return nbformat.v4.writes(notebook).rstrip("\n") + "\n"


def write_atomically(path: Path, text: str) -> None:
    """Puts `text` into `path` with plain line ends, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells in order; a cell's number is its place in this list, from 1."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def label(place: int, cell: NotebookNode) -> str:
    """How messages name a code cell: its number from 1 and its id."""
    return f"cell {place} ({cell['id']})" if "id" in cell else f"cell {place}"


def is_unchecked(cell: NotebookNode) -> bool:
    """Whether the outputs of a code cell are run but not compared: by its tag, and by nothing else."""
    return UNCHECKED_TAG in cell.metadata.get("tags", [])


def unchecked_reason(cell: NotebookNode) -> str:
    """Why an unchecked cell is not compared: what its metadata says; empty when it says nothing."""
    course = cell.metadata.get("course", {})
    reason = course.get("unchecked", "") if isinstance(course, dict) else ""
    return reason.strip() if isinstance(reason, str) else ""


def shows_reason(cell: NotebookNode) -> bool:
    """Whether a reader sees, in the cell itself, why it is not compared."""
    return any(re.match(re.escape(UNCHECKED_COMMENT) + r"\s*\S", line) for line in cell.source.splitlines())


def name_cells(notebook: NotebookNode) -> None:
    """Gives each cell without an id one made of its content, so that the same notebook gets the same ids."""
    taken = {cell["id"] for cell in notebook.cells if "id" in cell}
    for cell in notebook.cells:
        if "id" not in cell:
            digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()
            cell["id"] = next(name for name in _names(digest) if name not in taken)
            taken.add(cell["id"])


def _names(digest: str):
    yield digest[:8]
    yield from (f"{digest[:8]}-{copy}" for copy in range(2, 10_000))


def child_environment(**extra: str | Path) -> dict[str, str]:
    """The variables of a process that runs notebooks: this checkout first, nothing of a shell or a home folder."""
    from lib import models
    kept = {name: value for name, value in os.environ.items()
            if name not in _DROPPED and not name.startswith(_CHATTY)}
    paths = [str(ROOT), *filter(None, kept.get("PYTHONPATH", "").split(os.pathsep))]
    fixed = {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONHASHSEED": "0", "PYTHONUTF8": "1",
             "HF_HUB_OFFLINE": "1", "COURSE_RESULTS": str(ROOT / "results"),
             "MPLCONFIGDIR": str(models.cache_folder() / "matplotlib")}
    return {**kept, **fixed, **{name: str(value) for name, value in extra.items()}}


def require_default_model() -> None:
    """Stop when COURSE_MODEL asks for a model other than the recorded one: nothing could be compared with it."""
    from lib import models
    chosen = os.environ.get("COURSE_MODEL") or models.DEFAULT
    if chosen != models.DEFAULT:
        raise Stop(f"The recorded outputs are those of {models.DEFAULT}, and COURSE_MODEL is {chosen}: "
                   "unset it first (`run` works with any model).")


def as_json(value: object) -> str:
    """`value` as one line of JSON, letters as they are."""
    return json.dumps(value, ensure_ascii=False)
