"""Training the models of a fit: in threads, reported as they go, kept in a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from joblib import delayed, effective_n_jobs
from joblib.parallel import get_active_backend

from .._warnings import parallel
from ..gram import Gram
from ..gram.choice import parse_memory
from ..gram.sweep import Sweep
from ..solvers.checkpoint import Checkpoint, Keeper, describe, digest
from ..solvers.run import Result

if TYPE_CHECKING:
    # scikit-learn has no types
    Method = TypeVar("Method", bound=Callable[..., Any])

    class CallbackSupportMixin:
        """What reports to callbacks."""

        def __getattr__(self, name: str) -> Any: ...

    def with_callbacks(method: Method) -> Method: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Stands in where scikit-learn has no callbacks."""

        def with_callbacks(method):
            return method


class Training:
    """The models of a fit, trained in threads: reported as they go, and kept in a checkpoint.

    They are reported to scikit-learn's callbacks where it has them, and for `verbose`: 0 is silent, 1 prints
    one line per model, 2 one line per iteration. An estimator may carry a `_listener`, called as
    listener(title, iteration, state) after every iteration; a true answer stops the model at its best.

    Parameters
    ----------
    estimator : estimator being fitted
    n_models : int
    told : mapping
        What tells the problem from others: objects, or tuples of arrays. A checkpoint of another problem is
        refused. Tolerance, solver and Gram engine are no part of it: they may change between runs.
    names : iterable of str
        Parameters of the estimator that tell it too.
    """

    def __init__(
        self, estimator: Any, n_models: int, told: Mapping[str, Any], names: Iterable[str] = ()
    ) -> None:
        self.estimator, self.context, self.checkpoint, self.n_begun = estimator, None, None, 0
        heard = getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx")
        if heard and isinstance(estimator, CallbackSupportMixin):  # a pipeline tells all of itself
            self.context = estimator._init_callback_context(max_subtasks=n_models, sequential_subtasks=False)
            self.context.call_on_fit_task_begin(estimator=estimator)
        if estimator.checkpoint is None:
            return
        parts = {
            name: digest(*part) if isinstance(part, tuple) else describe(part) for name, part in told.items()
        }
        parts |= {name: describe(getattr(estimator, name, None)) for name in names}
        self.checkpoint = Checkpoint(estimator.checkpoint, {"estimator": type(estimator).__name__, **parts})
        if estimator.verbose and self.checkpoint.resumed:
            print(f"[{type(estimator).__name__}] resuming from {str(self.checkpoint.path)!r}")

    def models(
        self,
        train: Callable[..., Any],
        shared: Any,
        parts: Sequence[tuple[str, Any]],
        gram: Gram | None = None,
        stage: str = "",
        together: bool = False,
    ) -> list[Any]:
        """What ``train(shared, part, report, keeper)`` returns for the part of every model.

        Parameters
        ----------
        train : callable
            It calls ``report.done(solution)`` at its end.
        shared : object
            What all models are trained on; a backend of joblib that sends arguments sends it once.
        parts : sequence of (str, object)
            Title and part of every model.
        gram : Gram, optional
            The kernels, which have to be those of the checkpoint.
        stage : str
            Tells the models from those of other stages of the fit, in the checkpoint.
        together : bool
            Whether all models see all of `gram`, that of a dictionary `shared`: every pass over the kernels
            then serves all of them (`Sweep`), unless joblib is told to send models to other processes.
        """
        if self.checkpoint is not None and gram is not None:
            self.checkpoint.check_kernels(gram)
        # threads where all models write one file, or ask kernels that are nowhere but in this process
        anywhere = self.checkpoint is None and (gram is None or gram.portable)
        require = None if anywhere else "sharedmem"
        models = [
            partial(self._model, train, part, title, index, stage)
            for index, (title, part) in enumerate(parts)
        ]
        n_jobs = self.estimator.n_jobs if len(parts) > 1 else None
        try:
            if gram is not None and together and len(parts) > 1 and in_threads(require):
                tasks = [partial(_on_view, model, shared) for model in models]
                limit = parse_memory(self.estimator.memory_limit)
                return Sweep(gram, effective_n_jobs(n_jobs), limit).run(tasks)
            return parallel(n_jobs, (delayed(model)(shared) for model in models), require)
        finally:  # whatever happens
            self.n_begun += len(parts)
            if self.checkpoint is not None:
                self.checkpoint.flush()

    def _model(
        self, train: Callable[..., Any], part: Any, title: str, index: int, stage: str, shared: Any
    ) -> Any:
        context = None
        if self.context is not None:
            number = self.n_begun + index
            context = self.context.subcontext(task_name=title, task_id=number, max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self.estimator)
        report = ModelProgress(self.estimator, title, context)
        return train(shared, part, report, Keeper(self.checkpoint, f"{index} {stage}".strip()))

    def end(self, converged: bool) -> None:
        """The fit is over, and its attributes are set: write the final state."""
        if self.checkpoint is not None:
            self.checkpoint.finish(converged)
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)


def in_threads(require: str | None) -> bool:
    """Whether joblib, as it is configured, has models trained in this process."""
    backend, _ = get_active_backend(prefer="threads", require=require)
    return bool(getattr(backend, "supports_sharedmem", False))


def _on_view(model: Callable[[Any], Any], dictionary: Any, gram: Gram) -> Any:
    """Train a model on its view of the kernels of a dictionary."""
    own = copy(dictionary)
    own.gram = gram
    return model(own)


@dataclass(frozen=True)
class ModelProgress:
    """The callback of the solver of one model."""

    estimator: Any
    title: str
    context: Any

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
        """The model is trained."""
        if self.estimator.verbose == 1:
            self._say(f"{solution.n_iter} step{'' if solution.n_iter == 1 else 's'}", solution.state)
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)

    def _say(self, count: str, state: Any) -> None:
        told = self.estimator._told(state)
        if told:
            print(f"[{type(self.estimator).__name__}] {self.title}, {count}: {told}")
