"""nbval's collector and cells made strict: each way in which a cell could pass unseen is a fault of that cell."""
from __future__ import annotations

import re

from nbformat import NotebookNode
from nbval.plugin import IPyNbCell, IPyNbFile, NbCellError

from lib.machinery import compare, ledger, notebooks
from lib.machinery.strict.kernel import KernelDied, StrictKernel

OUTPUT_TIMEOUT = 60  # seconds to wait for outputs after a reply; nbval's own 5 are too few on a slow machine
COMPARED = "compared"  # what a cell notes of itself when its contents have been compared
_MARKERS = re.compile(r"NBVAL_|PYTEST_VALIDATE_")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CHANGING = {"clear_output", "update_display_data", "comm_open"}


class Fault(Exception):
    """What is wrong with a cell: one sentence a line."""


class StrictFile(IPyNbFile):
    """A notebook; `stopped` says why its remaining cells cannot be run (empty while they can)."""

    stopped = ""

    def collect(self):
        """The cells of the notebook, with what the generations were when it was recorded."""
        number, root = notebooks.number(self.path), self.path.parent.parent
        self.kept = ledger.read_json(ledger.generations_path(root, number))
        self.ties = [tie for tie in ledger.read_json(ledger.near_ties_path(root)) if tie["notebook"] == number]
        self.items = [StrictCell.from_parent(self, name=cell.name, cell_num=cell.cell_num, cell=cell.cell,
                                             options=cell.options) for cell in super().collect()]
        yield from self.items

    def setup(self) -> None:
        """Starts the kernel, in the notebook's folder; nothing is ever sanitised."""
        self.kernel = StrictKernel(self.path.parent, self.config.option.nbval_kernel_startup_timeout)

    def teardown(self) -> None:
        """Ends the kernel even when it is dead already: its children and files must go, too."""
        if self.kernel is not None:
            self.kernel.stop()


class StrictCell(IPyNbCell):
    """A code cell: it passes when it ran, in its turn, and gave what is recorded, and in no other case."""

    def __init__(self, name: str, parent: StrictFile, cell_num: int, cell: NotebookNode, options: dict) -> None:
        self.place = cell_num + 1
        self.checked = not notebooks.is_unchecked(cell)
        # nbval's own markers have no power here: a comment or a tag must not change what is compared.
        options = {**options, "skip": False, "check_exception": False, "check": self.checked}
        super().__init__(notebooks.label(self.place, cell), parent, cell_num, cell, options)
        self.output_timeout = OUTPUT_TIMEOUT

    def setup(self) -> None:
        """Nothing: after a timeout nbval would expect the remaining cells to fail; here they do fail."""

    def runtest(self) -> None:
        """Runs the cell and raises Fault with all that is wrong with it."""
        if self.parent.stopped:
            raise Fault(f"not run: {self.parent.stopped}")
        before = len(self.parent.kernel.generations())
        faults = recorded_faults(self.place, self.cell) + (spec_faults(self.parent.nb) if self.place == 1 else [])
        faults += self._executed_faults() or self._reply_faults() or self._output_faults()
        faults += self._generation_faults(before)
        if faults:
            raise Fault("\n".join(faults))

    def _executed_faults(self) -> list[str]:
        """Runs the cell as nbval does; what nbval says against it, but for outputs, which are compared below."""
        try:
            super().runtest()
        except KernelDied:
            self.parent.stopped = f"the kernel died in cell {self.place}"
            return ["the kernel died in this cell; often too little memory"]
        except NbCellError as error:
            if self.parent.timed_out:
                self.parent.stopped = f"cell {self.place} took too long"
            trace = _COLOURS.sub("", error.inner_traceback or "").strip().splitlines()
            self.nbval_says = str(error)
            return [] if self.nbval_says == "Cell outputs differ" else [self.nbval_says, *trace[-12:]]
        self.nbval_says = ""
        return []

    def _reply_faults(self) -> list[str]:
        kernel = self.parent.kernel
        reply = kernel.reply
        ends = any(each.get("source") == "ask_exit" for each in reply.get("payload", ()))
        found = [f"the kernel answers {reply.get('status')!r}: {reply.get('ename')}: {reply.get('evalue')}"
                 ] if reply.get("status") != "ok" else ["the cell ends its kernel"] * ends
        found += [f"an output of an earlier cell comes while this one runs ({kind}): join what it started"
                  for kind in sorted(kernel.strays)]
        return found + [f"changes an output after showing it ({kind}), which cannot be compared"
                        for kind in sorted(_CHANGING & kernel.kinds)]

    def _output_faults(self) -> list[str]:
        """Stricter than nbval, which knows no order between kinds of outputs and no metadata; its word counts too."""
        found = compare.fault(self.cell, self.test_outputs)
        self.user_properties.append((COMPARED, self.checked))
        return [found] if found else [self.nbval_says] if self.nbval_says else []

    def _generation_faults(self, before: int) -> list[str]:
        """What the models generated in this cell, against what is kept of the recording."""
        now, kept = self.parent.kernel.generations(), self.parent.kept
        found = ledger.compare(kept, self.parent.ties, now)
        if found is not None and found.generation > before:
            return [str(found)]
        last = self is self.parent.items[-1]
        if len(now) > max(before, len(kept)) or (last and len(now) != len(kept)):
            return [f"{len(now)} generations so far, and {len(kept)} are recorded for the whole notebook"]
        return []

    def repr_failure(self, excinfo) -> str:
        """The faults, below a line that says where."""
        heading = f"{self.path.name}, {notebooks.label(self.place, self.cell)}"
        says = str(excinfo.value) or type(excinfo.value).__name__
        return f"{heading}\n" + "\n".join(f"  {line}" for line in says.splitlines())

    def reportinfo(self):
        """Where the cell is, as pytest shows it."""
        return self.path, None, f"{self.path.name}: {notebooks.label(self.place, self.cell)}"


def spec_faults(notebook: NotebookNode) -> list[str]:
    """What would give a reader another kernel than the one that is tested."""
    name = notebook.metadata.get("kernelspec", {}).get("name")
    return [] if name == "python3" else [f"the notebook asks for the kernel {name!r}, not for 'python3'"]


def recorded_faults(place: int, cell: NotebookNode) -> list[str]:
    """What makes the recording of a cell unfit to be compared with, before anything is run."""
    outputs = cell.outputs
    kinds = {output.get("name") for output in outputs} | {output.output_type for output in outputs}
    widgets = any("widget" in mime for output in outputs for mime in output.get("data", {}))
    checks = {
        f"its count is {cell.execution_count}, and it should be {place}": cell.execution_count != place,
        "stderr is recorded as an output": "stderr" in kinds,
        "an exception is recorded as an output": "error" in kinds,
        "a live widget is recorded as an output": widgets,
        "a marker of nbval stands in it": bool(_MARKERS.search(cell.source)),
        f"it is unchecked without the reason {notebooks.UNCHECKED_COMMENT!r} …":
            notebooks.is_unchecked(cell) and not (notebooks.shows_reason(cell) and notebooks.unchecked_reason(cell)),
        "a tag lets it raise or be skipped": bool({"raises-exception", "nbval-raises-exception", "nbval-skip"}
                                                  & set(cell.metadata.get("tags", []))),
    }
    return [fault for fault, found in checks.items() if found]
