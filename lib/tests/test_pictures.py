"""Pictures compared from afar: the same figure in other bytes passes, another one does not."""
import base64
import io
from itertools import combinations

import matplotlib
import pytest
from matplotlib.figure import Figure
from PIL import Image

from lib.machinery import notebooks, pictures
from lib.machinery.changes import mirrored
from lib.tests.canaries.make import dot


def drawn(values=(3, 1), **settings) -> str:
    """A bar chart as PNG in base64, under these settings of Matplotlib."""
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(6, 2.4), layout="constrained")
        axes = figure.subplots()
        axes.barh(["rules first", "name first"], values)
        axes.set(xlabel="tokens fed", xlim=(0, 4))
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110)
    return base64.b64encode(buffer.getvalue()).decode()


def recorded() -> dict[str, str]:
    """Every figure of the course, by notebook and cell."""
    return {f"{path.stem} {cell.id}": output.data["image/png"] for path in notebooks.select([])
            for cell in notebooks.code_cells(notebooks.read(path)) for output in cell.outputs
            if "image/png" in output.get("data", {})}


@pytest.mark.parametrize("settings", [{"text.hinting": "none"}, {"text.hinting": "default"},
                                      {"text.antialiased": False}, {"lines.antialiased": False}])
def test_a_figure_drawn_a_little_otherwise_is_the_same(settings):
    one, other = drawn(), drawn(**settings)
    assert pictures.difference(one, other) is None
    assert pictures.distance(pictures.read(one), pictures.read(other)) < pictures.FARTHEST / 2


def test_equal_bytes_are_equal_whatever_they_are():
    assert pictures.difference("no picture", "no picture") is None


@pytest.mark.parametrize("other, says", [
    (drawn((1, 3)), "is another picture"), (mirrored(drawn()), "is another picture"), (dot(), "660 by 264 pixels"),
    ("bm8=", "cannot be read as a picture (now)"), ("", "cannot be read as a picture (now)")])
def test_another_picture_is_named(other, says):
    assert says in pictures.difference(drawn(), other)


def test_what_is_transparent_is_white():
    clear, white = Image.new("RGBA", (32, 32), (0, 0, 0, 0)), Image.new("RGB", (32, 32), "white")
    assert pictures.distance(clear, white) == 0
    assert pictures.distance(white, Image.new("L", (32, 32), 0)) == 255


def test_no_two_figures_of_the_course_pass_for_one_another():
    figures = recorded()
    assert len(figures) >= 2
    assert [pair for pair in combinations(figures, 2) if not pictures.difference(*map(figures.get, pair))] == []
    assert [name for name, data in figures.items() if not pictures.difference(data, mirrored(data))] == []
