"""What the sections of a report show: rows of figures and facts, asked for by the templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from json import dumps
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from ..._typing import FloatArray, IntArray
from ..._words import plain as _plain
from . import data
from .figures import Bar, Dot, Scale, Square, short
from .methods import GAPS
from .words import ALWAYS, certificate, count, fixed, named, number, percent, plus_minus, share_rule, signed

if TYPE_CHECKING:
    from .report import Report

#: ranges of the other scores from which on the trivial baseline is off the scale
FAR = 3.0

#: most kernels with a row of their own in a sample taken apart; the others are one row together
MOST_ROWS = 14


def largest_first(values: FloatArray) -> IntArray:
    """Places of the values in decreasing order."""
    return np.argsort(-values, kind="stable")


# -- the top, what was fitted -------------------------------------------------------------------


def subtitle(report: Report) -> str:
    """Estimator and sizes."""
    fitted = report.fitted
    held = [f"{count(fitted.n_test, 'sample')} held out"] if fitted.n_test else []
    sizes = [count(fitted.n_train, "training sample"), *held, count(len(report.kernels.names), "kernel")]
    return " · ".join([fitted.estimator, *sizes])


def tiles(report: Report) -> Iterable[tuple[str, str, str, str]]:
    """The numbers that matter most: name, value, note and tone."""
    scores, kernels, fit = report.scores, report.kernels, report.convergence
    if scores is not None:
        error = scores.model.error
        spread = f"± {fixed(error)}, " if error is not None and np.isfinite(error) else ""
        where = "held out" if report.fitted.n_test else "cross-validated"
        yield scores.metric.capitalize(), fixed(scores.model.value), f"{spread}{where}", ""
    heaviest = kernels.names[int(kernels.heaviest(1)[0])]
    note = "all of the same weight" if kernels.level else f"heaviest: {heaviest}"
    yield "Kernels used", f"{len(kernels.used)} of {len(kernels.names)}", note, ""
    if fit is not None and fit.final is None:
        yield "Certificate", "none", "greedy selection", ""
    elif fit is not None:
        judged, name = certificate(fit), "Duality gap" if fit.kind == "gap" else "Stationarity"
        yield name, number(fit.final, 2), f"{judged.sign} {judged.headline.lower()}", judged.tone
    if (found := kernels.stability) is not None:
        always = int((found.frequency >= ALWAYS).sum())
        note = f"in {percent(ALWAYS)} or more of {found.n_rounds} sub-samples"
        yield "Stable kernels", str(always), note, ""


def facts(report: Report) -> list[tuple[str, Any]]:
    """Model, data, kernels, and whatever the caller said about the source, which takes precedence."""
    found, names, task = report.fitted, list(report.kernels.names), report.fitted.task
    if found.classes:
        labels = [f"{name} ({n})" for name, n in found.classes]
        task = f"classification into {len(labels)} class{'es' * (len(labels) > 1)}: {named(labels, 8)}"
    elif found.n_events is not None:
        task = f"survival: {count(found.n_events, 'event')}, other times are censored"
    pairs = {
        "Model": found.estimator,
        "Task": task,
        "Training": count(found.n_train, "sample"),
        "Held out": count(found.n_test, "sample") if found.n_test else "none; scores are cross-validated",
        "Columns": None if found.n_features is None else str(found.n_features),
        "Kernels": f"{len(names)}: {named(names, 6)}",
    }
    told = {str(key).replace("_", " ").capitalize(): _words(value) for key, value in found.source.items()}
    own = [(key, value) for key, value in pairs.items() if value is not None and key not in told]
    return [*own, *told.items()]


def _words(value: Any) -> Any:
    """A value of the source: numbers and lists as people write them, nested ones in JSON, long texts cut."""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        sentences = any(len(item) > 40 for item in value)
        return "; ".join(value) if sentences else named(value, 20)
    text = (
        dumps(_plain(value), separators=(",", ":")) if isinstance(value, dict | list | tuple) else str(value)
    )
    return Markup("<code>{}</code>").format(text if len(text) <= 500 else f"{text[:500]} …")


def everything(report: Report) -> str:
    """All settings as JSON."""
    found = report.settings
    settings = {
        "estimator": report.fitted.estimator,
        "parameters": found.parameters,
        "preprocessing": found.preprocessing,
        "kernel_names": report.kernels.names,
        "random_state_of_the_report": found.random_state,
        "source": report.fitted.source,
        "versions": found.versions,
        "created": found.created,
    }
    return dumps(_plain(settings), indent=2, allow_nan=False)


# -- scores -------------------------------------------------------------------------------------


def more_figures(scores: data.Scores) -> list[tuple[str, str]]:
    """Figures of the model beside its score."""
    return [
        (name if name.isupper() or name == "F1" else name.capitalize(), number(value))
        for name, value in scores.more.items()
    ]


def roc_legend(found: data.Roc) -> list[tuple[str, str]]:
    """Colours and names of ROC curves, with the areas under them."""
    pairs = list(zip(found.curves, found.areas, strict=True))[:8]
    return [(f"s{k}", f"{curve.name}: {fixed(area)}") for k, (curve, area) in enumerate(pairs)]


def gaps_words(found: data.ViewsUsed) -> str:
    """What the model does with views that samples lack, as a sentence."""
    return f"{GAPS[found.missing][0].upper()}{GAPS[found.missing][1:]}."


def trained_words(found: data.ViewsUsed) -> str:
    """How many training samples have which views, where some lack one."""
    total = sum(n for _, n in found.training)
    if len(found.training) < 2:
        return f"All {count(total, 'training sample')} have {found.training[0][0]}." if found.training else ""
    return f"Of {total} training samples, {named([f'{n} have {views}' for views, n in found.training], 8)}."


def score_bars(scores: data.Scores) -> list[Bar]:
    """The model first, then the baselines."""
    rows = []
    for entry in (scores.model, *scores.baselines):
        error = entry.error if entry.error is not None and entry.error == entry.error else 0.0
        ends = entry.value - error, entry.value + error
        tip = f"{entry.name}: {plus_minus(entry.value, entry.error)}"
        tone = "" if entry is scores.model else "quiet"
        rows.append(Bar(entry.name, entry.value, fixed(entry.value), interval=ends, tip=tip, tone=tone))
    return rows


def score_scale(rows: list[Bar], trivial: str | None) -> Scale:
    """Scale for the model and near baselines: one far below would squeeze the rest; no score is above 1."""
    every = [end for row in rows for end in row.interval or ()]
    near = [end for row in rows if row.label != trivial for end in row.interval or ()]
    far = len(rows) > 2 and max(near) - min(every) > FAR * (max(near) - min(near))
    scale = Scale.covering(near if far else every, 2.0, 98.0, pad=0.12)
    return replace(scale, high=min(scale.high, 1.0)) if max(row.value for row in rows) <= 1.0 else scale


def minus(entry: data.Score) -> str:
    """The model's score minus this one."""
    if entry.difference is None:
        return "–"
    error = "" if entry.difference_error is None else f" ± {fixed(entry.difference_error)}"
    return f"{'+' if entry.difference > 0 else ''}{fixed(entry.difference)}{error}"


