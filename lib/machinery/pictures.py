"""Compares pictures as an eye would from afar: another platform may draw the same figure in other bytes."""
from __future__ import annotations

import base64
import io
from statistics import fmean

from PIL import Image

GRID = 16  # a picture is looked at as so many by so many grey squares
# The greys of one figure drawn with other hinting lie about 0.5 of 256 apart on average, those of two figures of
# the course, or of one and its mirror image, more than 4.
FARTHEST = 1.5


def read(data: str) -> Image.Image | None:
    """The picture in base64 `data`; None where there is none that can be read."""
    try:
        image = Image.open(io.BytesIO(base64.b64decode(data, validate=False)))
        image.load()
        return image
    except (OSError, ValueError, SyntaxError):
        return None


def difference(recorded: str, now: str) -> str | None:
    """Why two pictures in base64 are not the same figure; None where they are."""
    if recorded == now:
        return None
    old, new = read(recorded), read(now)
    if old is None or new is None:
        return f"cannot be read as a picture ({'as recorded' if old is None else 'now'})"
    if old.size != new.size:
        return f"is another picture: {old.width} by {old.height} pixels are recorded, now {new.width} by {new.height}"
    apart = distance(old, new)
    return f"is another picture ({apart:.1f} of 256 greys apart on average)" if apart > FARTHEST else None


def distance(one: Image.Image, other: Image.Image) -> float:
    """How far the greys of two pictures lie apart on average, of 256, on the grid."""
    return fmean(abs(a - b) for a, b in zip(_squares(one), _squares(other), strict=True))


def _squares(image: Image.Image) -> bytes:
    white = Image.new("RGBA", image.size, "white")  # what is transparent is seen on white
    white.alpha_composite(image.convert("RGBA"))
    return white.convert("L").resize((GRID, GRID), Image.Resampling.BOX).tobytes()
