"""Training the models of a fit: in threads, reported as they go, kept in a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from joblib import delayed

from .._warnings import parallel
from ..gram import Gram
from ..solvers.checkpoint import Checkpoint, Keeper, describe, digest
from ..solvers.run import Result

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


# -- progress ---------------------------------------------------------------------------------


class Progress:
    """Reports the models of a fit: to scikit-learn's callbacks where it has them, and for `verbose`.

    An estimator may carry a `_listener`, called as listener(title, iteration, state) after every
    iteration; a true answer stops the model at its best iterate.

    Parameters
    ----------
    estimator : estimator being fitted
        Its `verbose` may be 0 for silence, 1 for one line per model, 2 for one line per iteration.
    n_models : int
    """

    def __init__(self, estimator: Any, n_models: int) -> None:
        self.estimator, self.context = estimator, None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=n_models, sequential_subtasks=False)
            self.context.call_on_fit_task_begin(estimator=estimator)

    def model(self, index: int, title: str) -> Report:
        """The callback of one model."""
        context = None
        if self.context is not None:
            context = self.context.subcontext(task_name=title, task_id=index, max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self.estimator)
        return Report(self.estimator, title, context)

    def done(self) -> None:
        """The fit is over."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)


class Report:
    """The callback of the solver of one model."""

    def __init__(self, estimator: Any, title: str, context: Any) -> None:
        self.estimator, self.title, self.context = estimator, title, context

    def __call__(self, iteration: int, state: Any) -> bool:
        """Report an iterate; whether to stop."""
        estimator, listener = self.estimator, getattr(self.estimator, "_listener", None)
        if estimator.verbose > 1:
            self._say(f"step {iteration + 1}", state)
        stop = listener is not None and bool(listener(self.title, iteration, state))
        if self.context is None:
            return stop
        step = self.context.subcontext(task_name="machine")
        step.call_on_fit_task_begin(estimator=estimator)
        return bool(step.call_on_fit_task_end(estimator=estimator)) or stop

    def done(self, solution: Result) -> None:
        """Close what `Progress.model` opened."""
        if self.estimator.verbose == 1:
            self._say(f"{solution.n_iter} step{'' if solution.n_iter == 1 else 's'}", solution.state)
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)

    def _say(self, count: str, state: Any) -> None:
        told = self.estimator._told(state)
        if told:
            print(f"[{type(self.estimator).__name__}] {self.title}, {count}: {told}")


# -- checkpoints ------------------------------------------------------------------------------


def open_checkpoint(estimator: Any, parts: Mapping[str, Any], names: Iterable[str] = ()) -> Checkpoint | None:
    """The checkpoint of an estimator, if it has one; refused when its file is of another problem.

    Parameters
    ----------
    estimator : estimator
    parts : mapping
        What tells the problem from others: objects, or tuples of arrays. Tolerance, solver and Gram engine
        are no part of it: they may change from one run to the next.
    names : iterable of str
        Parameters of the estimator that tell it too.
    """
    if estimator.checkpoint is None:
        return None
    texts = {
        name: digest(*part) if isinstance(part, tuple) else describe(part) for name, part in parts.items()
    }
    texts |= {name: describe(getattr(estimator, name, None)) for name in names}
    checkpoint = Checkpoint(estimator.checkpoint, {"estimator": type(estimator).__name__, **texts})
    if estimator.verbose and checkpoint.resumed:
        print(f"[{type(estimator).__name__}] resuming from {str(checkpoint.path)!r}")
    return checkpoint


class Keepers:
    """The keepers of the models of a fit.

    Attributes
    ----------
    require : str or None
        What joblib has to provide: threads, where all models write one file or ask kernels that are
        nowhere but in this process.
    """

    def __init__(self, checkpoint: Checkpoint | None, gram: Gram | None) -> None:
        self.checkpoint = checkpoint
        anywhere = checkpoint is None and (gram is None or gram.portable)
        self.require = None if anywhere else "sharedmem"

    def __call__(self, index: int, stage: str = "") -> Keeper:
        """The keeper of one model, in one stage of its fit; without a checkpoint it keeps nothing."""
        return Keeper(self.checkpoint, f"{index} {stage}".strip())

    def finish(self, converged: bool) -> None:
        """Write the final state."""
        if self.checkpoint is not None:
            self.checkpoint.finish(converged)


@contextmanager
def keeping(checkpoint: Checkpoint | None, gram: Gram | None = None) -> Iterator[Keepers]:
    """Check that a checkpoint is of these kernels, and write its last state whatever happens."""
    if checkpoint is not None and gram is not None:
        checkpoint.check_kernels(gram)
    try:
        yield Keepers(checkpoint, gram)
    finally:
        if checkpoint is not None:
            checkpoint.flush()


# -- models -----------------------------------------------------------------------------------


def train_models(
    train: Callable[..., Any],
    shared: Any,
    models: Iterable[tuple[str, Any]],
    progress: Progress,
    keepers: Keepers,
    stage: str = "",
) -> list[Any]:
    """What ``train(shared, part, report, keeper)`` returns for the part of every model, in threads.

    Parameters
    ----------
    train : callable
        It calls ``report.done(solution)`` at its end.
    shared : object
        What all models are trained on; a backend of joblib that sends arguments sends it once.
    models : iterable of (str, object)
        Title and part of every model.
    progress : Progress
    keepers : Keepers
    stage : str
        Tells the models from those of other stages of the fit, in the checkpoint.
    """
    calls = (
        delayed(_trained)(train, shared, part, progress, (index, title), keepers(index, stage))
        for index, (title, part) in enumerate(models)
    )
    return parallel(progress.estimator.n_jobs, calls, keepers.require)


def _trained(
    train: Callable[..., Any],
    shared: Any,
    part: Any,
    progress: Progress,
    model: tuple[int, str],
    keeper: Keeper,
) -> Any:
    return train(shared, part, progress.model(*model), keeper)
