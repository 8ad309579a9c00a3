"""The candidates that competed for a model, and which of them were taken."""

from __future__ import annotations

from .data import Choice, Entrant
from .given import Subject, plain
from .words import count, named, percent

STACK = "f(x) = Σⱼ wⱼ fⱼ(x),   fⱼ(x) = bⱼ + Σₘ dⱼₘ Σᵢ αⱼᵢ kₘ(x, xᵢ)"
SUM = "f(x) = b + Σₘ fₘ(x),   min  C Σᵢ V(yᵢ, f(xᵢ)) + ½ Σₘ ‖fₘ‖²"
LEARNED = "f(x) = b + Σₘ fₘ(x),   min  C Σᵢ V(yᵢ, f(xᵢ)) + ½ Σₘ ‖fₘ‖²/dₘ + ½ h(d)"


def choice(given: Subject) -> Choice | None:
    """The competition of an `MKLAuto...` estimator; None where candidates did not compete."""
    auto = given.auto
    if auto is None:
        return None
    table, in_model = auto.cv_results_, [*auto.stack_weights_.tolist(), None]
    keys = ("candidate", "C", "mean_test_score", "standard_error", "stack_share")
    rows = zip(*(table[key] for key in keys), in_model, strict=True)
    entrants = tuple(
        Entrant(name, *(None if value != value else value for value in values)) for name, *values in rows
    )
    metric = (
        given.metric if auto.scoring is None else auto.scoring if isinstance(auto.scoring, str) else "score"
    )
    n_folds = table["split_test_scores"].shape[1]
    return Choice(auto.reason_, metric, n_folds, auto.best_index_, entrants)


def taken_words(given: Subject) -> tuple[str, str]:
    """What a competition took, in a sentence or two, and its formula."""
    taken, found = given.auto._taken, choice(given)
    assert found is not None
    rivals = f"{count(len(found.entrants) - 1, 'candidate')} and their stack"
    first = f"No method was chosen beforehand: {rivals} competed on held-out samples."
    if len(taken) > 1:
        parts = named([f"{percent(share)} {one.name}" for share, one, _ in taken], 8)
        return f"{first} The model is a weighted mean of several of them: {parts}.", STACK
    one = taken[0][1]
    kernels = count(len(one.kernels), "kernel")
    if plain(one.regularizer):
        how = "one kernel" if len(one.kernels) == 1 else f"the plain sum of {kernels}, all of the same weight"
        return f"{first} The model is “{one.name}”: {how}.", SUM
    how = f"weights of {kernels} learned together with the coefficients"
    return f"{first} The model is “{one.name}”: {how}.", LEARNED
