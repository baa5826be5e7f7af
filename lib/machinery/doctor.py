"""What is wrong with this machine, and the one line that mends it; nothing is ever installed or changed here.

Its output is what a report of a fault needs, too, and can be shown to others: see `facts`.
"""
from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from lib.machinery import Stop, environment, facts, install, machine, preflight
from lib.machinery.machine import gigabytes

SETUP = "python3 -m lib run"


class Finding(NamedTuple):
    """One line of the report: `level` is ok, warn or fault; `mend` is the line that mends it."""

    level: str
    what: str
    mend: str = ""


Findings = Iterator[Finding]


def main(arguments: argparse.Namespace) -> int:
    """`python3 -m lib doctor`: print every finding; 1 if one is a fault."""
    ready = environment.ready() is not None
    checks: list[Callable[[], Findings]] = [system, commit, processor, memory, disk, variables, packages]
    checks += [versions, computing, kernel, importable] if ready else []
    checks += [lambda: models(arguments.deep), second_kernel] if ready else []
    found = [show(finding) for check in checks for finding in guarded(check)]
    faults, warnings = (sum(finding.level == level for finding in found) for level in ("fault", "warn"))
    counted = f"{faults} fault{'s' * (faults != 1)}, {warnings} warning{'s' * (warnings != 1)}."
    print("\nNothing is wrong." if not faults + warnings else f"\n{counted}")
    return int(faults > 0)


def show(finding: Finding) -> Finding:
    """Print a finding, its mending line below it; folders of this machine as `.` and `~`."""
    lines = f"{finding.level:<6} {finding.what}" + (f"\n       -> {finding.mend}" if finding.mend else "")
    print(facts.discreet(lines), flush=True)
    return finding


def guarded(check: Callable[[], Findings]) -> Findings:
    """The findings of a check; one that breaks is a finding itself, so that the others are still made."""
    try:
        yield from check()
    except Stop as stop:
        yield Finding("fault", str(stop))
    except Exception as error:
        yield Finding("fault", f"a check broke off: {type(error).__name__}: {error}",
                      "a fault of the course: please report it with this whole output")


def stopping(check: Callable[..., None], *arguments: object, ok: str) -> Finding:
    """The finding of a check of preflight's, which raises Stop: its sentence says what mends it."""
    try:
        check(*arguments)
    except Stop as stop:
        return Finding("fault", str(stop))
    return Finding("ok", ok)


def system() -> Findings:
    """The operating system and the Python that was started."""
    python = f"Python {platform.python_version()}, {'64' if sys.maxsize > 2**32 else '32'}-bit"
    yield Finding("ok", f"{python} on {platform.system()} {platform.release()} ({platform.machine()})")
    if sys.platform == "darwin" and platform.machine() == "x86_64":
        yield Finding("fault", "torch is no longer built for macOS on Intel processors",
                      "use a Mac with Apple silicon (and a Python built for it), Linux or Windows")
    if environment.ready() is None:
        yield stopping(preflight.check_venv_module, ok="it can make virtual environments")
    root = str(environment.ROOT)
    kind = " with blanks" * (" " in root) + ", not all of it ASCII" * (not root.isascii())
    yield stopping(preflight.check_path_length, ok=f"the course's folder has a path of {len(root)} characters{kind}")


def commit() -> Findings:
    """Which commit of the course this is, and what is changed in it."""
    yield Finding("ok", facts.commit())


def variables() -> Findings:
    """The variables that are set and could make a difference."""
    yield Finding("ok", facts.variables())


def versions() -> Findings:
    """The versions of the libraries that decide numbers and tokens."""
    yield Finding("ok", facts.versions())


def computing() -> Findings:
    """With which instructions and how many threads torch computes."""
    yield Finding("ok", facts.computing())


def processor() -> Findings:
    """The processor, its vector instructions, and how many of its cores we may use."""
    name, flags = machine.processor()
    vectors = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_tile", "asimd") if flag in flags]
    yield Finding("ok", f"processor: {name}" + (f", with {', '.join(vectors)}" if vectors else ""))
    if flags and platform.machine() in ("x86_64", "AMD64") and "avx2" not in flags:
        yield Finding("warn", "it has no AVX2, so that everything takes several times as long",
                      "use a machine from 2015 or later, or COURSE_MODEL=smollm2-135m")
    cores, quota = machine.cores(), machine.processor_quota()
    yield Finding("ok", f"{cores} of {os.cpu_count()} cores may be used" + (f", {quota:g} by quota" if quota else ""))
    if quota and quota < cores:
        yield Finding("warn", f"a container's quota allows {quota:g} cores and torch sees {cores}",
                      f"set OMP_NUM_THREADS={max(1, int(quota))}")


