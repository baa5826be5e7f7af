"""What the machine has: control groups of both versions, and where the cache is."""
import sys
from pathlib import Path

import pytest

from lib import models
from lib.machinery import machine

MEMINFO = "MemTotal:       16000000 kB\nMemFree: 1 kB\nMemAvailable:    8000000 kB\nHugePages_Total:       0\n"
KB = 1024


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


VERSION_2 = {"proc/self/cgroup": "0::/user/box\n", "sys/fs/cgroup/user/memory.max": "max\n",
             "sys/fs/cgroup/user/box/memory.max": "3000000000\n",
             "sys/fs/cgroup/user/box/memory.current": "2500000000\n",
             "sys/fs/cgroup/user/box/memory.stat": "anon 5\ninactive_file 900000000\nactive_file 100000000\n"}
VERSION_1 = {"proc/self/cgroup": "5:cpu,memory:/docker/x\n1:name=systemd:/\n",
             "sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes": "2000000000\n",
             "sys/fs/cgroup/memory/docker/x/memory.usage_in_bytes": "1500000000\n",
             "sys/fs/cgroup/memory/docker/x/memory.stat": "total_inactive_file 500000000\ninactive_file 7\n",
             "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}
# in a container the path that the group has outside is not there: its limit stands at the root
CONTAINER = {"proc/self/cgroup": "0::/outside/only\n", "sys/fs/cgroup/memory.max": "1000000000\n"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("files, total, available", [
    ({}, 16000000 * KB, 8000000 * KB), ({"proc/self/cgroup": "nonsense\n"}, 16000000 * KB, 8000000 * KB),
    (VERSION_2, 3_000_000_000, 1_500_000_000), (VERSION_1, 2_000_000_000, 1_000_000_000),
    (CONTAINER, 1_000_000_000, 1_000_000_000),
])
def test_memory_is_what_the_tightest_limit_leaves(files, total, available, tmp_path):
    assert machine.memory(tree(tmp_path, files)) == (total, available)


def test_memory_that_cannot_be_read_is_none(tmp_path, monkeypatch):
    assert machine.memory(tmp_path) is None or sys.platform != "linux"
    monkeypatch.setattr(sys, "platform", "plan9")
    assert machine.memory() is None


@pytest.mark.parametrize("files, quota", [
    ({}, None),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
    ({"proc/self/cgroup": "2:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None),
    ({"proc/self/cgroup": "2:cpu,cpuacct:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
])
def test_processor_quota(files, quota, tmp_path):
    assert machine.processor_quota(tree(tmp_path, files)) == quota


@pytest.mark.parametrize("variables", [{}, {"COURSE_CACHE": "/somewhere/else"}, {"XDG_CACHE_HOME": "/my/cache"}])
def test_the_cache_folder_is_the_one_of_lib_models(variables, monkeypatch):
    for name in ("COURSE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert machine.cache_folder() == models.cache_folder()


def test_disk_used_counts_a_link_but_not_what_it_names(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 500_000)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "big")
    assert machine.disk_used(tmp_path / "big") >= 500_000 > machine.disk_used(folder)
    assert machine.disk_used(tmp_path / "not there") == 0


@pytest.mark.parametrize("number, words", [(0, "0 MB"), (98_362_432, "98 MB"), (1_976_131_072, "2.0 GB"),
                                           (949_000_000, "949 MB"), (960_000_000, "1.0 GB")])
def test_gigabytes(number, words):
    assert machine.gigabytes(number) == words


def test_a_path_that_is_not_there_yet_has_a_disk(tmp_path):
    assert machine.existing(tmp_path / "a" / "b") == tmp_path
    assert machine.disk_free(tmp_path / "a" / "b") > 0 and machine.same_disk(tmp_path / "a", tmp_path)
