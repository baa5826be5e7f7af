"""The command line: what can be asked, and how a command gets to the Python that can do it."""
from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lib.machinery import Stop, environment, install, preflight

EXAMPLES = """examples:
  python3 -m lib run         set up, fetch the model, execute every notebook and show a table
  python3 -m lib run 01      the same with one notebook
  python3 -m lib test        prove that every recorded output holds
  python3 -m lib lab         open the notebooks in JupyterLab

On Windows write py instead of python3. COURSE_MODEL=smollm2-135m takes a smaller model, COURSE_CACHE=FOLDER
keeps the models elsewhere."""

HANDED_OVER = "COURSE_HANDED_OVER"  # names the interpreter that a command was handed to, so that it isn't twice
DISK = {errno.ENOSPC: "the disk is full: make room", errno.EDQUOT: "your disk quota is used up: make room",
        errno.EACCES: "permission is denied: make it yours", errno.EPERM: "permission is denied: make it yours",
        errno.EROFS: "the disk can only be read: copy the course to another one"}


class Command(NamedTuple):
    """One command: `where` is the module in lib.machinery and its function; `needs` is what comes before it."""

    sentence: str
    example: str
    where: tuple[str, str]
    needs: str = "environment"  # or "model" (memory for it too), "nothing" (set-up is never begun)
    options: tuple[str, ...] = ()


COMMANDS = {
    "run": Command("Execute the notebooks in order and show seconds, memory and result of each.",
                   "run 01 02", ("run", "main"), "model", ("notebooks",)),
    "test": Command("Prove that the recorded outputs hold: unit tests, strict re-execution, structure, canaries.",
                    "test --junit report.xml", ("gate", "main"), "model", ("notebooks", "all", "junit")),
    "lab": Command("Open the notebooks in JupyterLab, on a working copy in results/lab.",
                   "lab 01", ("lab", "main"), "model", ("notebook", "no-browser", "port")),
    "reset": Command("Bring one notebook of the working copy back; your edited one is kept beside it.",
                     "reset 01", ("lab", "reset"), "environment", ("one",)),
    "record": Command("Execute the notebooks and record their outputs (for those who write the course).",
                      "record 01", ("record", "main"), "model", ("notebooks", "times")),
    "evaluate": Command("Compute the rows of a long evaluation; they are written to results/evaluations with hashes.",
                        "evaluate loop --model qwen2.5-coder-0.5b", ("evaluate", "main"), "environment",
                        ("evaluation", "models", "again", "check")),
    "drift": Command("Measure how far the recorded logits move on other threads, kernels and instruction sets.",
                     "drift 01 --whole", ("drift", "main"), "model", ("notebooks", "whole", "emulated")),
    "bench": Command("Measure how long searches by words take, beside a short class and two libraries.",
                     "bench", ("bench", "main")),
    "segment": Command("Cut the Vietnamese notes and questions into words with pyvi, for notebook 04.",
                       "segment", ("segment", "main")),
    "serve": Command("Answer questions over HTTP: a page for the browser, server-sent events, OpenAI's form.",
                     "serve --port 8000", ("serve", "main"), "model", ("port", "host", "name")),
    "fetch": Command("Make models ready now, for instance before a lesson without internet.",
                     "fetch smollm2-135m", ("fetch", "main"), "environment", ("names",)),
    "doctor": Command("Say what is wrong with this machine, and the line that mends it.",
                      "doctor --deep", ("doctor", "main"), "nothing", ("deep",)),
    "clean": Command("List what the course takes on disk, and remove what you pick.",
                     "clean", ("clean", "main"), "nothing", ("yes",)),
}


def rows(given: str) -> int:
    """How many rows an option asks for: a whole number from 1 on, or `all`."""
    if given != "all" and not (given.isdecimal() and int(given) > 0):
        raise argparse.ArgumentTypeError(f"{given!r} is no number of rows: give 1, 2, ... or all")
    return sys.maxsize if given == "all" else int(given)


NUMBERS = {"metavar": "NN", "help": "numbers of notebooks, such as 01; all of them when left out"}
OPTIONS = {
    "notebooks": (["notebooks"], NUMBERS | {"nargs": "*"}),
    "notebook": (["notebooks"], {"metavar": "NN", "nargs": "?", "type": lambda given: [given], "default": [],
                                 "help": "the notebook to open"}),
    "one": (["notebooks"], {"metavar": "NN", "nargs": 1, "help": "the notebook to bring back"}),
    "names": (["names"], {"metavar": "NAME", "nargs": "*", "help": "models; those the notebooks use when left out"}),
    "evaluation": (["evaluation"], {"metavar": "NAME", "help": "the evaluation, such as loop"}),
    "models": (["--model"], {"metavar": "NAME", "action": "append", "dest": "models",
                             "help": "only the rows of this model; may be given several times"}),
    "again": (["--again"], {"action": "store_true", "help": "also compute the rows that are there already"}),
    "check": (["--check"], {"metavar": "N", "type": rows,
                            "help": "compute N rows of the file again, chosen at random (or all), and compare"}),
    "all": (["--all"], {"action": "store_true", "help": "the slow checks too"}),
    "whole": (["--whole"], {"action": "store_true",
                            "help": "every recorded token instead of a sample; written to results/drift.json"}),
    "emulated": (["--emulated"], {"action": "store_true",
                                  "help": "instead, a text of the small model on other instruction sets, by QEMU"}),
    "junit": (["--junit"], {"metavar": "FILE", "help": "also write the results as JUnit XML"}),
    "times": (["--times"], {"action": "store_true", "help": "also renew the recorded times"}),
    "deep": (["--deep"], {"action": "store_true", "help": "also compare the full hashes of the models"}),
    "yes": (["--yes"], {"action": "store_true", "help": "remove everything but your working copies, without asking"}),
    "no-browser": (["--no-browser"], {"action": "store_true", "help": "only print the address"}),
    "host": (["--host"], {"default": "127.0.0.1", "metavar": "ADDRESS",
                          "help": "the address to listen on; this machine alone when left out"}),
    "name": (["--name"], {"action": "append", "default": [], "metavar": "NAME",
                          "help": "a name it may be called by, such as that of a proxy before it"}),
    "port": (["--port"], {"type": int, "metavar": "N", "help": "the port to listen on (0: any that is free)"}),
}