# -- kernels ------------------------------------------------------------------------------------


def left_out(n_all: int, n_shown: int) -> str:
    """Says how many kernels are not shown."""
    if n_all == n_shown:
        return ""
    others = count(n_all - n_shown, "kernel")
    return f"The {n_shown} heaviest are shown; {others} of smaller weight are left out."


def interval(found: data.Stability, m: int) -> str:
    """Ends of the interval of a kernel's share."""
    return f"{number(found.lower[m])} to {number(found.upper[m])}"


def weight_bars(kernels: data.KernelFacts, order: IntArray) -> list[Bar]:
    """Shares of the weights with their intervals; ticks for the single models."""
    found, rows = kernels.stability, []
    single = kernels.weights / np.maximum(kernels.weights.sum(axis=1, keepdims=True), 1e-300)
    for m in order:
        value = float(kernels.shares[m])
        tip, ends = f"{kernels.names[m]}: {percent(value)} of the weights", None
        if found is not None:
            selected = f"{share_rule(found)} in {percent(found.frequency[m])} of the sub-samples"
            tip = f"{tip}; interval {interval(found, m)}; {selected}"
            ends = float(found.lower[m]), float(found.upper[m])
        # more than three decimals for a weight that is small but not zero
        text = number(value, 2) if 0 < value < 0.0005 else fixed(value)
        marks = single[:, m].tolist() if len(single) > 1 else ()
        tone = "" if value else "quiet"
        rows.append(Bar(kernels.names[m], value, text, interval=ends, marks=marks, tip=tip, tone=tone))
    return rows


