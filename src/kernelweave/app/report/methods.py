"""A paragraph on methods for a paper, and advice where a fit is poor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._words import versions
from ...kernels import Views
from ...regularizers import REGULARIZERS, Regularizer
from .choice import choice
from .data import Convergence, Fitted, KernelFacts, Scores
from .given import Subject
from .settings import parts_of
from .words import count, fixed, named, number, verdict

KLOFT = (
    "Kloft, M., Brefeld, U., Sonnenburg, S. and Zien, A. (2011). lp-Norm Multiple Kernel Learning. Journal "
    "of Machine Learning Research 12, 953-997."
)
TOMIOKA = (
    "Tomioka, R. and Suzuki, T. (2010). Regularization Strategies and Empirical Bayesian Learning for MKL. "
    "arXiv:1011.3090."
)
SUBRAHMANYA = (
    "Subrahmanya, N. and Shin, Y. C. (2010). Sparse Multiple Kernel Learning for Signal Processing "
    "Applications. IEEE Transactions on Pattern Analysis and Machine Intelligence 32(5), 788-798."
)

COX = (
    "Cox, D. R. (1972). Regression Models and Life-Tables. Journal of the Royal Statistical Society B 34(2), "
    "187-220."
)
LAAN = (
    "van der Laan, M. J., Polley, E. C. and Hubbard, A. E. (2007). Super Learner. Statistical Applications "
    "in Genetics and Molecular Biology 6(1), 25."
)
BREIMAN = (
    "Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). Classification and Regression "
    "Trees. Wadsworth, section 3.4.3."
)

#: family of an estimator -> the paper of its method
PAPERS = {
    "EmpiricalBayes": TOMIOKA,
    "GroupOMP": (
        "Sindhwani, V. and Lozano, A. C. (2011). Non-parametric Group Orthogonal Matching Pursuit for Sparse "
        "Learning with Multiple Kernels. Advances in Neural Information Processing Systems 24, 2519-2527."
    ),
    "GMKL": (
        "Varma, M. and Babu, B. R. (2009). More Generality in Efficient Multiple Kernel Learning. "
        "Proceedings of the 26th International Conference on Machine Learning."
    ),
}

#: what holds transformers and does nothing by itself
CONTAINERS = ("ColumnTransformer", "Pipeline", "ViewTransformer", "FeatureUnion")

#: what was done with views that samples lack
GAPS = {
    "mask": "views that a sample lacked contributed nothing but an indicator",
    "margin": "margins were taken in the space of the views that each sample had",
    "complete": "kernel values of views that a sample lacked were completed from its other views",
}


def methods(
    given: Subject, fitted: Fitted, scores: Scores | None, kernels: KernelFacts, fit: Convergence | None
) -> str:
    """What was done, in sentences for the methods part of a paper, with the numbers of this fit."""
    parts = [
        _data(fitted, given.groups is not None),
        _lacking(given),
        _preprocessing(given),
        _model(given, fitted, kernels),
        _optimum(fit),
        _scores(fitted, scores),
    ]
    if kernels.stability is not None:
        found = kernels.stability
        share = f"central {100 * found.level:.0f} % intervals"
        parts.append(f"The variation of the weights was judged by {share} over {found.n_rounds} sub-samples.")
    used = versions()
    shown = [f"{name} {used[name]}" for name in ("kernelweave", "scikit-learn", "numpy") if name in used]
    parts.append(f"Computations were done with {named(shown)}.")
    cited = f"{paper(given)} {COX}" if hasattr(given.inner, "predict_survival_function") else paper(given)
    return " ".join(part for part in parts if part) + f" Reference: {cited}"


def _data(fitted: Fitted, grouped: bool) -> str:
    classes = ", ".join(f"{n} of class {name}" for name, n in fitted.classes)
    words = f"Models were trained on {count(fitted.n_train, 'sample')}"
    words += f" ({classes})" if classes else ""
    words += f" ({count(fitted.n_events, 'event')}, other times were censored)" if fitted.n_events else ""
    words += f"; {count(fitted.n_test, 'sample')} were held out." if fitted.n_test else "."
    return f"{words} Samples of one group were kept together in all splits." if grouped else words


def _lacking(given: Subject) -> str:
    """How many training samples lack which views."""
    if not isinstance(given.X, Views) or given.X.observed.all():
        return ""
    lacking = (~given.X.observed).sum(axis=0)
    each = [f"{name} in {n}" for name, n in zip(given.X.names, lacking, strict=True) if n]
    some = int((~given.X.observed.all(axis=1)).sum())
    return f"{some} of the training samples lacked a view ({named(each, 8)})."


def _preprocessing(given: Subject) -> str:
    """What was done to the columns before the kernels saw them."""
    steps = [step for _, step in getattr(given.model, "steps", ())[:-1]]
    found = {type(part).__name__: part for part in parts_of([given.preprocessing, *steps])}
    said = []
    if "SimpleImputer" in found:
        said.append(f"missing numbers were filled with the {found['SimpleImputer'].strategy} of their column")
    if "StandardScaler" in found:
        said.append("columns of numbers were standardised to mean 0 and standard deviation 1")
    if "OneHotEncoder" in found:
        said.append("categories were encoded as zeros and ones")
    known = {"SimpleImputer", "StandardScaler", "OneHotEncoder", *CONTAINERS}
    said += [f"columns were transformed by {name}" for name in found if name not in known]
    if not said:
        return ""
    words = "; ".join(said)
    return f"{words[0].upper()}{words[1:]} (estimated on training samples)."


def _model(given: Subject, fitted: Fitted, kernels: KernelFacts) -> str:
    inner, auto = given.inner, given.auto
    settings = [f"{count(len(kernels.names), 'kernel')} ({named(kernels.names, 8)})"]
    rule = _rule(given)
    if rule is not None and not given.even:
        numbers = {k: v for k, v in rule.get_params(deep=False).items() if isinstance(v, int | float)}
        told = ", ".join(f"{name} = {number(float(value))}" for name, value in numbers.items())
        settings.append(f"regulariser {type(rule).__name__}{f' with {told}' if told else ''}")
    if getattr(inner, "normalize", None):
        settings.append(f"{inner.normalize} normalisation")
    if auto is not None:
        settings.append(_competition(given))
    elif isinstance(getattr(inner, "C", None), int | float):
        how = " chosen by cross-validation on the training samples" if tuned(given, fitted) else ""
        settings.append(f"cost C = {number(float(inner.C))}{how}{_tried(given.model)}")
    words = f"{fitted.method} Settings: {'; '.join(settings)}."
    if getattr(inner, "missing", "error") != "error":
        words += f" {GAPS[inner.missing][0].upper()}{GAPS[inner.missing][1:]}."
    return words


def _competition(given: Subject) -> str:
    """From which candidates a model was chosen, at which costs, by which score."""
    found, taken = choice(given), given.auto._taken
    assert found is not None
    names = named([one.name for one in found.entrants[:-1]], 20)
    costs = named([number(C) for _, _, C in taken], 8)
    return (
        f"chosen from {count(len(found.entrants) - 1, 'candidate')} ({names}) and their stack by held-out "
        f"losses in {found.n_folds}-fold cross-validation on the training samples (the stack, where it is "
        f"better than a candidate alone; else the simplest candidate within {given.auto.simplicity:g} "
        f"standard errors of the best); cost C = {costs}, chosen in the same folds"
    )


def _tried(search: Any) -> str:
    """Among which costs a search chose, and whether it went beyond those it began with."""
    costs = [
        float(point["C"]) for point in getattr(search, "cv_results_", {}).get("params", ()) if "C" in point
    ]
    if not costs:
        return ""
    further = ", beyond its first grid" if "C" in getattr(search, "grid_extended_", {}) else ""
    return f" (tried from {number(min(costs))} to {number(max(costs))}{further})"


def _optimum(fit: Convergence | None) -> str:
    if fit is None or fit.kind != "gap":
        return ""
    which = "The convex problem was solved to a relative duality gap of"
    if fit.n_stacked > 1:
        which = f"Each of the {fit.n_stacked} convex problems was solved to a relative duality gap of at most"
    return f"{which} {number(fit.final, 2)} (tolerance {number(fit.tol, 2)})."


def _scores(fitted: Fitted, scores: Scores | None) -> str:
    if scores is None:
        return ""
    more = "".join(f", {name} {fixed(value)}" for name, value in scores.more.items())
    others = [f"{entry.name} {fixed(entry.value)}" for entry in scores.baselines]
    against = f"; for comparison: {named(others, 6)}" if others else ""
    error = scores.model.error
    spread = f" (standard error {fixed(error)})" if error is not None and np.isfinite(error) else ""
    return (
        f"{scores.metric.capitalize()} {scores.how} was {fixed(scores.model.value)}{spread}{more}{against}."
    )


def tuned(given: Subject, fitted: Fitted) -> bool:
    """Whether parameters were chosen by cross-validation: by a search, or as the source says."""
    return given.auto is not None or hasattr(given.model, "cv_results_") or "tuned" in fitted.source


def paper(given: Subject) -> str:
    """The paper of the method."""
    name = type(given.inner).__name__
    found = next((words for family, words in PAPERS.items() if name.startswith(family)), None)
    if found is not None:
        return found
    if given.stacked:
        return LAAN
    if given.auto is not None and given.even:
        return BREIMAN
    rule = _rule(given)
    if "concave" in type(rule).__module__:
        return SUBRAHMANYA
    return TOMIOKA if type(rule).__name__ == "ElasticNet" else KLOFT


def _rule(given: Subject) -> Any:
    """The regulariser of the kernel weights; None where a method has no regulariser."""
    if given.stacked or not hasattr(given.inner, "regularizer") or not hasattr(given.inner, "kernels"):
        return None
    return REGULARIZERS.resolve(given.inner.regularizer, Regularizer)


def advice(given: Subject, fitted: Fitted, scores: Scores | None) -> tuple[str, ...]:
    """What to try where a fit is poor, or its search stopped at the end of its grid."""
    found = []
    results: Any = getattr(given.model, "cv_results_", {})
    costs = sorted({float(point["C"]) for point in results.get("params", ()) if "C" in point})
    best = getattr(given.model, "best_params_", {}).get("C")
    if len(costs) > 1 and best in (costs[0], costs[-1]):
        end, way = ("largest", "larger") if best == costs[-1] else ("smallest", "smaller")
        found.append(f"C = {number(best)} is the {end} value that was tried: try {way} ones too (Cs=...).")
    judged = verdict(scores)
    if judged is None or judged.tone == "good":
        return tuple(found)
    if judged.tone == "poor" and scores is not None and scores.trivial is not None:
        trivial = next((entry for entry in scores.baselines if entry.name == scores.trivial), None)
        if trivial is not None and scores.model.value <= trivial.value:
            found.append(
                f"The score is not above that of the {trivial.name}: check that labels belong to their "
                "samples, try kernels of other widths or on fewer columns, or get more samples."
            )
    if not tuned(given, fitted) and hasattr(given.inner, "C"):
        name, cost = type(given.inner).__name__, number(float(given.inner.C))
        python = (
            f", or in Python {name}CV" if name in ("MKLClassifier", "MKLRegressor", "MKLSurvival") else ""
        )
        found.append(f"C = {cost} was not chosen by cross-validation: try kernelweave fit --tune{python}.")
    return tuple(found)