class Parser(argparse.ArgumentParser):
    """argparse, whose complaint is one sentence."""

    def error(self, message: str) -> None:
        """End with 2 and a sentence in place of the whole usage."""
        self.exit(2, f"{message[:1].upper()}{message[1:]}; {self.prog} --help shows how.\n")


def parser() -> Parser:
    """The parser of all commands."""
    raw = argparse.RawDescriptionHelpFormatter
    top = Parser(prog="python3 -m lib", formatter_class=raw, epilog=EXAMPLES, allow_abbrev=False,
                 description="An executable course on LLM applications. The first command sets itself up.")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, command in COMMANDS.items():
        one = commands.add_parser(name, help=command.sentence, description=command.sentence, formatter_class=raw,
                                  epilog=f"example: python3 -m lib {command.example}", allow_abbrev=False)
        for option in command.options:
            names, settings = OPTIONS[option]
            one.add_argument(*names, **settings)
    return top


def parse(argv: list[str]) -> argparse.Namespace:
    """The command line as a namespace; an unknown command is met with the nearest one."""
    first = argv[0] if argv else ""
    if first and not first.startswith("-") and first not in COMMANDS:
        near = difflib.get_close_matches(first, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(COMMANDS)}."
        sys.stderr.write(f"There is no command {first!r}; {hint}\n")
        raise SystemExit(2)
    return parser().parse_args(argv)


def main(argv: list[str]) -> int:
    """The exit code of one command line; whatever its user can mend ends in one sentence on stderr."""
    prepare()
    try:
        arguments = parse(argv)
        if arguments.command is None:
            parser().print_help()
            return 0
        code = dispatch(arguments, argv)
        sys.stdout.flush()
        return code
    except BaseException as error:
        return verdict(error)


def prepare() -> None:
    """Make the streams take every character, and an end by signal an orderly one."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace", **({"encoding": "utf-8"} if os.name == "nt" else {}))
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) == signal.SIG_DFL:
            signal.signal(getattr(signal, name), lambda number, frame: sys.exit(128 + number))


def verdict(error: BaseException) -> int:
    """The exit code for what a command raised, after its sentence; only a fault of ours shows a traceback."""
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, BrokenPipeError):  # the reader of our output has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, KeyboardInterrupt):
        say("Interrupted; run the same command again to go on.")
        return 130
    if (sentence := sentence_of(error)) is None:
        traceback.print_exception(error)
        sentence = ("This is a fault of the course: please report it with the lines above and the output of "
                    "python3 -m lib doctor.")
    say(sentence)
    return 1


def sentence_of(error: BaseException) -> str | None:
    """What to tell the user about `error`, or None if it isn't theirs to mend."""
    if isinstance(error, Stop) or (isinstance(error, MemoryError) and str(error)):
        return str(error)
    if isinstance(error, MemoryError):
        return ("Memory ran out: close other programs or set "
                f"COURSE_MODEL={preflight.SMALL_MODEL}, and run the same command again.")
    if isinstance(error, OSError) and error.errno in DISK:
        where = f"{error.filename}: " if error.filename else "While writing, "
        return f"{where}{DISK[error.errno]}, and run the same command again."
    return None


def say(sentence: str) -> None:
    """Print one sentence to stderr, below whatever stood on the line."""
    if sys.stdout is not None and sys.stdout.isatty():
        print(flush=True)
    print(sentence, file=sys.stderr, flush=True)


def dispatch(arguments: argparse.Namespace, argv: list[str]) -> int:
    """The exit code of a parsed command, run here or handed to the environment's own Python."""
    command = COMMANDS[arguments.command]
    preflight.check_home()
    if command.needs == "model":
        preflight.check_memory()
    python = environment.ready() if arguments.command != "clean" else None
    if python is None and command.needs != "nothing":
        python = install.make()
    if python is not None and not environment.is_running(python):
        return hand_over(python, argv)
    if python is not None:
        os.environ.update(environment.variables(python))
        os.environ.pop(HANDED_OVER, None)
    return function(command)(arguments)


def function(command: Command) -> Callable[[argparse.Namespace], int]:
    """The function that does the work, imported only now."""
    module, name = command.where
    return getattr(importlib.import_module(f"lib.machinery.{module}"), name)


def hand_over(python: Path, argv: list[str]) -> int:
    """Run the same command on `python`; where the system can, this process becomes it, signals, code and all."""
    variables = environment.variables(python)
    if variables.get(HANDED_OVER) == str(python):
        raise RuntimeError(f"{python} was to run this command and does not see itself as the course's environment")
    variables[HANDED_OVER] = str(python)
    command = [str(python), "-m", "lib", *argv]
    sys.stdout.flush()
    if os.name != "nt":
        os.execve(command[0], command, variables)
    process = subprocess.Popen(command, env=variables)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the console has told the child too: wait for its own ending
            continue