def spread_bars(kernels: data.KernelFacts, order: IntArray) -> list[Bar]:
    """How much each component varies."""
    assert kernels.spread is not None
    total, rows = float(kernels.spread.sum()) or 1.0, []
    for name, value in ((kernels.names[m], float(kernels.spread[m])) for m in order):
        share = percent(value / total)
        tip = f"{name}: standard deviation {number(value)}, {share} of all"
        rows.append(Bar(name, value, share, tip=tip, tone="" if value else "quiet"))
    return rows


def drop_bars(kernels: data.KernelFacts, order: IntArray) -> list[Bar]:
    """Fall of the score without each component."""
    assert kernels.drop is not None
    rows = []
    for name, value in ((kernels.names[m], float(kernels.drop[m])) for m in order):
        tip = f"{name}: without it the {kernels.drop_metric} falls by {number(value)}"
        tone = "minus" if value < 0 else "" if value > 0 else "quiet"
        rows.append(Bar(name, value, signed(value, 2), tip=tip, tone=tone))
    return rows


def alignment_squares(found: data.Redundancy) -> list[list[Square]]:
    """Alignments of the kernels, written out where there is room."""

    def square(i: int, j: int) -> Square:
        text = fixed(found.matrix[i, j], 2)
        tip = f"{found.names[i]} and {found.names[j]}: {text}"
        return Square(float(found.matrix[i, j]), tip, text if len(found.names) <= 14 else "")

    return [[square(i, j) for j in range(len(found.names))] for i in range(len(found.names))]


# -- one sample ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class TakenApart:
    """f = b + sum_m f_m of every sample, the parts that matter most in rows of their own.

    `values` has the shape (K, S, rows), its rows are b, those parts, and the rest; `texts` has the same and
    the sum, as the page writes them. `order`, of the same shape, says which of `names` the rows of a sample
    are; without it they are the same for all.
    """

    names: list[str]
    values: FloatArray
    functions: list[str]
    headings: list[str]
    first: tuple[int, int]
    order: IntArray | None = None

    @cached_property
    def texts(self) -> list[list[list[str]]]:
        return [
            [[*map(signed, sample.tolist()), number(float(sample.sum()))] for sample in function]
            for function in self.values
        ]

    @property
    def largest(self) -> IntArray:
        """The largest function of each sample."""
        result: IntArray = self.values.sum(axis=2).argmax(axis=0)
        return result

    @property
    def scale(self) -> Scale:
        """One scale for all samples, so that they can be compared."""
        return Scale.covering(np.cumsum(self.values, axis=2).ravel().tolist(), zero=True, pad=0.03)

    @property
    def bars(self) -> list[Bar]:
        """The sample shown at first: each bar begins where the one above ends."""
        sample, function = self.first
        parts, texts = self.values[function, sample].tolist(), self.texts[function][sample]
        names = self.names if self.order is None else [self.names[k] for k in self.order[function, sample]]
        ends = np.cumsum(parts).tolist()
        rows = [
            Bar(name, end, text, end - part, tone="minus" if part < 0 else "", tip=f"{name}: {text}")
            for name, part, end, text in zip(names, parts, ends, texts, strict=False)
        ]
        return [*rows, Bar("f, the sum", ends[-1], texts[-1], tone="total")]


