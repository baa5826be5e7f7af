"""What runs the course and is never shown in a lesson. A map, from the command line inwards:

commands    the command line; hands over to run, record, gate, lab, evaluate, bench, serve, fetch, doctor or clean
set-up      environment, install, pip, pip_failures, preflight, lock, machine, progress (standard library alone)
models      fetch, wheels, gguf, convert, e5, weights, vocabulary, hub, checkpoint, folders, room, bars, models.json
execution   notebooks, kernels, ready, run, watch, lab, copies
recording   record, normalise, ledger, results
long runs   evaluate, evaluations (the evaluations themselves, a module each, and their frame), bench,
            drift (recorded tokens on other threads, kernels and instruction sets: a folder with a map)
peers       extras (libraries that bench, segment and the slow tests compare with, use or drive), segment
the gate    gate, stages, reexecute, strict (the pytest plugin), compare, outputs, pictures, unchecked (what is not
            compared), structure, canaries, anew, mutations, changes (of notebooks), mutants (of lib), orphan, junit
the endpoint    serve (its limits and the command), serving (a folder: in the order of a request)
this machine    doctor, facts, second_kernel, clean
"""
import sys

# jsonschema, which reads notebooks, builds a grammar of web addresses with it at import: seconds, for nothing here.
sys.modules.setdefault("rfc3987_syntax", None)


class Stop(Exception):
    """A failure that its reader can mend: one sentence that says what to do. Commands print it and end with 1."""
