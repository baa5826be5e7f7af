"""Every known way in which a recorded notebook passes unseen, or is red without cause, and what closes it here.

The rows are those of a survey of nbval, its alternatives and their users' reports. Each names its witnesses: a canary
(`canary: name`), a test (`file: test`) or a mutation (`mutation: kind`); a witness that is gone turns this file red.
"""
import json
import re
from pathlib import Path

import pytest

from lib.machinery import canaries, environment, mutants, mutations, notebooks, preflight, reexecute
from lib.machinery.outputs import FIGURES
from lib.machinery.record import Recorder
from lib.machinery.results import TIMES
from lib.machinery.strict.cell import OUTPUT_TIMEOUT
from lib.tests.canaries.make import notebook

SILENT = {  # how nbval passes silently
    "a cell without count and outputs is never compared": ["canary: stripped_outputs", "canary: unrun_cell"],
    "lax mode, markers that ignore or skip": [
        "canary: ignored_in_a_string", "canary: skipped_by_a_tag", "canary: unchecked_without_reason",
        "test_strict: options_that_leave_something_out_are_refused", "test_unchecked: tags_and_list_are_one"],
    "a bad magic, whose error is in the reply alone": ["canary: bad_magic"],
    "stderr left out of the comparison": ["canary: stderr", "canary: warns_now", "canary: warns_below_python"],
    "raises-exception that no longer raises": ["canary: raises_that_does_not_raise", "canary: raises_as_recorded"],
    "a sanitiser that takes too much": ["test_strict: options_that_leave_something_out_are_refused",
                                        "test_gate_audit: nothing_is_ever_sanitised"],
    "another order, another image, other metadata": [
        "canary: swapped_output_order", "canary: value_recorded_as_display", "canary: another_image",
        "canary: another_alt_text", "canary: lost_alt_text", "canary: missing_mime", "mutation: a picture mirrored",
        "test_gate_audit: the_numbers_of_a_figure_are_printed_beside_it",
        "test_pictures: no_two_figures_of_the_course_pass_for_one_another",
        "test_gate: recorded_anew_is_compared_to_the_byte"],
    "no --nbval, another folder, -k, deselected, xfailed": [
        "test_strict: options_that_leave_something_out_are_refused", "test_strict: part_of_a_notebook_is_refused",
        "test_strict_run: a_plugin_that_leaves_a_cell_out_turns_the_run_red",
        "test_strict_run: settings_and_plugins_of_others_have_no_part",
        "test_strict_run: a_notebook_given_twice_is_run_once_and_one_that_is_missing_is_a_fault",
        "test_strict: what_a_report_does_not_prove_is_a_fault"],
    "a stale recording of the same value": [],  # harmless: what a reader sees is what comes
    "an answer that is written into a print": ["mutation: lib",
                                               "test_mutants: a_mutant_is_caught_by_what_a_notebook_shows"],
}
REPORTS = {  # what went wrong for others
    1: ("an unknown magic, the rest of the cell unrun", [
        "canary: bad_magic", "test_structure: what_only_a_notebook_understands_is_named"]),
    2: ("raises-exception that no longer raises", ["canary: raises_that_does_not_raise"]),
    3: ("a cell that was not run is never compared", ["canary: stripped_outputs", "canary: unrun_cell"]),
    4: ("a `;` that is not honoured; an upgrade that changed it", [
        "canary: trailing_semicolon", "test_strict: what_is_said_about_a_toy",
        "test_strict: another_nbval_is_refused"]),
    5: ("chunks of a stream that come by chance, progress bars", [
        "test_record: three_recordings_are_equal_to_the_byte",
        "test_gate_audit: a_recording_is_made_without_chance"]),
    6: ("stderr changed, and was left out", [
        "canary: stderr", "canary: warns_now", "test_gate_audit: warnings_are_errors_in_the_tests"]),
    7: ("clear_output breaks the comparison", ["canary: changed_after_shown",
                                               "test_record: nothing_is_written_when_something_is_wrong"]),
    8: ("a killed kernel was waited for 2,000 seconds", [
        "canary: dead_kernel", "canary: killed_in_a_long_cell",
        "test_strict_run: a_dead_kernel_is_told_within_seconds_and_what_follows_fails",
        "test_strict_run: a_cell_that_does_not_let_itself_be_interrupted_is_ended_with_its_kernel",
        "test_gate_audit: the_memory_that_is_asked_for_is_what_notebooks_take"]),
    9: ("outputs are waited for five seconds", ["test_gate_audit: timeouts_are_those_of_a_slow_machine"]),
    10: ("xdist scatters cells", ["test_strict: options_that_leave_something_out_are_refused"]),
    11: ("Matplotlib's own text of a figure changed", [
        "test_gate_audit: no_output_is_matplotlibs_own_text",
        "test_pictures: a_figure_drawn_a_little_otherwise_is_the_same"]),
    12: ("a new pytest broke the plugin", ["test_gate_audit: what_the_outputs_depend_on_is_pinned",
                                           "test_strict: insides_that_nbval_has_no_more_are_named"]),
    13: ("recorded by one program, checked by another", ["test_gate: recorded_anew_is_compared_to_the_byte"]),
    14: ("coverage and nbval hang", ["test_strict: options_that_leave_something_out_are_refused"]),
    15: ("the kernel's name of the author's environment", ["canary: foreign_kernel_name",
                                                           "test_environment: a_personal_kernel_called_python3"]),
    16: ("a model's text differs on a reader's machine", ["test_ledger: where_two_runs_part",
                                                          "test_real_models: it_is_the_model_it_says"]),
    17: ("threads and instruction sets change results", ["test_ledger: a_near_tie_of_the_recording_counts_too"]),
    18: ("another default dtype", ["test_real_models: it_is_the_model_it_says"]),
    19: ("another version tokenises otherwise", [
        "test_real_models: known_prompts_have_known_lengths", "canary: unrecorded_generation",
        "test_ledger: where_two_runs_part"]),
    20: ("a hidden repetition penalty", ["test_real_models: the_loop_equals_transformers_generate"]),
    21: ("cache, padding and batches change tokens", ["test_generation: a_shared_prefix_is_fed_once",
                                                      "mutation: lib"]),
    22: ("the hub refuses in CI", ["test_notebooks: kernels_get_nothing_of_a_shell_or_another_test"]),
    23: ("paths relative to the wrong folder", [
        "test_strict_run: settings_and_plugins_of_others_have_no_part",
        "test_strict_run: a_checkout_at_an_odd_path_is_tested_like_any_other"]),
    24: ("counts that cannot be", ["canary: counts_out_of_order", "canary: removed_cell"]),
    25: ("ids and timings change at each save", ["test_record: only_the_metadata_of_the_course_are_kept",
                                                 "test_anew: three_recordings_of_an_unchanged_tree_are_equal"]),
    26: ("saved outputs were doubled", ["canary: doubled_output", "canary: removed_output"]),
    27: ("NumPy's own way to write a number", ["test_gate_audit: no_output_shows_numpys_own_numbers"]),
    28: ("progress bars and warnings in outputs", ["canary: warns_now", "canary: widget_output",
                                                   "canary: widgets_metadata"]),
    29: ("a thread's output lands in another cell", ["canary: late_print"]),
    30: ("Windows' event loop and encodings", ["test_gate_audit: texts_are_utf_8_everywhere"]),
    31: ("kernels that start slowly, memory that runs out", [
        "test_gate_audit: timeouts_are_those_of_a_slow_machine",
        "test_gate_audit: the_memory_that_is_asked_for_is_what_notebooks_take"]),
    32: ("outputs that were only run, and went stale", ["canary: wrong_text", "canary: wrong_value",
                                                        "canary: emptied_output", "mutation: a letter changed"]),
    33: ("a traceback changes with IPython", ["canary: raises_as_recorded", "canary: raises_now"]),
}
TESTS = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("test_*.py")}
WITNESSES = sorted({each for row in (*SILENT.values(), *(witnesses for _, witnesses in REPORTS.values()))
                    for each in row})


