"""Files that change what is tested, or that another system cannot hold: they have no place in the course."""
from __future__ import annotations

import re
import sys
from collections import defaultdict
from importlib import metadata
from pathlib import Path

_OF_TOOLS = {"pytest.ini", ".pytest.ini", "tox.ini", "setup.cfg", "sitecustomize.py", "usercustomize.py",
             ".coveragerc", "matplotlibrc", "ruff.toml", ".ruff.toml"}
_LEFT_BY_TOOLS = {".ipynb_checkpoints", "__pycache__"}
_NOT_ON_WINDOWS = re.compile(r'[<>:"\\|?*\x00-\x1f]|[. ]$|^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)', re.I)


def faults(root: Path, kept: list[Path]) -> list[str]:
    """What lies where it would be read in place of something else; `kept` are the files of the course."""
    inside = {path: path.relative_to(root) for path in kept}
    found = [f"{name.as_posix()}: {fault}" for path, name in inside.items() for fault in name_faults(name)
             + ["it is a link to another file, which not every system keeps"] * path.is_symlink()]
    return found + same_names(list(inside.values())) + beside_notebooks(root / "notebooks") + in_the_root(root)


def name_faults(name: Path) -> list[str]:
    """What is wrong with where a file of the course lies, and how it is called."""
    checks = {"a notebook outside of notebooks/, which no command looks at":
              name.suffix.lower() == ".ipynb" and name.parent.as_posix() not in ("notebooks", "lib/tests/canaries"),
              "its ending is not spelt .ipynb": name.suffix.lower() == ".ipynb" != name.suffix,
              "it would change how tests and notebooks run": name.name in _OF_TOOLS or (
                  name.name == "conftest.py" and name.as_posix() != "lib/tests/conftest.py"),
              "a name that Windows does not allow": any(map(_NOT_ON_WINDOWS.search, name.parts))}
    return [fault for fault, wrong in checks.items() if wrong]


def same_names(names: list[Path]) -> list[str]:
    """Files that are one on a system that does not tell capitals from small letters."""
    alike = defaultdict(list)
    for name in names:
        alike[name.as_posix().casefold()].append(name.as_posix())
    return [f"{' and '.join(several)} differ in capitals alone" for several in alike.values() if len(several) > 1]


def beside_notebooks(folder: Path) -> list[str]:
    """What Python or Matplotlib would read beside the notebooks, tracked or not: kernels start there."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [f"notebooks/{path.name} would be read by a kernel that starts there: take it away"
            for path in there if path.name not in _LEFT_BY_TOOLS
            and (path.suffix == ".py" or path.is_dir() or path.name in _OF_TOOLS)]


def in_the_root(root: Path) -> list[str]:
    """Modules and settings in the course's own folder, tracked or not, that stand before those of the same name."""
    taken = {*sys.stdlib_module_names, *metadata.packages_distributions(), "conftest"} - {"lib"}
    return [f"{path.name} lies in the course's folder and is read in place of another: take it away"
            for path in sorted(root.iterdir()) if path.name in _OF_TOOLS or (
                path.stem in taken and (path.suffix == ".py" or (path / "__init__.py").is_file()))]