def taken_apart(report: Report) -> TakenApart:
    """The samples of a report, taken apart by kernels."""
    found = report.samples
    assert found is not None
    size = np.abs(found.parts).mean(axis=(0, 1))
    live = largest_first(size)[: np.count_nonzero(size)]
    order, rest = live[:MOST_ROWS], live[MOST_ROWS:]
    columns = [
        np.broadcast_to(found.intercept[:, None, None], (*found.parts.shape[:2], 1)),
        found.parts[:, :, order],
    ]
    names = ["intercept b", *[report.kernels.names[m] for m in order]]
    if len(rest):
        columns.append(found.parts[:, :, rest].sum(axis=2, keepdims=True))
        names.append(count(len(rest), "other kernel"))
    return _shown(report, found, names, np.concatenate(columns, axis=2))


def _shown(
    report: Report, found: data.Samples, names: list[str], values: FloatArray, order: IntArray | None = None
) -> TakenApart:
    """Samples with headings; at first a wrong one is shown, where there is one."""
    seen = "true" if report.fitted.classes else "observed"
    told = [
        f": {seen} {t}, predicted {p}" for t, p in zip(found.truth, found.predicted, strict=bool(found.truth))
    ]
    headings = [f"Sample {a}{b}" for a, b in zip(found.labels, told or [""] * len(found.labels), strict=True)]
    if report.views is not None and len(report.views.patterns) > 1:
        used = dict(zip(report.views.labels, report.views.used, strict=True))
        headings = [f"{a}; views {used[b]}" for a, b in zip(headings, found.labels, strict=True)]
    sample = found.wrong.index(True) if True in found.wrong else 0
    function = int(found.values[:, sample].argmax())
    return TakenApart(names, values, _functions(report), headings, (sample, function), order)


def _functions(report: Report) -> list[str]:
    """What the functions are: classes, pairs of them, or outputs."""
    fitted = report.fitted
    if len(fitted.functions) == 1:
        return list(fitted.functions)
    pairs = fitted.task == "classification" and fitted.functions != tuple(name for name, _ in fitted.classes)
    kind = "" if pairs else "output " if fitted.task == "regression" else "class "
    return [f"{kind}{name}" for name in fitted.functions]


def page_data(report: Report) -> dict[str, Any]:
    """What the pickers show."""
    own, why = report.samples, report.attributions
    samples = {}
    if own is not None and own.labels:
        samples = {**_picker(own, taken_apart(report)), **_curve_data(report)}
    return {**samples, **({} if why is None else {"why": _picker(why.samples, explained(report))})}


def _picker(found: data.Samples, shown: TakenApart) -> dict[str, Any]:
    """What one picker shows; the script formats no numbers, the texts of a sample are one string."""
    return {
        "labels": found.labels,
        "truth": found.truth,
        "predicted": found.predicted,
        "wrong": found.wrong,
        "headings": shown.headings,
        "functions": shown.functions,
        "rows": shown.names,
        "shorts": [short(name) for name in shown.names],
        "order": None if shown.order is None else shown.order.tolist(),
        "parts": [[[float(f"{part:.4g}") for part in one] for one in each] for each in shown.values.tolist()],
        "texts": [[" ".join(texts) for texts in each] for each in shown.texts],
        "scale": [shown.scale.low, shown.scale.high],
        "first": shown.first,
    }


def _curve_data(report: Report) -> dict[str, Any]:
    """The baseline of survival curves, where the picker draws them."""
    found = report.survival
    if found is None or found.baseline is None:
        return {}
    last = found.baseline.x[-1] or 1.0
    return {
        "across": [round(100.0 * x / last, 2) for x in found.baseline.x],
        "hazard": [float(f"{y:.4g}") for y in found.baseline.y],
    }


