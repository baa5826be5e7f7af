"""The doctor: every finding has a level, a fault a mending line, and nothing is changed by looking."""
import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lib.machinery import Stop, doctor, environment, machine, preflight, second_kernel
from lib.machinery.doctor import Finding

QUICK = argparse.Namespace(deep=False)
ROLLUP = """55d0c0000000-7ffe00000000 ---p 00000000 00:00 0                          [rollup]
Rss:             2500000 kB
Pss:             1400000 kB
Shared_Clean:    1970000 kB
Shared_Dirty:          0 kB
Private_Clean:     30000 kB
Private_Dirty:    500000 kB
Private_Hugetlb:       0 kB
"""


def findings(check, *arguments) -> list[Finding]:
    """All findings of one check."""
    return list(doctor.guarded(lambda: check(*arguments)))


@pytest.fixture
def one_check(monkeypatch):
    """Let the doctor make a single check, which the test gives."""
    def give(*found: Finding):
        for name in ("system", "commit", "processor", "memory", "disk", "variables", "versions", "computing",
                     "kernel", "importable", "second_kernel"):
            monkeypatch.setattr(doctor, name, lambda: iter(()))
        monkeypatch.setattr(doctor, "models", lambda deep: iter(()))
        monkeypatch.setattr(doctor, "packages", lambda: iter(found))
    return give


@pytest.mark.parametrize("found, code, last", [
    ([], 0, "Nothing is wrong."), ([Finding("ok", "a")], 0, "Nothing is wrong."),
    ([Finding("warn", "a", "do b")], 0, "0 faults, 1 warning."),
    ([Finding("fault", "a"), Finding("fault", "b"), Finding("warn", "c")], 1, "2 faults, 1 warning."),
])
def test_only_a_fault_makes_the_exit_code_1(found, code, last, one_check, capsys):
    one_check(*found)
    assert doctor.main(QUICK) == code
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_the_mending_line_stands_below_its_finding(capsys):
    doctor.show(Finding("warn", "what", "mend it"))
    assert capsys.readouterr().out == "warn   what\n       -> mend it\n"


@pytest.mark.parametrize("error, words", [(Stop("Do this."), "Do this."), (KeyError("x"), "KeyError: 'x'")])
def test_a_check_that_breaks_is_a_finding_and_the_others_go_on(error, words):
    def broken():
        yield Finding("ok", "first")
        raise error
    first, second = findings(broken)
    assert first.level == "ok" and second.level == "fault" and words in second.what


def test_little_memory_is_a_fault_with_the_way_out(monkeypatch):
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    monkeypatch.setattr(machine, "memory", lambda: machine.Memory(2_000_000_000, 1_000_000_000))
    (found,) = findings(doctor.memory)
    assert found.level == "fault" and "COURSE_MODEL=smollm2-135m" in found.what
    monkeypatch.setattr(machine, "memory", lambda: None)
    assert findings(doctor.memory)[0].level == "warn"


@pytest.mark.parametrize("flags, quota, warnings", [({"avx2", "avx512f"}, None, []), ({"sse2"}, None, ["AVX2"]),
                                                    (set(), None, []), ({"avx2"}, 0.5, ["quota"])])