@pytest.mark.parametrize("witness", WITNESSES)
def test_the_witness_is_there(witness):
    kind, name = witness.split(": ")
    if kind == "canary":
        assert name in canaries.EXPECTED and name not in canaries.SOUND
    elif kind == "mutation":
        assert name in mutations.HALVES or (name == "lib" and mutants.MUTANTS)
    else:
        assert re.search(rf"^def test_{name}", TESTS[kind], re.M)


def test_every_row_is_there_and_has_a_witness():
    assert list(REPORTS) == list(range(1, 34)) and len(SILENT) == 10
    assert [row for row, (_, witnesses) in REPORTS.items() if not witnesses] == []
    assert [row for row, witnesses in SILENT.items() if not witnesses] == ["a stale recording of the same value"]


def every_output():
    """(notebook and cell, output) of the course."""
    return [(f"{path.stem} {cell.id}", output) for path in notebooks.select([])
            for cell in notebooks.code_cells(notebooks.read(path)) for output in cell.outputs]


def texts(output) -> list[str]:
    return [str(value) for value in (*output.get("data", {}).values(), output.get("text", ""))]


def test_no_output_is_matplotlibs_own_text():
    assert every_output()
    assert [where for where, output in every_output() if any("<Figure size" in text for text in texts(output))] == []