# -- features -----------------------------------------------------------------------------------

#: most features of a sample, and of the swarm of all samples
MOST_PARTS, MOST_SWARMS = 12, 10


def explained(report: Report) -> TakenApart:
    """The samples of a report, taken apart by features: for each the largest, then the others together."""
    why = report.attributions
    assert why is not None
    parts, rest = why.samples.parts[..., :-1], why.samples.parts[..., -1:]
    order = np.argsort(-np.abs(parts), axis=2, kind="stable")
    top, low = order[..., :MOST_PARTS], order[..., MOST_PARTS:]
    others = np.take_along_axis(parts, low, axis=2).sum(axis=2, keepdims=True) + rest
    base = np.broadcast_to(why.samples.intercept[:, None, None], others.shape)
    columns, places = [base, np.take_along_axis(parts, top, axis=2)], [np.zeros_like(top[..., :1]), 1 + top]
    names = ["mean of the background", *why.features]
    if len(why.by_feature.names) > MOST_PARTS:
        columns.append(others)
        places.append(np.full_like(top[..., :1], len(names)))
        names.append(count(len(why.by_feature.names) - MOST_PARTS, "other feature"))
    values, which = np.concatenate(columns, axis=2), np.concatenate(places, axis=2)
    return _shown(report, why.samples, names, values, which)


def size_bars(sizes: data.Sizes, most: int = 40) -> list[Bar]:
    """Mean sizes with their intervals, the largest first; without those that add nothing."""
    rows = []
    for k in largest_first(sizes.mean)[: min(most, max(1, np.count_nonzero(sizes.mean)))]:
        ends = float(sizes.low[k]), float(sizes.high[k])
        text = number(float(sizes.mean[k]))
        tip = f"{sizes.names[k]}: {text}; interval {number(ends[0])} to {number(ends[1])}"
        rows.append(Bar(sizes.names[k], float(sizes.mean[k]), text, interval=ends, tip=tip))
    return rows


def swarm(why: data.Attributions) -> tuple[list[str], list[Dot]]:
    """Rows of features and a dot for each sample, at what the feature adds to its largest function."""
    largest = why.samples.values.argmax(axis=0)
    live = int(np.count_nonzero(why.samples.parts[..., :-1].any(axis=(0, 1))))
    points = []
    for row, name in enumerate(why.features[: min(MOST_SWARMS, max(live, 1))]):
        adds = why.samples.parts[largest, np.arange(len(largest)), row]
        places = np.argsort(np.argsort(why.data[:, row], kind="stable"), kind="stable") / max(
            len(adds) - 1, 1
        )
        known = not np.isnan(why.data[:, row]).any()
        for k, (value, rank) in enumerate(zip(adds.tolist(), places.tolist(), strict=True)):
            jitter = (k * 0.6180339887 % 1.0 - 0.5) * 0.5 + 0.1
            tone = ("low", "middle", "high")[min(int(3 * rank), 2)] if known else ""
            at = f" at {number(why.data[k, row])}" if known else ""
            tip = f"sample {why.samples.labels[k]}: {name}{at} adds {signed(value)}"
            points.append(Dot(value, row + jitter, tip, tone, k))
    return list(why.features[: min(MOST_SWARMS, max(live, 1))]), points


