"""The folder a fit writes to: made, checked, and where an earlier fit stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ._bundle import CHECKPOINT, write_json
from ._console import note, plain
from ._errors import CliError

#: what an interrupted fit leaves beside its checkpoint, to be compared with the next
REQUEST = "request.json"


def make_folder(folder: Path) -> None:
    """A folder that can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".writable"
        probe.touch()
        probe.unlink()
    except FileExistsError:
        raise CliError(f"--out {folder} is a file: name a folder.") from None
    except OSError as error:
        raise CliError(
            f"--out {folder} cannot be written ({error.strerror}): choose another folder."
        ) from None


def start(folder: Path, request: dict[str, Any], resume: bool | None) -> Path:
    """The checkpoint to fit with: that of the same fit interrupted before, if wanted, or a fresh one."""
    make_folder(folder)
    checkpoint, before = folder / CHECKPOINT, folder / REQUEST
    changed = difference(before, plain(request)) if checkpoint.exists() else None
    if resume and changed is None:
        raise CliError(f"--resume: there is no interrupted fit in {folder}; leave --resume out.")
    if resume and changed:
        raise CliError(
            f"--resume: the fit in {folder} had other settings ({changed}); use the same, or leave "
            "--resume out."
        )
    if changed == "" and resume is not False:
        note(f"Going on with the interrupted fit in {folder} (--no-resume starts anew).")
    else:
        forget(folder)
    write_json(before, request)
    return checkpoint


def difference(path: Path, request: dict[str, Any]) -> str:
    """What is not as in an earlier request, in words; empty when all is."""
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"{path.name} is missing"
    names = [name for name in {**before, **request} if before.get(name) != request.get(name)]
    return ", ".join(f"{name}: {before.get(name)!r}, now {request.get(name)!r}" for name in sorted(names)[:3])


def forget(folder: Path) -> None:
    """Remove what an interrupted fit left."""
    for name in (CHECKPOINT, f"{CHECKPOINT}.previous", REQUEST):
        (folder / name).unlink(missing_ok=True)
