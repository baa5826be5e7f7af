"""The working copy of the notebooks in results/lab/: a reader's edits stay, everything else follows the course."""
from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from lib.machinery import folders, notebooks

LAB = notebooks.ROOT / "results" / "lab"


class Copies(NamedTuple):
    """The folder of the working copy; .originals.json in it holds the hash that each copy had when it was made."""

    folder: Path = LAB

    def path(self, original: Path) -> Path:
        """Where the copy of a notebook lies."""
        return self.folder / original.name

    def bases(self) -> dict[str, str]:
        """{name: SHA-256 of the copy as it was made}; empty where nothing (readable) was written down."""
        try:
            facts = json.loads((self.folder / ".originals.json").read_text(encoding="utf-8"))
            return facts if isinstance(facts, dict) else {}
        except (OSError, ValueError):
            return {}

    def is_edited(self, original: Path) -> bool:
        """Whether the copy differs from the original and from what was once copied: then it is the reader's work."""
        copy = self.path(original)
        if not copy.exists():
            return False
        return folders.sha256(copy) not in (self.bases().get(original.name), folders.sha256(original))

    def take(self, original: Path) -> None:
        """Put a fresh copy in place and write down its hash: first what an interrupt may leave without harm."""
        notebooks.write_atomically(self.path(original), original.read_text(encoding="utf-8"))
        known = self.bases() | {original.name: folders.sha256(self.path(original))}
        notebooks.write_atomically(self.folder / ".originals.json", json.dumps(known, indent=1) + "\n")

    def refresh(self, originals: list[Path]) -> list[str]:
        """Bring the copies up to date; returns a sentence for each that had to stay as the reader left it."""
        kept = []
        for original in originals:
            newest = folders.sha256(original)
            if not self.is_edited(original):
                if not self.path(original).exists() or folders.sha256(self.path(original)) != newest:
                    self.take(original)
            elif self.bases().get(original.name) != newest:
                kept.append(f"{original.name} has changed in the course since you edited your copy, which stays as "
                            f"it is; python3 -m lib reset {notebooks.number(original)} brings the new one.")
        return kept

    def reset(self, original: Path) -> str:
        """Bring one copy back to the original, an edited one being kept beside it; says what was done."""
        if not self.is_edited(original):
            self.take(original)
            return f"{original.name} is as the course has it."
        kept = self._free_name(original)
        self.path(original).rename(kept)
        self.take(original)
        return f"{original.name} is as the course has it; your own is kept as {kept.name}."

    def _free_name(self, original: Path) -> Path:
        """A name for the reader's own version that is not taken yet: NN-title.mine.ipynb, .mine-2.ipynb, ..."""
        names = [f"{original.stem}.mine{'' if count == 1 else f'-{count}'}.ipynb" for count in range(1, 10_000)]
        return next(path for name in names if not (path := self.folder / name).exists())