def channel_curve(why: data.Attributions) -> list[list[Dot]]:
    """Mean size over the features whose names are numbers; at most 400 of them."""
    assert why.positions is not None
    step, sizes = -(-len(why.channels) // 400), why.by_feature
    pairs = list(zip(why.positions.tolist(), why.channels.tolist(), strict=True))
    return [
        [
            Dot(x, float(sizes.mean[f]), f"{sizes.names[f]}: {number(float(sizes.mean[f]))}")
            for x, f in pairs[::step]
        ]
    ]


# -- all samples --------------------------------------------------------------------------------


@dataclass(frozen=True)
class SampleMap:
    """All samples in one figure: in `rows`, at the value that `label` names."""

    label: str
    rows: list[str]
    points: list[Dot]


def sample_map(report: Report) -> SampleMap | None:
    """Samples by their value; None for regression, where the residual plot shows them."""
    found, classes = report.samples, [name for name, _ in report.fitted.classes]
    assert found is not None
    margins = None if report.fitted.task == "regression" else _margins(found, classes)
    if margins is None:
        return None
    label = "f of the true class, minus the largest other"
    if len(found.intercept) == 1:
        label = f"value f, positive for {short(classes[1])}" if len(classes) == 2 else "value f"
    rows = classes if found.truth and 0 < len(classes) <= 8 else ["all samples"]
    points = []
    for k, value in enumerate(margins.tolist()):
        row = rows.index(found.truth[k]) if found.truth and found.truth[k] in rows else 0
        jitter = (k * 0.6180339887 % 1.0 - 0.5) * 0.5 + 0.1
        told = f", {found.truth[k]}, predicted {found.predicted[k]}" if found.truth else ""
        tone = "wrong" if found.wrong and found.wrong[k] else ""
        points.append(Dot(value, row + jitter, f"sample {found.labels[k]}: {number(value)}{told}", tone, k))
    return SampleMap(label, rows, points)


def _margins(found: data.Samples, classes: list[str]) -> FloatArray | None:
    """f or, with several functions, the value of the true class minus the largest other."""
    values = found.values
    if len(values) == 1:
        result: FloatArray | None = values[0]
        return result
    if len(values) != len(classes) or not set(found.truth) <= set(classes):
        return None
    place = np.array([classes.index(name) for name in found.truth]), np.arange(values.shape[1])
    others = values.copy()
    others[place] = -np.inf
    result = values[place] - others.max(axis=0)
    return result


# -- errors -------------------------------------------------------------------------------------


def confusion_squares(found: data.Confusion) -> list[list[Square]]:
    """Counts, as dark as their share of the true class."""
    labels, counts = found.labels, found.counts

    def square(i: int, j: int) -> Square:
        share = float(found.shares[i, j])
        tip = f"true {labels[i]}, predicted {labels[j]}: {counts[i, j]}, {percent(share)}"
        return Square(share, tip, str(counts[i, j]) if len(labels) <= 20 else "")

    return [[square(i, j) for j in range(len(labels))] for i in range(len(labels))]


def most_confused(found: data.Confusion) -> str:
    """The most frequent confusion."""
    off = found.counts - np.diag(np.diag(found.counts))
    if not off.any():
        return "No sample is confused with another class."
    i, j = np.unravel_index(int(off.argmax()), off.shape)
    taken = f"Most often {found.labels[i]} is taken for {found.labels[j]}"
    return f"{taken}: {count(int(off[i, j]), 'time')}, {percent(float(found.shares[i, j]))} of its samples."


def correlation(found: data.Residuals, k: int) -> float:
    """Correlation of observed and predicted values of an output."""
    return (
        float(np.corrcoef(found.predicted[k], found.observed[k])[0, 1]) if np.ptp(found.predicted[k]) else 0.0
    )


def observed_points(found: data.Residuals, k: int, picked: data.Samples | None) -> list[Dot]:
    """Observed over predicted values of an output; dots of the first output pick samples."""
    keys = {} if picked is None or k else {label: row for row, label in enumerate(picked.labels)}
    values = zip(found.predicted[k].tolist(), found.observed[k].tolist(), found.labels, strict=True)
    return [
        Dot(p, o, f"sample {label}: observed {number(o)}, predicted {number(p)}", key=keys.get(label))
        for p, o, label in values
    ]


def residual_points(found: data.Residuals) -> list[Dot]:
    """Residuals over predictions of the first output: what a good model leaves is shapeless."""
    residuals = (found.observed[0] - found.predicted[0]).tolist()
    values = zip(found.predicted[0].tolist(), residuals, found.labels, strict=True)
    return [Dot(p, e, f"sample {label}: residual {number(e)}") for p, e, label in values]


def novelty_bars(found: data.Novelty) -> list[Bar]:
    """Number of samples by their value."""
    counts, edges = np.histogram(found.values, bins=min(20, max(5, len(found.values) // 10)))
    return [
        Bar(
            f"{number(low)} to {number(high)}",
            float(n),
            str(n),
            tip=f"{n} samples",
            tone="minus" if high <= 0 else "",
        )
        for n, low, high in zip(counts, edges, edges[1:], strict=False)
    ]


# -- survival -----------------------------------------------------------------------------------


def step_points(curves: Sequence[data.Curve]) -> list[list[Dot]]:
    """Curves that keep their value until the next step: two points for each step."""
    found = []
    for one in curves:
        xs, ys = np.repeat(one.x, 2)[1:], np.repeat(one.y, 2)[:-1]
        found.append([Dot(x, y, "") for x, y in zip(xs.tolist(), ys.tolist(), strict=True)])
    return found


def times_heads(found: data.Survival) -> list[str]:
    """Headings of columns of survival."""
    return [f"Survival at {number(time)}" for time in found.times]


def group_words(found: data.Survival) -> str:
    """Whether groups by predicted risk differ."""
    if found.p_value is None:
        return "All samples have the same predicted risk."
    judged = "beyond chance" if found.p_value < 0.05 else "within chance"
    return f"The curves of the groups differ {judged} (log-rank test, p = {number(found.p_value, 2)})."


def calibration_points(found: data.Survival) -> list[Dot]:
    """Predicted and seen survival of groups, at all times."""
    return [
        Dot(x, y, f"at {one.name}: predicted {fixed(x)}, seen {fixed(y)}", f"s{k}")
        for k, one in enumerate(found.calibration)
        for x, y in zip(one.x, one.y, strict=True)
    ]


def survival_at(curve: data.Curve, time: float) -> float:
    """The value of a stepped curve at a time."""
    return float(curve.y[int(np.searchsorted(curve.x, time, side="right")) - 1])


def sample_curve(report: Report, k: int) -> data.Curve | None:
    """The predicted curve of a sample taken apart: exp(-Lambda_0 exp f)."""
    found, samples = report.survival, report.samples
    if found is None or found.baseline is None or samples is None:
        return None
    risk = float(samples.values[0, k])
    return data.Curve(samples.labels[k], found.baseline.x, np.exp(-np.exp(risk) * np.array(found.baseline.y)))


# -- curves -------------------------------------------------------------------------------------


def curve_points(curves: Sequence[data.Curve], unit: str, marks: Sequence[str] = ()) -> list[list[Dot]]:
    """The points of every curve; `marks` names those along x."""
    return [
        [
            Dot(x, y, f"{one.name}, {unit} {number(x)}: {number(y)}{f' ({marks[k]})' if marks else ''}")
            for k, (x, y) in enumerate(zip(one.x, one.y, strict=True))
        ]
        for one in curves
    ]


def legend_of(curves: Sequence[data.Curve]) -> list[tuple[str, str]]:
    """Colours and names of curves."""
    return [(f"s{k}", curve.name) for k, curve in enumerate(curves)]


def at(curve: data.Curve, x: float) -> tuple[str, float | None]:
    """The value of a curve as a cell of a table."""
    if x not in curve.x:
        return "–", None
    k = list(curve.x).index(x)
    text = number(curve.y[k]) if curve.error is None else plus_minus(curve.y[k], curve.error[k])
    return text, float(curve.y[k])


def many_sizes(found: data.PathCurves) -> bool:
    """Whether values are all positive and of very different size, as a logarithmic axis wants them."""
    values = [value for curve in found.curves for value in curve.y]
    return min(values) > 0 and max(values) > 20 * min(values)
