"""The report: plain data gathered from a model, and the page made of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ..._words import plain
from . import data


@dataclass(frozen=True, repr=False)
class Report:
    """Everything a report page says, as plain data.

    It is made by `from_model`, and turned into a page by `html`, which does not look at the model again.

    Attributes
    ----------
    title : str
    fitted : Fitted
        What was fitted, and on what.
    scores : Scores or None
        Score of the model and of the baselines; None without targets.
    kernels : KernelFacts
        Weights, norms, stability, contributions.
    samples : Samples or None
        f = b + sum_m f_m of chosen samples; None where the model is not a sum of kernels.
    redundancy : Redundancy or None
        Alignment of the kernels with one another.
    path : PathCurves or None
    convergence : Convergence or None
    errors : Confusion, Residuals, Novelty or None
    survival : Survival or None
        Predicted survival beside what was seen, for a model of censored times.
    settings : Settings
        Parameters, versions and code.
    views : ViewsUsed or None
        Which views each sample has.
    methods : str
        A paragraph on methods for a paper.
    advice : tuple of str
        What to try where the fit is poor.
    choice : Choice or None
        The candidates that competed for the model; None where none did.
    attributions : Attributions or None
        What features add to the values of samples; None where no kernel is taken apart by features.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, per_feature
    >>> from kernelweave.report import Report
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF())).fit(X[::2], y[::2])
    >>> report = Report.from_model(clf, X[::2], y[::2], X_test=X[1::2], y_test=y[1::2], stability=False)
    >>> report.scores.model.value > 0.9
    True
    >>> report.html().startswith("<!doctype html>")
    True
    """

    title: str
    fitted: data.Fitted
    scores: data.Scores | None
    kernels: data.KernelFacts
    samples: data.Samples | None
    redundancy: data.Redundancy | None
    path: data.PathCurves | None
    convergence: data.Convergence | None
    errors: data.Confusion | data.Residuals | data.Novelty | None
    settings: data.Settings
    views: data.ViewsUsed | None = None
    methods: str = ""
    advice: tuple[str, ...] = ()
    choice: data.Choice | None = None
    survival: data.Survival | None = None
    attributions: data.Attributions | None = None

    @classmethod
    def from_model(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        X_test: Any = None,
        y_test: Any = None,
        title: str | None = None,
        source: dict[str, Any] | None = None,
        baselines: Iterable[Any] | None = None,
        stability: Any = True,
        random_state: int = 0,
        progress: Callable[[str], Any] | None = None,
        ids: Any = None,
        ids_test: Any = None,
        groups: Any = None,
        preprocessing: Any = None,
        feature_names: Any = None,
    ) -> Self:
        """Gather the report of a fitted model; the parameters are those of `write_report`."""
        from ...kernels import as_views
        from . import choice, fit, measures, methods, scores, settings, survival, words
        from . import given as looked

        read = looked.targets_of(model)
        samples = (as_views(X, y), read(y), as_views(X_test, y_test), read(y_test))
        told = (ids, ids_test, groups, preprocessing, feature_names)
        given = looked.Subject(model, *samples, random_state, *told)
        if getattr(given.inner, "multilabel_", False):
            raise ValueError(
                "the model has several labels per sample, and a report shows one: fit and report one column "
                "of y at a time."
            )
        if getattr(given.inner, "_agreement", None) is not None:
            raise ValueError(
                f"a report shows classes and values, not the order that loss={given.inner.loss!r} learns: "
                "use model.score(X, y) and kernelweave.inspection.drop_one(model, X, y)."
            )
        say = progress or (lambda message: None)
        with warnings.catch_warnings():  # of baselines and sub-samples; the model's own are in the report
            warnings.simplefilter("ignore")
            scored = scores.scores(given, baselines, say)
            steady = fit.stability(given, stability, say)
        say("taking the prediction apart")
        found, made, ended = fit.kernels(given, steady), fit.fitted(given, source), fit.convergence(given)
        return cls(
            title=title or f"{given.name}, {words.count(len(found.names), 'kernel')}",
            fitted=made,
            scores=scored,
            kernels=found,
            samples=looked.samples(given),
            redundancy=fit.redundancy(given, found),
            path=fit.path(given),
            convergence=ended,
            errors=looked.errors(given),
            settings=settings.settings(given),
            views=measures.views_used(given),
            methods=methods.methods(given, made, scored, found, ended),
            advice=methods.advice(given, made, scored),
            choice=choice.choice(given),
            survival=survival.survival(given),
            attributions=looked.attributions(given),
        )

    def __repr__(self) -> str:
        return f"Report({self.title!r}, {self.fitted.estimator}, {len(self.kernels.names)} kernels)"

    def html(self) -> str:
        """The page: one HTML document with everything inside, which loads nothing."""
        from .page import render

        return render(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as numbers, text, lists and dicts, ready for JSON."""
        result: dict[str, Any] = plain(self)
        return result


