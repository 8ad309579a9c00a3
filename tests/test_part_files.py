"""Files that take their places whole, and what is left of those that do not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelweave._container import part_of, replacing, sweep

#: writes half a file and dies, or waits, with it open
DYING = """
import os, sys
from kernelweave._container import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("open", flush=True)
    sys.stdin.readline()
    os._exit(9)
"""


def start_writer(path: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(part_of.__code__.co_filename).parents[1])}
    command = [sys.executable, "-c", DYING, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writer = subprocess.Popen(command, env=environment, **pipes)  # type: ignore[call-overload]
    assert writer.stdout.readline() == "open\n"
    return writer


def test_orphans_are_swept_and_files_in_the_making_and_of_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "model.kw"
    path.write_text("before")
    others = [".model.kw.part", ".model.kw.12345678.part", "model.kw.kernelweave.part", ".a.12345678.part"]
    for name in others:
        (tmp_path / name).write_text("mine")
    writer = start_writer(path)
    sweep(path)
    assert len(list(tmp_path.iterdir())) == len(others) + 2  # its process lives
    writer.communicate("\n")
    assert len(list(tmp_path.iterdir())) == len(others) + 2  # and is dead now
    sweep(path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*others, path.name])
    assert path.read_text() == "before"


@pytest.mark.parametrize("victim", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    victim: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_text("before")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, victim, full)
    with pytest.raises(OSError, match="No space left"), replacing(path) as file:
        file.write(b"after")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert path.read_text() == "before"


def test_a_disk_that_fills_up_while_writing(tmp_path: Path) -> None:
    """A real limit: the system refuses to let any file of the process grow beyond 64 kB."""
    resource = pytest.importorskip("resource")
    import signal

    path = tmp_path / "a"
    path.write_text("before")
    old, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, old[1]))
        with pytest.raises(OSError, match="File too large"), replacing(path) as file:
            file.write(bytes(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a"]
    assert path.read_text() == "before"


def test_what_is_written_takes_the_place_at_once_and_links_stay(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_text("before")
    link.symlink_to(path)
    with replacing(link) as file:
        file.write(b"after")
        file.flush()
        assert path.read_text() == "before"
    assert link.is_symlink()
    assert path.read_text() == "after"
    assert len(list(tmp_path.iterdir())) == 2
