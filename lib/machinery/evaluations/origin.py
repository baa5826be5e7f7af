"""What decides a row: the code, the model, the settings and the versions; one hash over all tells them apart."""
from __future__ import annotations

import ast
import hashlib
import json
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path

from lib import models
from lib.machinery import notebooks
from lib.machinery.evaluations import Evaluation

LIBRARIES = ("torch", "transformers")


@dataclass(frozen=True)
class Origin:
    """What decides an evaluation's rows besides their keys; `code` is a SHA-256 over the text of `code_files`."""
    code: str
    code_files: list[str]
    versions: dict[str, str]
    models: dict[str, dict]
    settings: dict

    def only(self, names: set[str]) -> Origin:
        """The same with the facts of these models alone."""
        return replace(self, models={name: facts for name, facts in self.models.items() if name in names})

    def made_from(self, key: dict, inputs: object) -> str:
        """The hash of all that decides one row: 16 hexadecimal digits."""
        decides = asdict(self) | {"models": self.models[key["model"]], "key": key, "inputs": inputs}
        text = json.dumps(decides, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def of(evaluation: Evaluation) -> Origin:
    """The origin that rows computed now would have."""
    files = code_files(Path(evaluation.file), notebooks.ROOT)
    return Origin(code_hash(files, notebooks.ROOT), [_name(path, notebooks.ROOT) for path in files],
                  {name: version(name).split("+")[0] for name in LIBRARIES},
                  {name: model_facts(name) for name in evaluation.models}, evaluation.settings)


def model_facts(name: str) -> dict:
    """Which model it is: the hash of its source (or the hub's revision), its parameters, how it is converted."""
    entry = models.entry(name)
    source = "file_sha256" if "file_sha256" in entry else "revision"
    return {source: entry.get(source) or entry["hub"]["revision"], "parameters": entry.get("parameters"),
            "conversion": models.CONVERSION, "weights_sha256": entry.get("converted", {}).get("model.safetensors")}


def code_files(start: Path, root: Path) -> list[Path]:
    """`start` and every file of lib that it reaches by imports; of the machinery only evaluations/ is followed."""
    found, waiting = set(), [start.resolve()]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += filter(None, (_file(name, root) for name in imported(path)))
    return sorted(found)


def imported(path: Path) -> set[str]:
    """The modules that a file names in its imports, wherever they stand in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def code_hash(files: list[Path], root: Path) -> str:
    """SHA-256 over the names and texts of files, comments included, line ends made plain."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{_name(path, root)}\n{path.read_text(encoding='utf-8')}\0".encode())
    return digest.hexdigest()


def _file(module: str, root: Path) -> Path | None:
    """The file of a module of the course whose code can decide a row."""
    parts = module.split(".")
    if parts[0] != "lib" or (parts[1:2] == ["machinery"] and parts[2:3] != ["evaluations"]):
        return None
    place = root.resolve().joinpath(*parts)
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root.resolve()).as_posix()
