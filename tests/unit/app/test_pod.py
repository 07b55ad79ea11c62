"""The cores and the memory of a pod, as control groups of both versions state them."""

from pathlib import Path

import pytest

from tarsy.app.pod import cores, memory_bytes

MIB = 1 << 20


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


@pytest.mark.parametrize(
    ("quota", "expected"), [("50000", 1), ("100000", 1), ("100001", 2), ("150000", 2), ("200000", 2), ("max", 8)]
)
def test_the_cpu_limit_is_rounded_up_to_cores(tmp_path: Path, quota: str, expected: int) -> None:
    write(tmp_path / "own", "0::/")
    write(tmp_path / "v2/cpu.max", f"{quota} 100000")
    assert cores(tmp_path / "v2", tmp_path / "own", cpus=8) == expected

    write(tmp_path / "v1/cpu/cpu.cfs_quota_us", "-1" if quota == "max" else quota)
    write(tmp_path / "v1/cpu/cpu.cfs_period_us", "100000")
    assert cores(tmp_path / "v1", tmp_path / "own", cpus=8) == expected


@pytest.mark.parametrize(("cpus", "expected"), [(0, 1), (1, 1), (2, 2)])
def test_without_a_limit_the_cpus_that_the_process_may_use_count(tmp_path: Path, cpus: int, expected: int) -> None:
    assert cores(tmp_path, tmp_path / "none", cpus=cpus) == expected
    assert cores(tmp_path, tmp_path / "none") >= 1


def test_the_cpus_of_the_node_bound_a_larger_limit(tmp_path: Path) -> None:
    write(tmp_path / "v2/cpu.max", "1600000 100000")
    assert cores(tmp_path / "v2", tmp_path / "none", cpus=4) == 4


def test_the_smallest_limit_of_the_group_and_its_parents_counts(tmp_path: Path) -> None:
    write(tmp_path / "own", "9:cpu,cpuacct:/elsewhere\n0::/kubepods/pod/container")
    write(tmp_path / "v2/kubepods/cpu.max", "800000 100000")
    write(tmp_path / "v2/kubepods/pod/cpu.max", "300000 100000")
    write(tmp_path / "v2/kubepods/pod/container/cpu.max", "max 100000")
    assert cores(tmp_path / "v2", tmp_path / "own", cpus=16) == 3


def test_an_unreadable_limit_is_none(tmp_path: Path) -> None:
    write(tmp_path / "own", "0::/../../other")
    write(tmp_path / "v2/cpu.max", "what")
    write(tmp_path / "v2/memory.max", "what")
    assert cores(tmp_path / "v2", tmp_path / "own", cpus=2) == 2
    assert memory_bytes(tmp_path / "v2", tmp_path / "own") is None


def test_the_memory_limit_is_read_from_either_version(tmp_path: Path) -> None:
    write(tmp_path / "own", "4:memory:/pod\n0::/pod")
    write(tmp_path / "v2/pod/memory.max", str(1024 * MIB))
    write(tmp_path / "v2/memory.max", "max")
    assert memory_bytes(tmp_path / "v2", tmp_path / "own") == 1024 * MIB

    write(tmp_path / "v1/memory/memory.limit_in_bytes", "9223372036854771712")  # how version 1 says unlimited
    assert memory_bytes(tmp_path / "v1", tmp_path / "own") is None
    write(tmp_path / "v1/memory/pod/memory.limit_in_bytes", str(512 * MIB))
    assert memory_bytes(tmp_path / "v1", tmp_path / "own") == 512 * MIB