def memory() -> Findings:
    """What memory there is for the model in use."""
    found = machine.memory()
    if found is None:
        yield Finding("warn", "how much memory there is could not be found out")
        return
    amount = f"memory: {gigabytes(found.total)} in all, {gigabytes(found.available)} available"
    yield stopping(preflight.check_memory, found, ok=f"{amount}; {preflight.model_in_use()} fits")


def disk() -> Findings:
    """Room on the disks of the checkout and the cache, and whether they can be written to."""
    cache = machine.cache_folder()
    room = f"disk: {gigabytes(machine.disk_free(environment.ROOT))} free here, {gigabytes(machine.disk_free(cache))}"
    yield stopping(install.check_space, ok=f"{room} where the models are ({cache})")
    yield stopping(preflight.check_writable, environment.ROOT, ok="this folder can be written to")
    yield stopping(preflight.check_writable, machine.existing(cache), ok="the models' folder can be written to")


def packages() -> Findings:
    """Whether every pin is installed, and torch in its CPU build."""
    python = environment.ready()
    if python is None:
        fault = environment.venv_fault() if environment.VENV.exists() else "it isn't made yet"
        yield Finding("warn", f"environment: {fault}", f"{SETUP}   (sets it up, {install.ESTIMATE})")
        return
    yield Finding("ok", f"environment: {python} holds all {len(environment.pins())} pinned packages")
    nvidia = [name for entry in sys.path if entry for name in _names(Path(entry)) if name.startswith("nvidia_")]
    if nvidia:
        yield Finding("warn", f"torch is a CUDA build: {len(nvidia)} nvidia packages that nothing here uses",
                      "remove .venv when download.pytorch.org can be reached, and run again")


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".dist-info")]
    except OSError:
        return []


def kernel() -> Findings:
    """Whether the kernel that JupyterLab starts as python3 is this environment's."""
    from jupyter_client.kernelspec import KernelSpecManager
    spec = KernelSpecManager().get_kernel_spec("python3")
    program = spec.argv[0]
    own = program in ("python", "python3") or os.path.abspath(program) == os.path.abspath(sys.executable)
    if own:
        yield Finding("ok", f"kernel: python3 is this environment's ({program}, from {spec.resource_dir})")
    else:
        yield Finding("fault", f"kernel: python3 starts {program}, which is another Python ({spec.resource_dir})",
                      "unset JUPYTER_PATH and start JupyterLab with python3 -m lib lab")


def importable() -> Findings:
    """Whether `import lib` works from a folder that isn't the checkout, without our variables."""
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        answer = subprocess.run([sys.executable, "-c", "import lib; print(lib.__path__[0])"], cwd=folder,
                                env=surroundings, capture_output=True, text=True, encoding="utf-8", errors="replace")
    found = answer.stdout.strip()
    if found and os.path.samefile(found, environment.ROOT / "lib"):
        yield Finding("ok", "`import lib` works from any folder")
        return
    what = f"finds another one, {found}" if found else "works only through our commands"
    own = os.path.relpath(sys.executable, environment.ROOT) if environment.inside_venv() else "python3"
    yield Finding("warn", f"`import lib` {what}", f"{own} -m pip install --no-deps --no-build-isolation -e .")


def models(deep: bool) -> Findings:
    """Which models are ready, and those of the registry; with `deep`, whether every byte is still the right one."""
    from lib import models as registry
    from lib.machinery import fetch
    for name in preflight.models_needed():
        if not registry.is_ready(name):
            yield Finding("warn", f"model {name}: not here yet, or not whole", f"python3 -m lib fetch {name}")
        elif faults := fetch.verify(name, deep):
            yield Finding("fault", f"model {name}: {'; '.join(faults)}",
                          f"remove {registry.folder(name)} and run python3 -m lib fetch {name}")
        else:
            yield Finding("ok", f"model {name}: ready" + (", every hash right" if deep else ""))


def second_kernel() -> Findings:
    """What a second kernel on the model in use costs in memory, measured."""
    from lib import models as registry
    from lib.machinery import second_kernel as measurement
    name = preflight.model_in_use()
    if not registry.is_ready(name):
        yield Finding("ok", "a second kernel: not measured, the model isn't here yet")
        return
    weights = preflight.registry()[name]["parameters"] * 4
    cost = measurement.measure(name)
    own = f"a second kernel on {name} costs {cost.own / 1e6:,.0f} MB of its own"
    if cost.own < weights / 2:
        yield Finding("ok", f"{own}; the weights, {weights / 1e6:,.0f} MB, are shared")
    else:
        yield Finding("warn", f"{own}: the weights, {weights / 1e6:,.0f} MB, are not shared here",
                      "keep one notebook open at a time")