def test_no_output_shows_numpys_own_numbers():
    found = re.compile(r"\bnp\.(?:float|int|bool|str)_?\d*\(")
    assert [where for where, output in every_output() if any(map(found.search, texts(output)))] == []


def test_the_numbers_of_a_figure_are_printed_beside_it():
    bare = []
    for path in notebooks.select([]):
        cells = notebooks.code_cells(notebooks.read(path))
        for place, cell in enumerate(cells):
            near = [output for other in cells[max(place - 2, 0):place + 3] if not notebooks.is_unchecked(other)
                    for output in other.outputs if not set(FIGURES) & set(output.get("data", {}))]
            figures = [output for output in cell.outputs if set(FIGURES) & set(output.get("data", {}))]
            numbers = re.findall(r"\d+(?:[.,]\d+)*", " ".join(text for output in near for text in texts(output)))
            bare += [f"{path.stem} {cell.id}"] * (bool(figures) and len(set(numbers)) < 3)
    assert bare == []


def test_what_the_outputs_depend_on_is_pinned():
    pins = environment.pins()
    names = {"pytest", "nbval", "nbclient", "ipykernel", "ipython", "torch", "transformers", "tokenizers", "numpy"}
    assert names <= set(pins)


def test_timeouts_are_those_of_a_slow_machine():
    command = reexecute.strict_command(notebooks.ROOT, reexecute.CELL_TIMEOUT)
    assert {"--nbval-kernel-startup-timeout=120", "--nbval-cell-timeout=600"} <= set(command) and OUTPUT_TIMEOUT >= 60
    recorder = Recorder(notebook())
    assert (recorder.startup_timeout, recorder.iopub_timeout, recorder.raise_on_iopub_timeout) == (120, 60, True)


def test_a_recording_is_made_without_chance():
    recorder = Recorder(notebook())
    assert recorder.coalesce_streams and not recorder.record_timing and not recorder.store_widget_state


def test_nothing_is_ever_sanitised():
    words = " ".join([*reexecute.strict_command(notebooks.ROOT, 1), reexecute.SETTINGS.read_text(encoding="utf-8")])
    assert "sanitize" not in words and "lax" not in words and "--nbval " in words


def test_warnings_are_errors_in_the_tests():
    assert 'filterwarnings = ["error"]' in (notebooks.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "filterwarnings = error" in reexecute.SETTINGS.read_text(encoding="utf-8")


def test_texts_are_utf_8_everywhere():
    assert reexecute.SETTINGS.read_bytes().isascii()
    assert notebooks.child_environment()["PYTHONUTF8"] == "1"


def test_the_memory_that_is_asked_for_is_what_notebooks_take():
    asked = preflight.registry()[preflight.model_in_use()]["parameters"] * 4 + preflight.WORKING_MEMORY
    taken = {path.stem: json.loads(path.read_text(encoding="utf-8")).get("peak_memory_mb", 0) * 1e6
             for path in (notebooks.ROOT / "results" / TIMES).glob("[0-9][0-9].json")}
    more = re.search(r"three of free memory \((3\.5) for (06), which holds two models\)",
                     (notebooks.ROOT / "README.md").read_text(encoding="utf-8"))
    allowed = {more[2]: float(more[1]) * 1e9}
    assert taken and {name for name, most in taken.items() if most > allowed.get(name, asked)} == set()