def write_report(
    path: str | Path,
    model: Any,
    X: Any,
    y: Any,
    *,
    X_test: Any = None,
    y_test: Any = None,
    title: str | None = None,
    source: dict[str, Any] | None = None,
    baselines: Iterable[Any] | None = None,
    stability: Any = True,
    random_state: int = 0,
    progress: Callable[[str], Any] | None = None,
    ids: Any = None,
    ids_test: Any = None,
    groups: Any = None,
    preprocessing: Any = None,
    feature_names: Any = None,
) -> Path:
    """Write the report of a fitted model as one HTML file that needs no network.

    Parameters
    ----------
    path : str or Path
        Where to write.
    model : fitted estimator, Pipeline ending in one, or search
        Any estimator of kernelweave.
    X, y
        The samples it was trained on; y may be None for `MKLOneClass`.
    X_test, y_test : optional
        Held-out samples. Without them the scores are those of a cross-validation of the training samples,
        and whatever else needs samples takes the training ones, and says so.
    title : str, optional
    source : dict, optional
        What the page is to say about the data: file name, rows, columns, options, command line.
    baselines : list of dict or of objects, optional
        Scores to compare with, each with `name`, `score` and maybe `error`. By default the uniform sum of
        the same kernels, the best single one of them (both with their cost chosen by cross-validation on
        the training samples), and the majority class or the mean.
    stability : bool or StabilityResult, default=True
        Whether to compute weight intervals over sub-samples, or a result that has been computed already.
    random_state : int, default=0
        Seed of the sub-samples and folds.
    progress : callable, optional
        Called with a few words before each step.
    ids, ids_test : sequence, optional
        Names of the samples; by default those of `Views`, the index of a DataFrame, or row numbers.
    groups : array-like of shape (n,), optional
        Training samples of one group, such as a patient, stay together in folds and sub-samples.
    preprocessing : transformer, optional
        What X and X_test have been through already: the page names it, and its code begins with it.
    feature_names : sequence of str, optional
        Names of the columns of X, where the table or the transformers of a pipeline have none.

    Returns
    -------
    path : Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_diabetes
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import Linear, per_feature
    >>> from kernelweave.report import write_report
    >>> X, y = load_diabetes(return_X_y=True)
    >>> reg = kw.MKLRegressor(per_feature(Linear())).fit(X[::2], y[::2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(Path(folder) / "report.html", reg, X[::2], y[::2], stability=False)
    ...     "Kernel weights" in page.read_text(encoding="utf-8")
    True
    """
    report = Report.from_model(
        model,
        X,
        y,
        X_test=X_test,
        y_test=y_test,
        title=title,
        source=source,
        baselines=baselines,
        stability=stability,
        random_state=random_state,
        progress=progress,
        ids=ids,
        ids_test=ids_test,
        groups=groups,
        preprocessing=preprocessing,
        feature_names=feature_names,
    )
    target = Path(path)
    target.write_text(report.html(), encoding="utf-8")
    return target
