"""The folder a fit writes to: what is ours in it, how files get there, and where an earlier fit stopped.

Beside the results there is one hidden folder, ``.kernelweave``. It holds the digests of the files that fits
have written (``written.json``), files in the making (``new``), and the checkpoint and the request of a fit
that was interrupted. A file in the way whose digest is not known is somebody else's, or was changed since:
it is never removed nor written over.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..._words import plain
from ._bundle import SETTINGS, write_json
from ._console import MODEL, CliError, note
from ._facts import file_digest

WEIGHTS, PREDICTIONS, REPORT = "weights.csv", "predictions.csv", "report.html"

#: everything a fit may leave in its folder
RESULTS = (MODEL, SETTINGS, WEIGHTS, PREDICTIONS, REPORT)

HIDDEN, WRITTEN, STAGE = ".kernelweave", "written.json", "new"
CHECKPOINT, REQUEST = "checkpoint", "request.json"

#: version of what written.json holds
FORMAT = 1


class OutFolder:
    """A folder of results.

    Parameters
    ----------
    path : Path
        Made, if it is not there, when something is written.
    force : bool, default=False
        Files in the way that no fit wrote are kept under other names; without it they are refused.
    """

    def __init__(self, path: Path, force: bool = False) -> None:
        self.path, self.force = path, force
        self.hidden = path / HIDDEN
        self.checkpoint = self.hidden / CHECKPOINT

    def prepare(self) -> None:
        """Make the folder and ours in it, and remove what a fit that was killed has left in the latter."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(self.hidden):
                self._check_hidden()
            self.hidden.mkdir(exist_ok=True)
            shutil.rmtree(self.hidden / STAGE, ignore_errors=True)
            self._record({})
        except FileExistsError:
            raise CliError(f"--out {self.path} is a file: name a folder.") from None
        except OSError as error:
            raise CliError(
                f"--out {self.path} cannot be written ({error.strerror}): choose another folder."
            ) from None

    def _check_hidden(self) -> None:
        """Refuse something that is called like our folder and is not."""
        there = self.hidden.is_dir() and not self.hidden.is_symlink()
        if not there or (any(self.hidden.iterdir()) and self._written() is None):
            raise CliError(
                f"{self.hidden} is there and was not made by kernelweave, or is damaged: choose another "
                "folder, or move it away."
            )

    # -- whose files are there ----------------------------------------------------------------

    def _written(self) -> dict[str, list[str]] | None:
        """Digests of the files written, by name; None where the record is missing or makes no sense."""
        try:
            document = json.loads((self.hidden / WRITTEN).read_text(encoding="utf-8"))
            if document["format"] != FORMAT:
                return None
            return {str(name): [str(digest) for digest in found] for name, found in document["files"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def _record(self, fresh: dict[str, list[str]]) -> None:
        files = {**(self._written() or {}), **fresh}
        write_json(self.hidden / WRITTEN, {"format": FORMAT, "files": files})

    def is_ours(self, name: str) -> bool:
        """Whether a file is what a fit wrote, byte for byte."""
        path = self.path / name
        if path.is_symlink() or not path.is_file():
            return False
        return file_digest(path) in (self._written() or {}).get(name, [])

    def foreign(self, names: Sequence[str] = RESULTS) -> list[str]:
        """Names that are taken by something a fit did not write, or that was changed since."""
        return [name for name in names if os.path.lexists(self.path / name) and not self.is_ours(name)]

    def check(self, names: Sequence[str] = RESULTS, forced: bool = True) -> None:
        """One error about everything in the way."""
        found = self.foreign(names)
        if found and not self.force:
            keep = ", or keep them under other names with --force" if forced else ""
            raise CliError(
                f"{self.path} holds {', '.join(found)}, which this command did not write or which changed "
                f"since then: nothing was touched. Choose another place with --out, move them away{keep}."
            )

    def check_data(self, data: Path) -> None:
        """Refuse to write over the very file that is read."""
        for name in RESULTS:
            if (self.path / name).exists() and data.exists() and data.samefile(self.path / name):
                raise CliError(
                    f"--out {self.path} would write over the data in {data}: choose another folder."
                )

    # -- how files get there ------------------------------------------------------------------

    @contextlib.contextmanager
    def staging(self, stale: Sequence[str] = ()) -> Iterator[Path]:
        """A folder to write files to; once all are whole they take their places, and else none of them does.

        Parameters
        ----------
        stale : sequence of str
            Files of an earlier fit that would not belong to the new ones: removed if they are ours.
        """
        self.prepare()
        stage = self.hidden / STAGE
        try:
            stage.mkdir()
            yield stage
            self._publish(stage, stale)
        except OSError as error:
            raise CliError(
                f"{self.path} cannot be written ({error.strerror}): make room, or choose another folder."
            ) from error
        finally:
            shutil.rmtree(stage, ignore_errors=True)

    def _publish(self, stage: Path, stale: Sequence[str]) -> None:
        names = sorted(path.name for path in stage.iterdir())
        self.check([*names, *stale])
        for name in self.foreign([*names, *stale]):
            note(f"{self.path / name} is kept as {self._set_aside(name).name}.")
        # both digests are recorded first: a kill in between leaves the old file or the new one, ours both
        ours = {name: [file_digest(self.path / name)] for name in names if self.is_ours(name)}
        fresh = {name: [*ours.get(name, []), file_digest(stage / name)] for name in names}
        self._record(fresh)
        for name in stale:
            (self.path / name).unlink(missing_ok=True)
        for name in names:
            os.replace(stage / name, self.path / name)

    def _set_aside(self, name: str) -> Path:
        """Rename a file that is not ours to the first free name."""
        number = 1
        while os.path.lexists(place := self.path / f"{name}.kept{number}"):
            number += 1
        return (self.path / name).rename(place)

    # -- where an earlier fit stopped ---------------------------------------------------------

    def start(self, request: dict[str, Any], resume: bool | None) -> Path:
        """The checkpoint to fit with: that of the same fit interrupted before, if wanted, or a fresh one."""
        self.prepare()
        before = self.hidden / REQUEST
        changed = difference(before, plain(request)) if self.checkpoint.exists() else None
        if resume and changed is None:
            raise CliError(f"--resume: there is no interrupted fit in {self.path}; leave --resume out.")
        if resume and changed:
            raise CliError(
                f"--resume: the fit in {self.path} had other settings ({changed}); use the same, or leave "
                "--resume out."
            )
        if changed == "" and resume is not False:
            note(f"Resuming the interrupted fit in {self.path} (--no-resume starts again).")
        else:
            self.forget()
        write_json(before, request)
        return self.checkpoint

    def forget(self) -> None:
        """Remove what an interrupted fit left."""
        for name in (CHECKPOINT, f"{CHECKPOINT}.previous", REQUEST):
            (self.hidden / name).unlink(missing_ok=True)


def difference(path: Path, request: dict[str, Any]) -> str:
    """What is not as in an earlier request, in words; empty when all is."""
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"{path.name} is missing"
    names = [name for name in {**before, **request} if before.get(name) != request.get(name)]
    return ", ".join(f"{name}: {before.get(name)!r}, now {request.get(name)!r}" for name in sorted(names)[:3])
