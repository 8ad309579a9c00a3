"""Finding the experiments: the files beside this package, or those of another folder."""

from __future__ import annotations

import ast
import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from .experiment import Experiment

#: the files beside this package
FOLDER = Path(__file__).resolve().parents[1]


class NoExperimentsError(FileNotFoundError):
    """There is no folder of experiments, or none of that name in it.

    Examples
    --------
    >>> issubclass(NoExperimentsError, FileNotFoundError)
    True
    """


def find_folder(folder: Path | str | None = None) -> Path:
    """The folder named, or that of this package."""
    place = FOLDER if folder is None else Path(folder)
    if not any(place.glob("[!_]*.py")):
        raise NoExperimentsError(f"there are no experiments in {place}: name a folder that holds some.")
    return place


def listing(folder: Path | str | None = None) -> dict[str, str]:
    """Names of the experiments, and the first line of each; files are read, not run.

    Parameters
    ----------
    folder : path, optional
        The folder of experiments; by default the one this package is in.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "my_table.py").write_text("'Table 1.'" + chr(10) + "EXPERIMENT = None")
    >>> listing(folder)
    {'my-table': 'Table 1.'}
    """
    files = sorted(find_folder(folder).glob("[!_]*.py"))
    read = {path: path.read_text(encoding="utf-8") for path in files}
    return {
        path.stem.replace("_", "-"): _first_line(text) for path, text in read.items() if _is_experiment(text)
    }


def _is_experiment(text: str) -> bool:
    return "\nEXPERIMENT = " in text


def _first_line(text: str) -> str:
    try:
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
    except SyntaxError:
        return "cannot be read"


def load_experiment(name: str, folder: Path | str | None = None) -> Experiment:
    """The experiment of a name; its file is run.

    Parameters
    ----------
    name : str
        One of `listing()`, ``"lp-toy"`` for the file ``lp_toy.py``.
    folder : path, optional
        The folder of experiments; by default the one this package is in.

    Examples
    --------
    >>> from pathlib import Path
    >>> import tempfile
    >>> from reproduce import NoExperimentsError, load_experiment
    >>> try:
    ...     load_experiment("lp-toy", tempfile.mkdtemp())
    ... except NoExperimentsError as error:
    ...     print(str(error)[:32])
    there are no experiments in /...
    """
    place = find_folder(folder)
    path = place / f"{name.replace('-', '_')}.py"
    if not path.is_file() or not _is_experiment(path.read_text(encoding="utf-8")):
        raise NoExperimentsError(f"there is no experiment {name!r}; there are {', '.join(listing(place))}.")
    module = _module(path)
    experiment: Experiment = module.EXPERIMENT
    return experiment if experiment.about else replace(experiment, about=module.__doc__ or "")


def _module(path: Path) -> ModuleType:
    """Import a file, with its folder on the path for what experiments share; once for each file."""
    name = f"kernelweave_experiment_{path.stem}"
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__file__ == str(path):
        return loaded
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
