"""What notebooks need before they are executed: the models, and Matplotlib's list of this machine's fonts."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from lib.machinery import fetch, notebooks, preflight


def make_ready() -> None:
    """Makes the models ready that the notebooks load, and the fonts; quick when they are; Stop when it cannot be."""
    fetch.ensure(preflight.models_needed())
    list_fonts()


def list_fonts() -> None:
    """Lets Matplotlib list the fonts once: in a cell it would warn on stderr where that takes more than seconds."""
    environment = notebooks.child_environment()
    if not list(Path(environment["MPLCONFIGDIR"]).glob("fontlist-*.json")):
        print("Matplotlib lists the fonts of this machine (once) ...", flush=True)
        subprocess.run([sys.executable, "-c", "import matplotlib.font_manager"], env=environment,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
