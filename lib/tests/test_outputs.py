"""Comparing outputs: order, kinds, metadata, letters; of pictures what they look like."""
import pytest
from nbformat.v4 import new_output

from lib.machinery.outputs import difference
from lib.tests.canaries.make import dot, picture, result, stdout


def image(data: str, mime: str = "image/png", alt: str = "a dot"):
    return new_output("display_data", data={mime: data}, metadata={mime: {"alt": alt}})


@pytest.mark.parametrize("recorded, now", [
    ([], []), ([stdout("a\n"), result("1", 1)], [stdout("a\n"), result("1", 7)]), ([picture()], [picture()]),
    ([image(dot())], [image(dot(0))]), ([image(dot())], [image(dot(1))]),
    ([image("<svg/>", "image/svg+xml")], [image("<svg></svg>", "image/svg+xml")])])
def test_equal_outputs(recorded, now):
    assert difference(recorded, now) is None


@pytest.mark.parametrize("recorded, now, words", [
    ([], [stdout("a")], ["output 1", "no output", "stream stdout"]),
    ([stdout("a"), result("1", 1)], [result("1", 1), stdout("a")], ["output 1", "another kind"]),
    ([stdout("a"), picture()], [stdout("a")], ["output 2", "image/png", "no output"]),
    ([picture()], [picture(None)], ["another kind", "single black dot"]),
    ([image("x", alt="a cat")], [image("x", alt="a dog")], ["a cat", "a dog"]),
    ([image("x")], [image("x", "image/jpeg")], ["image/png", "image/jpeg"]),
    ([stdout("a\nb\nc\n")], [stdout("a\nB\nc\n")], ["line 2", "'b'", "'B'"]),
    ([stdout("a\n")], [stdout("a \n")], ["line 1", "'a'", "'a '"]),
    ([stdout("a")], [stdout("a\nb")], ["line 2", "no such line", "'b'"]),
    ([stdout("ế")], [stdout("ê")], ["'ế'", "'ê'"]),
    ([new_output("display_data", data={"application/json": {"a": 1}})],
     [new_output("display_data", data={"application/json": {"a": 2}})], ['{"a": 1}', '{"a": 2}']),
    ([image(dot())], [image(dot(255))], ["output 1", "display_data image/png", "another picture"]),
    ([image("old")], [image("new")], ["cannot be read as a picture"]),
    ([image(dot(), "image/jpeg")], [image(dot(90), "image/jpeg")], ["another picture"])])
def test_the_first_difference_is_named(recorded, now, words):
    found = difference(recorded, now)
    assert all(word in found for word in words), found


def test_of_unchecked_cells_only_the_kinds_are_compared():
    assert difference([stdout("1.5 s")], [stdout("1.7 s")], contents=False) is None
    assert difference([stdout("1.5 s")], [], contents=False)


@pytest.mark.parametrize("recorded, now, says", [("", "1.5", "holds nothing as recorded"), ("1.5", " ", "now"),
                                                 ("", " ", None), ("1.5", "7", None)])
def test_an_unchecked_output_that_is_empty_is_another(recorded, now, says):
    found = difference([stdout(recorded)], [stdout(now)], contents=False)
    assert found is None if says is None else says in found
