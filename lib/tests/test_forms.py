"""The forms for reports are what GitHub takes, and ask for what `doctor` and the gate print."""
from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from lib.machinery import commands, facts, notebooks

FOLDER = notebooks.ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = [path for path in sorted(FOLDER.glob("*.yml")) if path.name != "config.yml"]
EACH = pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
TEXT = {"type": "string", "minLength": 1}


def element(kind: str, required: list[str], **attributes: dict) -> dict:
    """The schema of one kind of element, as GitHub's 'Syntax for GitHub's form schema' has it."""
    is_text = kind == "markdown"
    outer = {"type": {"const": kind}, "attributes": {"type": "object", "properties": attributes, "required": required,
                                                     "additionalProperties": False}}
    if not is_text:
        outer["id"] = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}
        outer["validations"] = {"type": "object", "properties": {"required": {"type": "boolean"}},
                                "additionalProperties": False}
    return {"type": "object", "properties": outer, "additionalProperties": False,
            "required": ["type", "attributes"] + ([] if is_text else ["id"])}


OPTIONS = {"type": "array", "minItems": 1, "uniqueItems": True,
           "items": {"type": "string", "minLength": 1, "not": {"pattern": "^(?i:none)$"}}}
COMMON = {"label": TEXT, "description": TEXT}
ELEMENTS = [
    element("markdown", ["value"], value=TEXT),
    element("input", ["label"], **COMMON, placeholder=TEXT, value=TEXT),
    element("textarea", ["label"], **COMMON, placeholder=TEXT, value=TEXT, render=TEXT),
    element("dropdown", ["label", "options"], **COMMON, options=OPTIONS, multiple={"type": "boolean"},
            default={"type": "integer"}),
]
NAMES = {"type": "array", "items": TEXT}
FORM = {"type": "object", "required": ["name", "description", "body"], "additionalProperties": False, "properties": {
    "name": TEXT, "description": TEXT, "title": TEXT, "labels": NAMES, "assignees": NAMES, "projects": NAMES,
    "type": TEXT, "body": {"type": "array", "minItems": 1, "items": {"oneOf": ELEMENTS}}}}
CONFIG = {"type": "object", "additionalProperties": False, "properties": {
    "blank_issues_enabled": {"type": "boolean"}, "contact_links": {"type": "array", "items": {
        "type": "object", "required": ["name", "url", "about"], "additionalProperties": False,
        "properties": {"name": TEXT, "url": TEXT, "about": TEXT}}}}}


def read(path: Path) -> dict:
    """A form as YAML."""
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def fields(path: Path) -> dict[str, dict]:
    """The elements of a form that are filled in, by their ids."""
    return {each["id"]: each for each in read(path)["body"] if each["type"] != "markdown"}


@EACH
def test_a_form_is_what_github_takes(path):
    form = read(path)
    jsonschema.validate(form, FORM)
    asked = [each for each in form["body"] if each["type"] != "markdown"]
    assert asked and len({each["id"] for each in asked}) == len(asked)
    assert len({each["attributes"]["label"] for each in asked}) == len(asked)


def test_the_chooser_is_what_github_takes():
    jsonschema.validate(read(FOLDER / "config.yml"), CONFIG)
    assert {path.stem for path in FORMS} == {"output-differs", "problem"}
    assert len({read(path)["name"] for path in FORMS}) == len(FORMS)


@EACH
def test_it_asks_for_what_a_report_needs(path):
    asked = fields(path)
    demanded = {name for name, each in asked.items() if each.get("validations", {}).get("required")}
    assert {"doctor", "commit", "changed"} <= demanded
    assert "python3 -m lib doctor" in asked["doctor"]["attributes"]["description"]
    assert asked["doctor"]["attributes"]["render"] == "text"
    named = re.findall(r"python3 -m lib ([a-z]+)", path.read_text(encoding="utf-8"))
    assert named and set(named) <= commands.COMMANDS.keys()


def test_a_difference_comes_with_the_message_of_the_gate():
    asked = fields(FOLDER / "output-differs.yml")
    assert {"notebook", "message", "again"} <= asked.keys()
    assert "python3 -m lib test NN" in asked["message"]["attributes"]["description"]
    assert "near tie at token" in asked["message"]["attributes"]["description"]


@EACH
def test_what_it_expects_as_the_commit_is_what_the_doctor_prints(path):
    example = fields(path)["commit"]["attributes"]["placeholder"]
    assert re.fullmatch(r"commit: ([0-9a-f]{12}, nothing changed)", f"commit: {example}")
    assert re.fullmatch(r"commit: (?:[0-9a-f]{12}, \S.*|not known.*)", facts.commit())


def dropdown(*options: object) -> dict:
    """An element with these options."""
    return {"type": "dropdown", "id": "x", "attributes": {"label": "x", "options": list(options)}}


@pytest.mark.parametrize("spoil", [
    lambda form: form.pop("name"), lambda form: form["body"][0].update(type="textfield"),
    lambda form: form["body"][-1]["attributes"].pop("label"), lambda form: form["body"][-1].update(id="a b"),
    lambda form: form["body"][-1].update(validation={}), lambda form: form.update(body=[]),
    lambda form: form["body"].append(dropdown(True)), lambda form: form["body"].append(dropdown("None")),
    lambda form: form["body"].append(dropdown("a", "a")),
])
def test_a_form_that_github_refuses_is_found(spoil):
    form = read(FOLDER / "problem.yml")
    spoil(form)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(form, FORM)
