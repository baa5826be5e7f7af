"""A pytest plugin that lets no notebook pass unseen: `pytest -p lib.machinery.strict --nbval --nbval-current-env`.

nbval re-executes a notebook and compares its outputs. Left alone, it passes stripped notebooks, ignored cells, failed
magics, swapped outputs and more; the strict classes make each of these a failure. This file holds what concerns
the whole run: the options it insists on, the order and number of cells, and the report for `gate`.
"""
from __future__ import annotations

import json
import signal
from pathlib import Path

import nbval
import nbval.kernel
import nbval.plugin
import pytest

from lib.machinery import orphan
from lib.machinery.strict import cell as strict_cell

NBVAL = "0.11.0"
# What the strict classes replace or lean on; another nbval may have other insides.
_INSIDE = [(nbval.plugin.IPyNbFile, "setup collect get_kernel_message teardown"),
           (nbval.plugin.IPyNbCell, "setup runtest raise_cell_error repr_failure compare_outputs"),
           (nbval.kernel.RunningKernel, "_ensure_iopub_up await_reply await_idle get_message execute_cell_input "
                                        "is_alive interrupt stop")]
_IRREGULAR = ("skipped", "xfailed", "xpassed", "deselected")


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """nbval's options and one more; nbval's own plugin is kept out, or each notebook would be run twice."""
    pluginmanager.set_blocked("nbval")
    nbval.plugin.pytest_addoption(parser)
    parser.getgroup("strict").addoption("--strict-report", metavar="FILE", help="write what was run to FILE (JSON)")


def pytest_configure(config: pytest.Config) -> None:
    """Refuses another nbval and options that would leave something out."""
    missing = [name for owner, names in _INSIDE for name in names.split() if not hasattr(owner, name)]
    if nbval.__version__ != NBVAL or missing:
        raise pytest.UsageError(f"the strict plugin is written for nbval {NBVAL}, and this is {nbval.__version__} "
                                f"(missing: {', '.join(missing) or 'nothing'}): run `python3 -m lib doctor`")
    wrong = refused_options(config.option)
    if wrong:
        raise pytest.UsageError(f"a strict run of notebooks does not go with: {', '.join(wrong)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be ended is to be interrupted: kernels go, too
    signal.signal(signal.SIGINT, signal.default_int_handler)  # even where a shell has started us in the background
    orphan.watch()
    config.pluginmanager.register(Report(config.option.strict_report), "strict-report")


def refused_options(option) -> list[str]:
    """The options, given or missing, with which some cell could go unseen."""
    given = {"--nbval-lax": option.nbval_lax, "--nbdime": option.nbdime,
             "--nbval-kernel-name": option.nbval_kernel_name,
             "--nbval-sanitize-with": option.nbval_sanitize_with or option.sanitize_with, "-k": option.keyword,
             "-m": option.markexpr, "--deselect": option.deselect, "--lf": getattr(option, "lf", False),
             "--ignore": option.ignore or option.ignore_glob, "--collect-only": option.collectonly,
             "--stepwise": getattr(option, "stepwise", False), "--maxfail": option.maxfail,
             "-n": getattr(option, "numprocesses", None), "--cov": getattr(option, "cov_source", None),
             "no --nbval": not option.nbval, "no --nbval-current-env": not option.nbval_current_env}
    return [name for name, value in given.items() if value]


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> strict_cell.StrictFile | None:
    """A notebook becomes a strict one."""
    return strict_cell.StrictFile.from_parent(parent, path=file_path) if file_path.suffix == ".ipynb" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Refuses a run that is not whole notebooks in their own order, whoever took something out or moved it."""
    refuse_parts(session.items)


def refuse_parts(items: list[pytest.Item]) -> None:
    """Raises UsageError unless `items` are all cells of each of their notebooks, in their order, each once."""
    by_file: dict[Path, list[int]] = {}
    for item in items:
        if not isinstance(item, strict_cell.StrictCell):
            raise pytest.UsageError(f"{item.nodeid} is no cell of a notebook")
        by_file.setdefault(item.path, []).append(item.place)
    if len({item.nodeid for item in items}) < len(items):
        raise pytest.UsageError("two notebooks would share the names of their cells: give a --rootdir above both")
    for path, places in by_file.items():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        if places != list(range(1, sum(cell["cell_type"] == "code" for cell in cells) + 1)):
            raise pytest.UsageError(f"{path.name}: not all of its cells would run, or not in their order")


def _counts(cells: list[dict]) -> dict:
    passed = sum(cell["outcomes"] == ["passed"] for cell in cells)
    checked = sum(cell["compared"] for cell in cells)
    return {"code_cells": len(cells), "checked": checked, "unchecked": len(cells) - checked, "passed": passed,
            "failed": len(cells) - passed, "seconds": round(sum(cell["seconds"] for cell in cells), 1),
            "faults": [fault for cell in cells for fault in cell["faults"]]}


class Report:
    """Counts, for each notebook, what really ran."""

    def __init__(self, path: str | None) -> None:
        self.path, self.cells = path, {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Which cells there are."""
        self.cells = {item.nodeid: {"notebook": str(item.path), "compared": False, "seconds": 0.0,
                                    "outcomes": [], "faults": []} for item in session.items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How each phase of each cell went."""
        cell = self.cells[report.nodeid]
        cell["seconds"] += report.duration
        cell["compared"] |= (strict_cell.COMPARED, True) in report.user_properties
        if report.when == "call" or not report.passed:
            irregular = report.skipped or hasattr(report, "wasxfail")
            cell["outcomes"].append("irregular" if irregular else report.outcome)
            cell["faults"] += [report.longreprtext] if report.longreprtext else []

    def summary(self) -> dict[str, dict]:
        """For each notebook: code cells, checked, unchecked, passed, failed, seconds, and its faults in words."""
        by_notebook: dict[str, list[dict]] = {}
        for cell in self.cells.values():
            by_notebook.setdefault(cell["notebook"], []).append(cell)
        return {path: _counts(cells) for path, cells in by_notebook.items()}

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Writes the report; a run in which a cell did not pass in the plain sense is a failed one."""
        summary = self.summary()
        if self.path:
            Path(self.path).write_text(json.dumps(summary, indent=1), encoding="utf-8")
        stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
        if session.exitstatus == 0 and (any(stats.get(kind) for kind in _IRREGULAR)
                                        or any(counts["failed"] for counts in summary.values())):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
