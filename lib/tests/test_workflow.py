"""The example workflow, as far as a text can be checked: its commands are the README's, its folders the code's."""
from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from lib import models
from lib.machinery import commands, notebooks

FILE = notebooks.ROOT / ".github" / "workflows" / "course.yml"
TEXT = FILE.read_text(encoding="utf-8")
WORKFLOW = yaml.safe_load(TEXT)
JOBS = WORKFLOW["jobs"]
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
MAY_FAIL = {"elsewhere", "newest"}


def uses(action: str) -> list[tuple[str, dict]]:
    """(job, inputs) of each step that uses an action."""
    return [(name, step.get("with", {})) for name, step in STEPS if step.get("uses", "").startswith(f"{action}@")]


def test_when_it_runs_and_what_it_may_do():
    when = WORKFLOW[True]  # PyYAML reads the key `on` as YAML 1.1 does: a truth value
    assert when.keys() == {"push", "pull_request", "schedule", "workflow_dispatch"}
    assert [re.fullmatch(r"\d+ \d+ \* \* [0-6]", each["cron"]) is not None for each in when["schedule"]] == [True]
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert all("permissions" not in job and "secrets." not in TEXT for job in JOBS.values())


def test_every_job_ends_and_only_the_others_may_fail():
    assert JOBS.keys() == {"test"} | MAY_FAIL
    assert {name for name, job in JOBS.items() if job.get("continue-on-error") is True} == MAY_FAIL
    assert all(30 <= job["timeout-minutes"] <= 120 for job in JOBS.values())
    assert not any(step.get("continue-on-error") for _, step in STEPS)


def test_actions_are_of_a_major_version_of_their_makers():
    named = [step["uses"] for _, step in STEPS if "uses" in step]
    assert named and all(re.fullmatch(r"actions/[a-z-]+@v\d+", each) for each in named)
    assert all(("uses" in step) != ("run" in step) for _, step in STEPS)


def test_the_shell_stops_at_the_first_fault():
    assert WORKFLOW["defaults"] == {"run": {"shell": "bash"}}  # which GitHub starts with -eo pipefail, Windows too
    assert not any(re.search(r"\|\| *true|set \+e", step.get("run", "")) for _, step in STEPS)


@pytest.mark.parametrize("job", JOBS)
def test_its_command_is_the_readmes(job):
    runs = [step["run"] for name, step in STEPS if name == job and " -m lib test" in step.get("run", "")]
    assert len(runs) == 1
    command = re.search(r"(\S+) -m lib (test [^$\n]*)", runs[0])
    assert command[1] == ("../newest/bin/python" if job == "newest" else "python3")
    assert "python3 -m lib test" in (notebooks.ROOT / "README.md").read_text(encoding="utf-8")
    given = commands.parse(command[2].split())
    assert (given.command, given.notebooks, given.all, given.junit) == ("test", [], False, "course.xml")


def test_the_slow_checks_come_weekly():
    [(line,)] = [re.findall(r"test --junit course.xml \$\{\{ (.*) \}\}", step.get("run", "")) for name, step in STEPS
                 if name == "test" and "lib test" in step.get("run", "")]
    assert line == "github.event_name == 'schedule' && '--all' || ''"


@pytest.mark.parametrize("job", JOBS)
def test_the_models_are_kept_where_the_code_looks_for_them(job, monkeypatch, tmp_path):
    [cached] = [given for name, given in uses("actions/cache") if name == job]
    assert cached["path"] == "${{ env.COURSE_CACHE }}/models"
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    assert models.folder(models.DEFAULT).is_relative_to(tmp_path / "models")
    steps = JOBS[job]["steps"]
    sets = [place for place, step in enumerate(steps) if 'echo "COURSE_CACHE=' in step.get("run", "")]
    reads = [place for place, step in enumerate(steps) if "COURSE_CACHE }}" in str(step.get("with"))]
    assert len(sets) == 1 and steps[sets[0]]["run"].endswith('>> "$GITHUB_ENV"') and sets[0] < min(reads)
    assert min(reads) < next(place for place, step in enumerate(steps) if "lib test" in step.get("run", ""))


@pytest.mark.parametrize("job", JOBS)
def test_a_change_of_models_or_their_conversion_is_another_key(job):
    [cached] = [given for name, given in uses("actions/cache") if name == job]
    hashed = re.findall(r"'([^']+)'", re.search(r"hashFiles\(([^)]*)\)", cached["key"])[1])
    assert hashed == ["lib/machinery/models.json", "lib/models.py"] and "runner.os" in cached["key"]
    assert all((notebooks.ROOT / name).is_file() for name in hashed)
    assert re.search(r"^CONVERSION = \d+", Path(models.__file__).read_text(encoding="utf-8"), re.M)


def test_packages_are_kept_by_their_list():
    given = [each for job, each in uses("actions/setup-python") if job != "newest"]
    assert [(each["cache"], each["cache-dependency-path"]) for each in given] == [("pip", "environment.yml")] * 2
    assert (notebooks.ROOT / "environment.yml").is_file()
    versions = {str(each["python-version"]) for _, each in uses("actions/setup-python")}
    versions |= {row["python"] for row in JOBS["elsewhere"]["strategy"]["matrix"]["include"]}
    assert versions - {"${{ matrix.python }}"} == {"3.11", "3.13"}, "a version is text: 3.10 would be read as 3.1"


def test_elsewhere_is_where_nothing_was_verified():
    rows = JOBS["elsewhere"]["strategy"]["matrix"]["include"]
    assert [(row["os"], row["python"]) for row in rows] == [
        ("windows-latest", "3.11"), ("macos-latest", "3.11"), ("ubuntu-latest", "3.13")]
    assert JOBS["elsewhere"]["strategy"]["fail-fast"] is False


@pytest.mark.parametrize("job", ["test", "elsewhere"])
def test_a_failure_leaves_its_evidence(job):
    [given] = [given for name, given in uses("actions/upload-artifact") if name == job]
    assert given["path"].split() == ["course.xml", "results/run/"] and given["if-no-files-found"] == "ignore"
    late = [step for name, step in STEPS if name == job and step.get("if") == "failure()"]
    assert "python3 -m lib doctor --deep" in [step.get("run") for step in late] and len(late) == 2


def test_it_says_that_it_was_never_run():
    assert "never run" in TEXT.split("name: course")[0]
