"""`python3 -m lib COMMAND`: looks at the Python that runs it, then hands over to machinery.commands.

Down to `main` this file keeps to what every Python since 2.7 understands, so that an old one meets a sentence.
"""
import os
import subprocess
import sys

FLOOR, CEILING = (3, 11), (3, 13)
PROBE = "import sys; print(sys.maxsize > 2**32 and '%d.%d' % sys.version_info[:2])"


def refusal(version, wide, arguments=()):
    """The one sentence for a Python that won't do, or None: `version` a tuple, `wide` whether it is 64-bit."""
    if FLOOR <= tuple(version[:2]) <= CEILING and wide:
        return None
    found = ".".join(str(part) for part in version[:3]) + ("" if wide else " (32-bit)")
    other = suitable()
    if other:
        advice = "run it with the one on this machine: " + " ".join([other, "-m", "lib"] + list(arguments))
    else:
        advice = "none of them was found here, so install one (python.org, your package manager, conda)"
    return "The course needs a 64-bit Python 3.11, 3.12 or 3.13 and this is Python " + found + "; " + advice + "."


def suitable():
    """The command of an interpreter that really runs here and will do, or None."""
    names = ["3.12", "3.13", "3.11"]
    commands = [["py", "-" + name] for name in names] if os.name == "nt" else [["python" + name] for name in names]
    for command in commands + [["python3"], ["python"]]:
        answer = output_of(command + ["-c", PROBE])
        if answer in names:
            return " ".join(command)
    return None


def output_of(command):
    """What `command` prints, or an empty string where it doesn't run."""
    try:
        with open(os.devnull, "rb") as nothing:
            process = subprocess.Popen(command, stdin=nothing, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        text = process.communicate()[0]
        return text.decode("ascii", "replace").strip() if process.returncode == 0 else ""
    except OSError:
        return ""


def main():
    """The exit code of the command on the command line."""
    try:
        sentence = refusal(sys.version_info, sys.maxsize > 2**32, sys.argv[1:])
        if sentence:
            sys.stderr.write(sentence + "\n")
            return 1
        from lib.machinery import commands
        return commands.main(sys.argv[1:])
    except KeyboardInterrupt:  # one that came before commands.main could meet it
        return 130


if __name__ == "__main__":
    sys.exit(main())
