"""Numbers as people read them, and what they say, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..._words import listed
from .data import Convergence, KernelFacts, Redundancy, Score, Scores, Stability

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many significant digits and a true minus sign.

    Examples
    --------
    >>> number(0.123456), number(-1234.6), number(0.00042), number(float("nan"))
    ('0.123', '−1235', '4.2×10⁻⁴', '–')
    """
    if value is None or not math.isfinite(value):
        return "–" if value is None or math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return _trimmed(f"{value:.{decimals}f}")
    factor, exponent = f"{value:.{digits - 1}e}".split("e")
    power = f"10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
    return power if _trimmed(factor) == "1" else f"{_trimmed(factor)}×{power}"


def _trimmed(text: str) -> str:
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def fixed(value: float | None, decimals: int = 3) -> str:
    """A number with so many decimals, for columns that line up.

    Examples
    --------
    >>> fixed(0.12345), fixed(-0.00001)
    ('0.123', '0.000')
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, plus or minus."""
    return f"{'+' if value > 0 else ''}{number(value, digits)}"


def plus_minus(value: float, error: float | None, decimals: int = 3) -> str:
    """A value and its standard error, where there is one."""
    if error is None or not math.isfinite(error):
        return fixed(value, decimals)
    return f"{fixed(value, decimals)} ± {fixed(error, decimals)}"


def percent(share: float | None) -> str:
    """A share in percent.

    Examples
    --------
    >>> percent(0.934), percent(1.0), percent(0.0004)
    ('93 %', '100 %', 'under 1 %')
    """
    if share is None or not math.isfinite(share):
        return "–"
    if 0 < share < 0.005:
        return "under 1 %"
    return f"{100 * share:.0f} %"


def count(amount: int, noun: str) -> str:
    """A count and its noun, in the singular for one."""
    return f"{amount:,} {noun}{'' if amount == 1 else 's'}".replace(",", "\u202f")


def named(names: Iterable[str], most: int = 4) -> str:
    """Names in a sentence, in quotation marks where one of them has a comma.

    Examples
    --------
    >>> named(["a", "b", "c"]), named(["a, b", "c"]), named("abcdefg")
    ('a, b and c', '“a, b” and “c”', 'a, b, c, d and 3 more')
    """
    every = list(names)
    return listed([f"“{name}”" for name in every] if "," in "".join(every) else every, most)


# -- sentences ----------------------------------------------------------------------------------------


#: standard errors beyond which a difference is not put down to chance
SIGNIFICANT = 2.0

#: alignment from which two kernels say nearly the same
ALIKE = 0.9

#: share of sub-samples from which a kernel counts as always selected
ALWAYS = 0.9


@dataclass(frozen=True)
class Judgement:
    """A judgement: `tone` is "good", "even" or "poor", `headline` a few words, `text` a sentence or two."""

    tone: str
    headline: str
    text: str

    @property
    def sign(self) -> str:
        """A sign for the tone, which is never shown by colour alone."""
        return {"good": "✓", "even": "≈", "poor": "!"}[self.tone]


def verdict(scores: Scores | None) -> Judgement | None:
    """Whether learning the weights helped, judged against the best baseline.

    Examples
    --------
    >>> plain = Score("uniform sum", 0.90, 0.02, difference=0.01, difference_error=0.02)
    >>> verdict(
    ...     Scores("accuracy", "on the held-out samples", 100, Score("this model", 0.91), (plain,))
    ... ).headline
    'MKL does not measurably help here'
    """
    if scores is None or not scores.baselines:
        return None
    trivial = next((score for score in scores.baselines if score.name == scores.trivial), None)
    if trivial is not None and not (_clear(trivial) and scores.model.value > trivial.value):
        advice = "A model that uses no kernel does as well: do not read the weights."
        return Judgement(
            "poor", "The model has learned next to nothing", f"{_versus(scores, trivial)} {advice}"
        )
    best = max(scores.baselines, key=lambda score: score.value)
    versus = _versus(scores, best)
    if not _clear(best):
        chance = f"That is within chance on {count(scores.n, 'sample')}: the simpler model does as well."
        if best.difference_error is None:
            chance = "The error of the difference is not known, so the difference may be chance."
        return Judgement("even", "MKL does not measurably help here", f"{versus} {chance}")
    if scores.model.value > best.value:
        chance = "The difference is beyond chance."
        return Judgement("good", "Learning the weights helps here", f"{versus} {chance}")
    advice = f"Use {_the(best)} instead, or tune C and the regulariser."
    return Judgement("poor", "MKL does worse than a baseline here", f"{versus} {advice}")


def _versus(scores: Scores, other: Score) -> str:
    gap = scores.model.value - other.value
    error = "" if other.difference_error is None else f" ± {fixed(other.difference_error)}"
    return (
        f"{scores.metric.capitalize()} {fixed(scores.model.value)} for this model, {fixed(other.value)} for "
        f"{_the(other)}: a difference of {fixed(gap)}{error}."
    )


