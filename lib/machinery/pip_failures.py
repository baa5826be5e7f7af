"""What pip's output says went wrong, put into one sentence with what to do."""
from __future__ import annotations

import re
import sys

from lib.machinery import Stop

DISK = re.compile(r"No space left on device|Errno 28\b|not enough space on the disk|Disk quota exceeded", re.I)
NETWORK = re.compile(r"connection broken|Could not fetch URL|Max retries exceeded|NewConnectionError|ProxyError|"
                     r"Read timed out|ReadTimeoutError|ConnectTimeout|name resolution|getaddrinfo|SSLError|"
                     r"CERTIFICATE_VERIFY_FAILED|Connection (refused|reset|aborted)|IncompleteRead|"
                     r"HTTP error (407|5\d\d)|Network is unreachable|connection failed|IncompleteDownload", re.I)
ABSENT = re.compile(r"No matching distribution found for ([^\s;=]+)(?:==([^\s;]+))?")
DENIED = re.compile(r"Permission denied|Errno 13\b|Access is denied|WinError 5\b", re.I)
KINDS = {"disk": DISK, "network": NETWORK, "absent": ABSENT, "permission": DENIED}  # the first that fits


class PipFailure(Stop):
    """A pip call that came to nothing, for a reason of one `kind`."""

    def __init__(self, output: str, log: str):
        self.kind = kind(output)
        super().__init__(f"{EXPLAIN[self.kind](output)} (log: {log}).")


def kind(text: str) -> str:
    """What pip's output says went wrong: disk, network, absent, permission or other."""
    return next((name for name, pattern in KINDS.items() if pattern.search(text)), "other")


def last_words(text: str) -> str:
    """The last error in pip's output, or its last line."""
    errors = [line.removeprefix("ERROR: ") for line in text.splitlines() if line.startswith("ERROR: ")]
    return (errors or text.strip().splitlines() or ["it said nothing"])[-1].strip().rstrip(".:")


def full_disk(text: str) -> str:
    """What to do where the disk became full."""
    return ("The disk became full during set-up: make room (python3 -m lib clean shows what the course takes) and "
            "run the same command again; what was installed is kept")


def no_network(text: str) -> str:
    """What to do where no index could be reached."""
    return ("pip could not reach its package index: connect to the internet, or name your proxy (HTTPS_PROXY), "
            "mirror (PIP_INDEX_URL) or certificate (PIP_CERT), and run the same command again; what was installed is "
            "kept")


def absence(text: str) -> str:
    """Why a pinned package was not to be had, and what to do."""
    name, version = ABSENT.search(text).groups()
    package = f"{name}=={version}" if version else name
    wanted = re.search(rf"[ :]{re.escape(version or '-')} Requires-Python ([^;\n]+)", text)
    if wanted:
        return (f"{package} needs Python {wanted[1].strip()} and this is {sys.version.split()[0]}: start the command "
                "with a newer Python, up to 3.13")
    return (f"pip's index has no ready-made {package} for this Python and system: name an index that is complete "
            "(PIP_INDEX_URL or pip's configuration), or start the command with Python 3.12")


def denied(text: str) -> str:
    """What to do where pip may not write."""
    return (f"Set-up may not write where it must ({last_words(text)}): make the folder .venv your own, or remove it, "
            "and run the same command again")


def anything_else(text: str) -> str:
    """pip's own last words, where we know no better."""
    return f"pip could not install a package ({last_words(text)}): mend that and run the same command again"


EXPLAIN = {"disk": full_disk, "network": no_network, "absent": absence, "permission": denied, "other": anything_else}
