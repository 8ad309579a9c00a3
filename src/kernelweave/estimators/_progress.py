"""Progress of a fit: scikit-learn's callbacks where it has them, and lines for `verbose`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..solvers.base import State
from ..solvers.run import Callback

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        return method


class Progress:
    """Reports every step of every model of a fit.

    An estimator may carry a `_listener`, called as listener(title, iteration, state) after every
    step; a true answer stops the model at its best iterate.

    Parameters
    ----------
    estimator : estimator being fitted
    n_models : int
    verbose : int
        0 is silent, 1 prints one line per model, 2 one line per step.
    """

    def __init__(self, estimator: Any, n_models: int, verbose: int) -> None:
        self.estimator, self.verbose = estimator, verbose
        self.context = None
        self.listener = getattr(estimator, "_listener", None)
        if getattr(estimator, "_skl_callbacks", None) or hasattr(estimator, "_parent_callback_ctx"):
            self.context = estimator._init_callback_context(max_subtasks=n_models, sequential_subtasks=False)
            self.context.call_on_fit_task_begin(estimator=estimator)

    def model(self, index: int, title: str) -> Callback:
        """A callback for the solver of one model."""
        context = None
        if self.context is not None:
            context = self.context.subcontext(task_name=title, task_id=index, max_subtasks=None)
            context.call_on_fit_task_begin(estimator=self.estimator)

        def report(iteration: int, state: State) -> bool:
            if self.verbose > 1:
                self.say(f"{title}, step {iteration + 1}", state)
            stop = self.listener is not None and bool(self.listener(title, iteration, state))
            if context is None:
                return stop
            step = context.subcontext(task_name="machine")
            step.call_on_fit_task_begin(estimator=self.estimator)
            return bool(step.call_on_fit_task_end(estimator=self.estimator)) or stop

        report.context = context  # type: ignore[attr-defined]
        return report

    def model_done(self, report: Callback, title: str, n_iter: int, state: State) -> None:
        """Close what `model` opened."""
        if self.verbose == 1:
            self.say(f"{title}, {n_iter} step{'' if n_iter == 1 else 's'}", state)
        context = report.context  # type: ignore[attr-defined]
        if context is not None:
            context.call_on_fit_task_end(estimator=self.estimator)

    def done(self) -> None:
        """The fit is over."""
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.estimator)

    def say(self, what: str, state: State) -> None:
        proof = state.certificate
        name = type(self.estimator).__name__
        print(f"[{name}] {what}: objective {proof.primal:.6g}, relative gap {proof.gap:.2g}")