def _the(score: Score) -> str:
    return score.name if score.name.startswith("one ") else f"the {score.name}"


def _clear(score: Score) -> bool:
    if score.difference is None or score.difference_error is None:
        return False
    return bool(abs(score.difference) > SIGNIFICANT * score.difference_error)


def certificate(fit: Convergence) -> Judgement:
    """What is known of how far the fit is from the best possible."""
    if fit.kind == "greedy":
        return Judgement(
            "even",
            "Greedy selection",
            f"{count(fit.n_iter, 'kernel')} came in one at a time. Each lowered the objective by at least "
            "its gain, but no bound says how far the set is from the best of its size.",
        )
    convex, value = fit.kind == "gap", number(fit.final, 2)
    where = f"{'within' if fit.converged else 'above'} the {number(fit.tol, 2)} asked for"
    whose = f" of the worst of the {fit.n_stacked} models that are joined" if fit.n_stacked > 1 else ""
    measured = (
        f"The {'relative duality gap' if convex else 'stationarity residual'}{whose} is {value}, {where}"
    )
    if not fit.converged and convex:
        advice = "Raise max_iter, or scale the data, before reading the weights."
        return Judgement(
            "poor", "Not converged", f"{measured}: the objective may be off by that share. {advice}"
        )
    if not fit.converged:
        return Judgement("poor", "Not converged", f"{measured}: raise max_iter before reading the weights.")
    if convex:
        if fit.n_stacked > 1:
            solved = (
                f"Each of the {fit.n_stacked} models was solved to a relative duality gap of at most {value}"
            )
            more = "Their shares come from held-out samples; no gap speaks of them."
            return Judgement("good", f"All {fit.n_stacked} models solved", f"{solved}, {where}. {more}")
        bound = f"no other weights and coefficients have an objective lower by more than {value} of its value"
        return Judgement("good", "Certified optimal", f"{measured}: {bound}.")
    return Judgement(
        "even",
        "Stationary point",
        f"{measured}. The problem is not convex: here no small change improves the objective, but nothing "
        "certifies that none is better.",
    )


def stable(kernels: KernelFacts) -> str:
    """Which kernels can be relied on to be selected."""
    found = kernels.stability
    if found is None:
        return "Stability was not computed: how much the weights change with the sample is not known."
    always = np.flatnonzero(found.frequency >= ALWAYS)
    changing = int(((found.frequency < ALWAYS) & (found.frequency > 1 - ALWAYS)).sum())
    names = [kernels.names[m] for m in always[np.argsort(-kernels.shares[always], kind="stable")]]
    rule = f"{share_rule(found)} in at least {percent(ALWAYS)} of {found.n_rounds} sub-samples"
    first = f"No kernel had {rule}: do not rely on any single one of them."
    if names:
        first = f"{named(names)} had {rule}."
    return f"{first} {count(changing, 'kernel')} came and went with the sample." if changing else first


def share_rule(found: Stability) -> str:
    """The share of the weights from which a kernel counts as selected, in words."""
    if found.threshold <= 0:
        return "a weight"
    if np.isclose(found.threshold * len(found.frequency), 1.0):
        return f"at least an equal share of the weights (1 in {len(found.frequency)})"
    return f"at least {number(found.threshold, 2)} of the weights"


def alike(found: Redundancy) -> str:
    """Which kernels say the same, and what that means for their weights."""
    M = len(found.names)
    close = [(found.matrix[i, j], i, j) for i in range(M) for j in range(i) if found.matrix[i, j] >= ALIKE]
    size = f"The {count(M, 'kernel')} count as about {number(found.effective_number, 2)} different ones."
    if not close:
        return f"{size} No two of them are nearly the same (alignment of {ALIKE} or more)."
    value, i, j = max(close)
    pairs = "1 pair is" if len(close) == 1 else f"{len(close)} pairs are"
    return (
        f"{size} {pairs} nearly the same (alignment of {ALIKE} or more), most of all "
        f"{named([found.names[j], found.names[i]])} ({fixed(value, 2)}): weight can move from one to the "
        "other without changing the predictions, so read such weights together."
    )


def leading(kernels: KernelFacts) -> str:
    """The kernels that move the prediction most."""
    if kernels.spread is None or not kernels.spread.any():
        return ""
    order = np.argsort(-kernels.spread, kind="stable")
    share = kernels.spread / kernels.spread.sum()
    top = order[:3][share[order[:3]] > 0]
    names, parts = [kernels.names[m] for m in top], [percent(float(share[m])) for m in top]
    return f"The components that vary most are those of {named(names)}: {named(parts)} of all."
