"""The recorded outputs of a code cell: nothing that warns, fails, changes, or tells of the machine it was made on."""
from __future__ import annotations

import base64
import html
import io
import re

from nbformat import NotebookNode
from PIL import Image

from lib.machinery.outputs import FIGURES, values
from lib.machinery.structure import markdown, paths, prose

LEAST_ALT_WORDS = 4
_MACHINE = {
    "an address or a port": re.compile(
        r"\b(?:localhost|(?:\d{1,3}\.){3}\d{1,3})(?::\d+)?\b|\bport[ =:]+\d{2,5}\b", re.I),
    "an object's address": re.compile(r"\bat 0x[0-9a-fA-F]+"),
    "a version of the machine": re.compile(
        r"\b(?:python|cpython|torch|transformers|numpy|linux|glibc|windows|macos|darwin)[ /=:v]+\d+\.\d+"
        r"|\b\d+\.\d+\.\d+\+(?:cpu|cu\d+)", re.I),
    "a failed magic": re.compile(r"\bUsageError\b"),
}


def faults(cell: NotebookNode) -> list[str]:
    """What is wrong with the outputs of a code cell."""
    return [fault for output in cell.outputs for fault in _kind_faults(output) + image_faults(output)
            + [f"an output holds {what} ({found!r})" for what, found in machine(output)]]


def _kind_faults(output: NotebookNode) -> list[str]:
    checks = {"stderr is recorded as an output": output.get("name") == "stderr",
              "an exception is recorded as an output": output.output_type == "error",
              "a live widget is recorded as an output": any("widget" in mime for mime in output.get("data", {}))}
    return [fault for fault, wrong in checks.items() if wrong]


def image_faults(output: NotebookNode) -> list[str]:
    """Images without a text that says what is to be seen."""
    data, metadata = output.get("data", {}), output.get("metadata", {})
    texts = [metadata.get(mime, {}).get("alt") or metadata.get("alt") or "" for mime in data if mime in FIGURES]
    texts += [prose.alternative(tag) for tag in re.findall(r"<(?:img|svg)\b[^>]*>", data.get("text/html", ""), re.I)]
    written = markdown.without_code(data.get("text/markdown", ""))
    texts += [link.text for link in markdown.links(written) if link.image]
    found = [f"an image has no alternative text of at least {LEAST_ALT_WORDS} words (it says {text!r}); "
             "show.figure takes one as `alt`" for text in texts
             if len(set(text.lower().split())) < LEAST_ALT_WORDS or prose.says_nothing(text)]
    return found + ["an image is no PNG that can be shown"] * ("image/png" in data and not is_png(data["image/png"]))


def is_png(text: str) -> bool:
    """Whether base64 `text` is a whole PNG image."""
    try:
        with Image.open(io.BytesIO(base64.b64decode(text, validate=False))) as image:
            image.load()
            return image.format == "PNG"
    except (OSError, ValueError, SyntaxError):
        return False


def machine(output: NotebookNode) -> list[tuple[str, str]]:
    """What an output tells of the machine that recorded it: what it is, and the text."""
    text = html.unescape("\n".join(values(output).values()))
    found = [(what, match.group()) for what, pattern in _MACHINE.items() if (match := pattern.search(text))]
    path = paths.found_in(text)
    return found + ([("a path of the machine", path)] if path else [])