def test_a_slow_processor_is_told(flags, quota, warnings, monkeypatch):
    monkeypatch.setattr(doctor.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(machine, "processor", lambda: ("A", flags))
    monkeypatch.setattr(machine, "processor_quota", lambda: quota)
    found = [finding.what for finding in findings(doctor.processor) if finding.level == "warn"]
    assert len(found) == len(warnings) and all(word in what for word, what in zip(warnings, found, strict=True))


def test_a_full_disk_and_a_read_only_checkout_are_faults(monkeypatch):
    def refuse(folder):
        raise Stop(f"nothing can be written to {folder}")
    monkeypatch.setattr(machine, "disk_free", lambda path: 1000)
    monkeypatch.setattr(machine, "disk_used", lambda path: 0)
    monkeypatch.setattr(preflight, "check_writable", refuse)
    assert [finding.level for finding in findings(doctor.disk)] == ["fault", "fault", "fault"]


def test_an_environment_that_is_not_made_yet_is_no_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(environment, "ready", lambda: None)
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    (found,) = findings(doctor.packages)
    assert found.level == "warn" and "python3 -m lib run" in found.mend


def test_a_cuda_build_of_torch_is_told(tmp_path, monkeypatch):
    assert [finding.level for finding in findings(doctor.packages)] == ["ok"]
    (tmp_path / "nvidia_cublas-13.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    assert "CUDA build" in findings(doctor.packages)[-1].what


def test_a_foreign_kernel_is_a_fault(tmp_path, monkeypatch):
    assert [finding.level for finding in findings(doctor.kernel)] == ["ok"]
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    (folder / "kernel.json").write_text('{"argv": ["/other/python"], "display_name": "x", "language": "python"}',
                                        encoding="utf-8")
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    (found,) = findings(doctor.kernel)
    assert found.level == "fault" and "/other/python" in found.what and "lab" in found.mend


def test_whether_lib_can_be_imported_elsewhere_is_really_tried(tmp_path, monkeypatch):
    assert findings(doctor.importable)[0].level in ("ok", "warn")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    (tmp_path / "lib").mkdir()
    (found,) = findings(doctor.importable)
    assert found.level == "warn" and "-m pip install" in found.mend


@pytest.mark.parametrize("ready, deep, faults, level, words", [
    (False, False, [], "warn", "fetch"), (True, False, [], "ok", "ready"), (True, True, [], "ok", "every hash"),
    (True, True, ["model.safetensors: other bytes"], "fault", "other bytes"),
    (True, False, ["tokenizer.json is not the one in the registry"], "fault", "not the one in the registry"),
])
def test_models_are_told_ready_or_not(ready, deep, faults, level, words, monkeypatch):
    from lib import models
    from lib.machinery import fetch
    monkeypatch.setattr(models, "is_ready", lambda name: ready)
    monkeypatch.setattr(fetch, "verify", lambda name, deep: faults)
    found = findings(doctor.models, deep)
    assert {finding.level for finding in found} == {level}
    assert all(words in finding.what + finding.mend for finding in found)


@pytest.mark.parametrize("own, level, words", [(536_000_000, "ok", "536 MB of its own; the weights, 1,976 MB, are"),
                                               (2_500_000_000, "warn", "are not shared")])
def test_the_cost_of_a_second_kernel_is_said(own, level, words, monkeypatch):
    from lib import models
    monkeypatch.delenv("COURSE_MODEL", raising=False)
    monkeypatch.setattr(models, "is_ready", lambda name: True)
    monkeypatch.setattr(second_kernel, "measure", lambda name: second_kernel.Cost(own, 0))
    (found,) = findings(doctor.second_kernel)
    assert found.level == level and words in found.what
    monkeypatch.setattr(models, "is_ready", lambda name: False)
    assert "not measured" in findings(doctor.second_kernel)[0].what


def test_the_systems_account_of_a_process_is_read():
    assert second_kernel.from_rollup(ROLLUP) == (530_000 * 1024, 1_970_000 * 1024)
    own = second_kernel.cost(os.getpid())
    assert own.own > 10_000_000


def test_a_model_that_cannot_be_loaded_is_one_sentence_and_leaves_no_process(monkeypatch):
    monkeypatch.setattr(second_kernel, "KERNEL", "raise SystemExit('no {name}')")
    with pytest.raises(Stop, match=r"load tiny did not \(no tiny\)"):
        second_kernel.measure("tiny")


@pytest.mark.model
def test_a_second_kernel_shares_the_weights():
    cost = second_kernel.measure("smollm2-135m")
    assert cost.shared > 4 * preflight.registry()["smollm2-135m"]["parameters"] * 0.9
    assert cost.own < 700_000_000


def bare_python() -> str:
    """An interpreter of this version without the course's packages."""
    base = getattr(sys, "_base_executable", sys.executable)
    probe = subprocess.run([base, "-c", "import nbformat"], capture_output=True)
    if probe.returncode == 0:
        pytest.skip("the base Python holds the packages itself")
    return base


def test_on_a_bare_python_the_doctor_works_and_installs_nothing(tmp_path):
    base, copy = bare_python(), tmp_path / "course"
    shutil.copytree(environment.ROOT / "lib", copy / "lib", ignore=shutil.ignore_patterns("tests", "__pycache__"))
    for name in ("environment.yml", "pyproject.toml"):
        shutil.copy(environment.ROOT / name, copy)
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    variables |= {"PYTHONDONTWRITEBYTECODE": "1", "COURSE_CACHE": str(tmp_path / "cache")}
    before = sorted(copy.rglob("*"))
    answer = subprocess.run([base, "-m", "lib", "doctor"], cwd=copy, env=variables, capture_output=True, text=True)
    assert answer.stderr == "" and "environment: it isn't made yet" in answer.stdout, answer.stderr
    assert "commit: not known" in answer.stdout and "variables: COURSE_CACHE=" in answer.stdout
    assert "a check broke off" not in answer.stdout
    assert sorted(copy.rglob("*")) == before and not Path(tmp_path / "cache").exists()
