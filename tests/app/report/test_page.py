"""The page: well formed, closed to the network, safe with any name, and true to the model."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from kernelweave.inspection import contributions

pytestmark = pytest.mark.system  # whole pages


@pytest.fixture
def page(case: Any) -> Any:
    return case.page


def test_the_page_is_well_formed_and_every_reference_has_its_target(page: Any) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    pointers = [
        name
        for _, attributes in page.elements
        for key in ("aria-labelledby", "for", "data-copy")
        for name in (attributes.get(key) or "").split()
    ]
    links = [attributes["href"] for attributes in page.all("a")]
    assert all(link.startswith("#") for link in links)
    assert {*pointers, *(link[1:] for link in links)} <= set(ids)


def test_nothing_is_loaded_from_anywhere(page: Any, case: Any) -> None:
    loaders = {"img", "link", "iframe", "object", "embed", "video", "audio", "source", "base", "form", "use"}
    assert not loaders & {tag for tag, _ in page.elements}
    assert not [a for _, a in page.elements if {"src", "srcset", "action", "xlink:href"} & set(a)]
    assert "style" not in {key for _, attributes in page.elements for key in attributes}
    assert not re.search(r"https?://|@import|url\(", case.html)


def test_the_policy_allows_the_style_and_the_script_and_nothing_else(page: Any) -> None:
    policy = next(a["content"] for a in page.all("meta") if a.get("http-equiv") == "Content-Security-Policy")

    def digest(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    assert policy.split("; ")[:3] == [
        "default-src 'none'",
        f"style-src {digest(page.blocks['style'])}",
        f"script-src {digest(page.blocks['script'])}",
    ]


def test_every_figure_is_named_and_described(page: Any) -> None:
    figures = page.all("svg")
    images = [figure for figure in figures if figure.get("role") == "img"]
    assert len(images) >= 5
    assert all(figure["aria-labelledby"] == f"{figure['id']}-title {figure['id']}-desc" for figure in images)


def test_wide_content_scrolls_in_regions_that_the_keyboard_reaches(page: Any) -> None:
    regions = [attributes for attributes in page.all("div") if attributes.get("role") == "region"]
    assert all(region["tabindex"] == "0" for region in regions)
    names = [region["aria-label"] for region in regions]
    assert len(names) == len(set(names))
    assert len(regions) >= len(page.tables)


def test_the_table_of_weights_shows_those_of_the_model(page: Any, case: Any, shown: Any) -> None:
    weights = np.atleast_2d(case.report.kernels.weights)
    assert np.array_equal(weights, np.atleast_2d(case.inner.weights_))
    column = "Weight" if len(weights) == 1 else f"Weight, {case.report.kernels.models[0]}"
    cells = page.column("weights-table", column)
    model = dict(zip(case.inner.kernel_names_, weights[0], strict=True))
    assert len(cells) == min(len(model), 40)
    assert all(shown(cell) == pytest.approx(model[name], rel=1e-4, abs=1e-12) for name, cell in cells.items())


def test_the_parts_of_a_sample_add_up_to_the_decision_value(case: Any) -> None:
    samples = case.report.samples
    rows = [int(label.removeprefix("P")) for label in samples.labels]
    parts = contributions(case.model, case.X_test[rows])
    assert np.allclose(samples.parts, parts if parts.ndim == 3 else parts[None])
    predict = getattr(case.model, "decision_function", case.model.predict)
    values = np.asarray(predict(case.X_test[rows])).reshape(len(rows), -1).T
    assert np.allclose(samples.values, values)


def test_the_script_gets_the_parts_of_every_sample(page: Any, case: Any) -> None:
    data = json.loads(page.blocks["report-data"])
    samples = case.report.samples
    sums = np.array(data["parts"]).sum(axis=2)
    assert np.allclose(sums, samples.values, rtol=1e-3, atol=1e-3 * np.abs(samples.values).max())
    assert len(data["labels"]) <= 200
    assert len(data["rows"]) <= 16


def test_features_add_up_to_the_value_and_have_names(page: Any, case: Any) -> None:
    found = case.report.attributions
    samples, rows = found.samples, [int(label.lstrip("P")) for label in found.samples.labels]
    predict = getattr(case.model, "decision_function", case.model.predict)
    values = np.asarray(predict(case.X_test[rows])).reshape(len(rows), -1).T
    np.testing.assert_allclose(samples.values, values, atol=1e-8 * np.abs(values).max())
    assert set(page.column("feature-table", "Mean size")) <= set(found.by_feature.names)
    why = json.loads(page.blocks["report-data"])["why"]
    assert why["labels"] == list(samples.labels)
    np.testing.assert_allclose(np.sum(why["parts"], axis=2), values, atol=2e-3 * np.abs(values).max())


def test_errors_are_those_of_the_predictions(case: Any) -> None:
    predicted, errors = case.model.predict(case.X_test), case.report.errors
    if case.report.fitted.task == "classification":
        assert np.array_equal(errors.counts, confusion_matrix(case.y_test, predicted))
    elif case.report.fitted.task == "survival":
        assert errors is None
        assert np.allclose(case.report.survival.risk, predicted)
    else:
        assert np.allclose(errors.predicted[0], predicted)
        assert np.allclose(errors.observed[0], case.y_test)


def test_the_score_is_that_of_the_model(page: Any, case: Any, shown: Any) -> None:
    scores = case.report.scores
    assert scores.model.value == pytest.approx(case.model.score(case.X_test, case.y_test))
    assert shown(page.column("score-table", page.tables["score-table"][0][1])["this model"]) == pytest.approx(
        scores.model.value, abs=5e-4
    )
    assert len(scores.baselines) == 3


def test_all_of_it_is_json(case: Any) -> None:
    out = json.loads(json.dumps(case.report.to_dict(), allow_nan=False))
    assert out["kernels"]["names"] == list(case.inner.kernel_names_)


def test_settings_rebuild_the_model(case: Any) -> None:
    names: dict[str, Any] = {}
    code = case.report.settings.code.replace("model.fit(X, y)", "")
    exec(code, names)
    rebuilt = names["model"].fit(case.X, case.y)
    assert np.array_equal(rebuilt.predict(case.X_test), case.model.predict(case.X_test))


def test_many_kernels_are_cut_and_the_page_says_so(cases: Any, shown: Any) -> None:
    case = cases("many_kernels")
    text = case.html
    assert "260 kernels of smaller weight are left out" in text
    assert len(text) < 800_000
    heaviest = np.sort(case.inner.weights_)[-40:]
    cells = case.page.column("weights-table", "Weight")
    assert sorted(map(shown, cells.values())) == pytest.approx(heaviest, rel=1e-4, abs=1e-12)


def test_certified_or_not_is_said_in_words(cases: Any) -> None:
    assert "Certified optimal" in cases("binary").html
    assert "Stationary point" in cases("empirical_bayes").html
    assert "no bound says how far" in cases("greedy").html


def test_hostile_names_stay_text(hostile: Any) -> None:
    text = hostile.html
    page = hostile.page
    assert len(page.all("script")) == 2
    assert not [tag for tag, _ in page.elements if tag in ("img", "iframe", "b")]
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    assert page.text.count("</script><img src=x onerror=alert(1)>") >= 2
    assert "$title ${style} {data}" in page.text
    assert not set("\x00\x1b\u202e") & set(text)
    assert set(json.loads(page.blocks["report-data"])["truth"]) == set(hostile.y_test)
    assert page.all("svg")
    assert page.all("title")[0] == {}
