"""What this machine has, asked with the standard library alone: memory, processors, disk, the cache folder."""
from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple


class Memory(NamedTuple):
    """Bytes in all and bytes that a new program may take, within the limits that bind this process."""

    total: int
    available: int


def gigabytes(number: float) -> str:
    """`number` of bytes in words: 1.6 GB; below one gigabyte in whole MB."""
    return f"{number / 1e9:.1f} GB" if number >= 0.95e9 else f"{number / 1e6:.0f} MB"


def memory(root: Path = Path("/")) -> Memory | None:
    """The memory this process may use, or None where the system doesn't say; `root` holds /proc and /sys."""
    try:
        machine = {"linux": lambda: _linux_memory(root), "win32": _windows_memory, "darwin": _mac_memory}
        total, available = machine[sys.platform]()
    except (KeyError, OSError, ValueError, AttributeError, subprocess.SubprocessError):
        return None
    for limit, used in memory_limits(root):
        total, available = min(total, limit), min(available, max(0, limit - used))
    return Memory(total, available)


def _linux_memory(root: Path) -> tuple[int, int]:
    lines = (root / "proc/meminfo").read_text(encoding="utf-8").splitlines()
    facts = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return facts["MemTotal"], facts["MemAvailable"]


def _windows_memory() -> tuple[int, int]:
    names = ["ullTotalPhys", "ullAvailPhys", "ullTotalPageFile", "ullAvailPageFile", "ullTotalVirtual",
             "ullAvailVirtual", "ullAvailExtendedVirtual"]

    class Status(ctypes.Structure):
        _fields_ = [("dwLength", ctypes.c_ulong), ("dwMemoryLoad", ctypes.c_ulong),
                    *((name, ctypes.c_ulonglong) for name in names)]

    status = Status(dwLength=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))
    return status.ullTotalPhys, status.ullAvailPhys


def _mac_memory() -> tuple[int, int]:
    """macOS gives pages back under pressure, so what is free, inactive or purgeable counts as available."""
    total = int(subprocess.check_output(["sysctl", "-n", "hw.memsize"], timeout=5))
    lines = subprocess.check_output(["vm_stat"], text=True, timeout=5).splitlines()
    page = int("".join(filter(str.isdigit, lines[0])))
    pages = {line.split(":")[0]: int(line.split()[-1].rstrip(".")) for line in lines[1:] if ":" in line}
    names = ("Pages free", "Pages inactive", "Pages purgeable", "Pages speculative")
    return total, page * sum(pages.get(name, 0) for name in names)


def memory_limits(root: Path = Path("/")) -> list[tuple[int, int]]:
    """(limit, used) in bytes of each control group, version 2 or 1, that bounds this process's memory."""
    limits = []
    for version, folder in control_groups("memory", root):
        names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes",
                                                                       "memory.usage_in_bytes")
        limit, used = _number(folder / names[0]), _number(folder / names[1])
        if limit is not None and limit < 2**60:  # version 1 writes 'none' as a huge number
            limits.append((limit, max(0, (used or 0) - _page_cache(folder))))
    return limits


def control_groups(controller: str, root: Path = Path("/")) -> list[tuple[int, Path]]:
    """(version, folder) of the control groups this process is in, innermost first, for one controller."""
    found = []
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return found
    for number, controllers, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if number != "0" and controller not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / ("" if number == "0" else controller)
        inner = base / path.strip("/")
        folders = [inner, *(parent for parent in inner.parents if parent.is_relative_to(base))]
        found += [(2 if number == "0" else 1, folder) for folder in folders]
    return found


def _page_cache(folder: Path) -> int:
    """Bytes of files that a control group counts as used but gives back when asked."""
    try:
        facts = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="utf-8").splitlines())
    except (OSError, ValueError):
        return 0
    prefix = "total_" if "total_inactive_file" in facts else ""
    return sum(int(facts.get(prefix + name, 0)) for name in ("inactive_file", "active_file"))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def cores() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor_quota(root: Path = Path("/")) -> float | None:
    """How many processors' worth of time a control group allows, or None where none limits it."""
    quotas = []
    for version, folder in control_groups("cpu", root):
        try:
            if version == 2:
                quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
            else:
                quota, period = ((folder / f"cpu.cfs_{name}_us").read_text(encoding="utf-8")
                                 for name in ("quota", "period"))
            quotas += [int(quota) / int(period)] if int(quota) > 0 else []
        except (OSError, ValueError):
            continue
    return min(quotas, default=None)


def processor() -> tuple[str, set[str]]:
    """(name, instruction-set flags in lower case) of the processor; the flags are empty where unknown."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or platform.machine(), set()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}
    return facts.get("model name", platform.machine()), set((facts.get("flags") or facts.get("Features", "")).split())


def existing(path: Path) -> Path:
    """`path`, or its nearest parent that is there."""
    return next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())


def disk_free(path: Path) -> int:
    """Bytes free for an ordinary user on the disk where `path` lies or will lie."""
    return shutil.disk_usage(existing(path)).free


def same_disk(one: Path, other: Path) -> bool:
    """Whether two paths, there or not yet, lie on one disk."""
    return existing(one).stat().st_dev == existing(other).stat().st_dev


def disk_used(path: Path) -> int:
    """Bytes that a file or a whole folder takes on disk; links are counted, not followed."""
    try:
        entry = path.lstat()
        size = getattr(entry, "st_blocks", 0) * 512 or entry.st_size
        inner = [Path(item.path) for item in os.scandir(path)] if path.is_dir() and not path.is_symlink() else []
    except OSError:
        return 0
    return size + sum(disk_used(item) for item in inner)


def cache_folder() -> Path:
    """The course's cache folder, as lib.models.cache_folder() says it with platformdirs."""
    if os.environ.get("COURSE_CACHE"):
        return Path(os.environ["COURSE_CACHE"])
    home = Path(os.path.expanduser("~"))
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData/Local") / "llm-applications/Cache"
    if sys.platform == "darwin":
        return home / "Library/Caches/llm-applications"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "llm-applications"
