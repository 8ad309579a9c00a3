"""The page in a real browser: silent, offline, drawn, reachable by keyboard, readable without scripts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from ... import browsers
from ...browsers import Opened

pytestmark = pytest.mark.browser
browser = browsers.browser

CASES = ("binary", "multiclass", "regression", "many_kernels", "greedy", "empirical_bayes")


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Any]:
    """Open a case in the browser."""
    opened: list[Opened] = []

    def start(case: Any, **options: Any) -> Opened:
        path = tmp_path / "report.html"
        path.write_text(case.html, encoding="utf-8")
        options = {"viewport": {"width": 1200, "height": 900}, **options}
        opened.append(Opened(browser, path, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.context.close()


@pytest.mark.parametrize("name", CASES)
def test_silent_offline_drawn_and_no_wider_than_a_phone(name: str, cases: Any, show: Any) -> None:
    opened = show(cases(name), viewport={"width": 375, "height": 800})
    opened.open_details()
    boxes = opened.page.evaluate(
        """[...document.querySelectorAll('svg[role=img]')].map((svg) => {
            const box = svg.getBoundingClientRect();
            const drawn = [...svg.querySelectorAll('rect.bar, rect.cell, circle')].filter((shape) => {
                const size = shape.getBoundingClientRect();
                return size.width > 0 && size.height > 0;
            });
            return [svg.id, box.width, box.height, drawn.length];
        })"""
    )
    assert len(boxes) >= 5
    assert not [box for box in boxes if min(box[1:]) <= 0]
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 375
    assert opened.faults == []
    assert [url.split("/")[-1] for url in opened.requests] == ["report.html"]


def test_hostile_names_do_nothing(hostile: Any, show: Any) -> None:
    opened = show(hostile)
    for _ in range(3):
        opened.page.keyboard.press("Tab")
    opened.page.locator("#sample-list").press("ArrowDown")
    opened.page.locator("#sample-figure .row").nth(1).hover()
    assert opened.page.locator("#tip").is_visible()
    assert opened.page.locator("img, iframe").count() == 0
    assert opened.faults == []
    assert len(opened.requests) == 1


def test_everything_can_be_reached_with_the_tab_key_and_shows_the_focus(cases: Any, show: Any) -> None:
    page = show(cases("multiclass")).page
    wanted = page.evaluate(
        """[...document.querySelectorAll('a[href], button, select, summary, [tabindex="0"]')]
            .filter((e) => e.checkVisibility()).length"""
    )
    seen = []
    for _ in range(wanted):
        page.keyboard.press("Tab")
        seen.append(
            page.evaluate(
                """(() => {
                    const e = document.activeElement, style = getComputedStyle(e);
                    e.dataset.reached = "yes";
                    return [e.tagName, style.outlineStyle, parseFloat(style.outlineWidth)];
                })()"""
            )
        )
    assert page.locator("[data-reached]").count() == wanted
    assert {"A", "BUTTON", "SELECT", "SUMMARY", "DIV", "PRE"} <= {tag for tag, _, _ in seen}
    assert not [one for one in seen if one[1] == "none" or one[2] < 1]


# Dots lie over one another: a click reaches the one drawn last, so this finds one that nothing covers.
UNCOVERED_DOT = """(() => {
    for (const dot of document.querySelectorAll('circle[data-sample]')) {
        const box = dot.getBoundingClientRect(), x = box.x + box.width / 2, y = box.y + box.height / 2;
        const sample = Number(dot.dataset.sample);
        const open = document.elementFromPoint(x, y) === dot && !dot.classList.contains('picked');
        if (open) return {sample, x, y};
    }
})()"""


def test_the_picker_follows_the_arrow_keys(cases: Any, show: Any) -> None:
    case = cases("multiclass")
    opened, samples = show(case), case.report.samples
    page, chosen = opened.page, opened.page.locator("#sample-list")
    heading, total = page.locator("#sample-heading"), page.locator("#sample-figure .total .value")
    chosen.press("Home")
    for key, sample in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1), ("End", len(samples.labels) - 1)):
        chosen.press(key)
        assert f"Sample {samples.labels[sample]}:" in heading.inner_text()
        value = float(total.text_content().replace("\u2212", "-"))
        assert value == pytest.approx(samples.values[:, sample].max(), rel=0.01, abs=0.01)
    active = page.locator(f"#{chosen.get_attribute('aria-activedescendant')}")
    assert active.get_attribute("aria-selected") == "true"
    page.locator("#sample-function").select_option("0")
    value = float(total.text_content().replace("\u2212", "-"))
    assert value == pytest.approx(samples.values[0, -1], rel=0.01, abs=0.01)
    page.locator("circle[data-sample]").first.scroll_into_view_if_needed()
    place = page.evaluate(UNCOVERED_DOT)
    page.mouse.click(place["x"], place["y"])
    assert f"Sample {samples.labels[place['sample']]}:" in heading.inner_text()
    assert opened.faults == []


def test_the_survival_curve_follows_the_picker(cases: Any, show: Any) -> None:
    """The curve drawn is that of the sample picked, step by step."""
    case = cases("survival")
    opened, samples = show(case), case.report.samples
    line = opened.page.locator("#sample-curve polyline")
    opened.page.locator("#sample-list").press("Home")
    for place in (0, 1):
        drawn = np.array([pair.split(",") for pair in line.get_attribute("points").split()], dtype=float)
        truth = case.model.predict_survival_function(case.X_test)[int(samples.labels[place][1:])]
        expected = truth(case.report.survival.baseline.x)
        np.testing.assert_allclose(1.12 * (1 - drawn[::2, 1] / 100) - 0.06, expected, atol=0.01)
        opened.page.locator("#sample-list").press("ArrowDown")
    assert opened.page.locator("#groups-figure polyline").count() == 3
    assert opened.faults == []


def test_features_of_a_sample_are_picked_by_its_id_or_a_dot(cases: Any, show: Any) -> None:
    case = cases("multiclass")
    opened, why = show(case), case.report.attributions
    page, found = opened.page, why.samples
    assert page.locator("#swarm-figure circle").count() == len(why.features) * len(found.labels)
    names, total = page.locator("#why-figure .label"), page.locator("#why-figure .total .value")
    page.locator("#why-list [role=option]", has_text=found.labels[3]).first.click()
    k = int(page.locator("#why-list").get_attribute("aria-activedescendant").split("-")[-1])
    for sample, act in ((k, None), (k + 1, "ArrowDown"), (0, "Home")):
        if act:
            page.locator("#why-list").press(act)
        assert f"Sample {found.labels[sample]}:" in page.locator("#why-sample-heading").inner_text()
        best = int(found.values[:, sample].argmax())
        value = float(total.text_content().replace("\u2212", "-"))
        assert value == pytest.approx(found.values[best, sample], rel=0.01, abs=0.01)
        order = abs(found.parts[best, sample, :-1]).argsort()[::-1]
        assert names.nth(1).text_content() == why.features[order[0]]
    page.locator("#swarm-figure").scroll_into_view_if_needed()
    place = page.evaluate(UNCOVERED_DOT.replace("data-sample", "data-why").replace(".sample)", ".why)"))
    page.mouse.click(place["x"], place["y"])
    assert f"Sample {found.labels[place['sample']]}:" in page.locator("#why-sample-heading").inner_text()
    assert opened.faults == []


def test_tables_sort_and_code_is_copied(cases: Any, show: Any) -> None:
    page = show(cases("binary"), permissions=["clipboard-read", "clipboard-write"]).page
    page.get_by_text("Weights as a table").click()
    column = page.locator("#weights-table tbody tr td:nth-child(2)")

    def values() -> list[float]:
        return column.evaluate_all("cells => cells.map((cell) => Number(cell.dataset.sort))")

    head = page.locator("#weights-table th button").nth(1)
    head.press("Enter")
    assert values() == sorted(values(), reverse=True)
    head.press("Enter")
    assert values() == sorted(values())
    page.get_by_role("button", name="Copy Python code").click()
    page.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == cases("binary").report.settings.code


@pytest.mark.parametrize("width", [1200, 390])
def test_a_curve_over_wavelengths_has_its_peak_where_the_target_is(cases: Any, show: Any, width: int) -> None:
    case = cases("spectra")
    opened = show(case, viewport={"width": width, "height": 900})
    page, why = opened.page, case.report.attributions
    tips = page.locator("#channel-figure circle").evaluate_all(
        "dots => dots.map(dot => [dot.getAttribute('data-tip'), dot.getBoundingClientRect().top])"
    )
    assert len(tips) == 40
    highest = min(tips, key=lambda tip: tip[1])[0].split(":")[0]
    assert highest == why.by_feature.names[int(why.by_feature.mean.argmax())] == "1340"
    labels = page.locator("#feature-figure .label").all_text_contents()
    assert labels == list(why.features[: len(labels)])
    assert set(labels[:3]) == {"1330", "1340", "1350"}
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    buttons = page.locator("figure:has(#feature-figure) button.download")
    assert [button.is_visible() for button in buttons.all()].count(True) == 1
    page.locator("figure:has(#feature-figure) details summary").first.click()
    assert [button.is_visible() for button in buttons.all()].count(True) == 2
    assert opened.faults == []


def test_columns_without_names_are_called_columns(cases: Any, show: Any) -> None:
    page = show(cases("multiclass")).page
    assert page.locator("#why-figure .label", has_text="column 0").count() >= 1
    for figure in ("feature-figure", "why-figure", "swarm-figure"):
        words = page.locator(f"#{figure}").text_content().split()
        assert not any(re.fullmatch(r"x\d+", word) for word in words)


def test_tables_and_figures_are_downloaded(cases: Any, show: Any) -> None:
    opened = show(cases("multiclass"))
    page = opened.page
    assert page.locator("button.download").count() == (
        page.locator("table.sortable").count() + page.locator("figure svg[role=img]").count()
    )
    with page.expect_download() as table:
        page.locator("button[aria-label='Download score-table.csv']").click()
    rows = list(csv.reader(Path(table.value.path()).read_text(encoding="utf-8").splitlines()))
    assert rows[0][0] == "Model"
    assert rows[1][0] == "this model"
    assert 0 <= float(rows[1][1]) <= 1
    with page.expect_download() as figure:
        page.locator("button[aria-label='Download roc-figure.svg']").click()
    drawn = ElementTree.fromstring(Path(figure.value.path()).read_text(encoding="utf-8"))
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert float(drawn.attrib["width"]) > 100
    assert any(
        line.get("stroke", "none") != "none" for line in drawn.iter("{http://www.w3.org/2000/svg}polyline")
    )
    assert opened.faults == []


def test_readable_without_scripts(cases: Any, show: Any) -> None:
    case = cases("binary")
    opened = show(case, java_script_enabled=False)
    page = opened.page
    assert [one.is_visible() for one in page.locator(".picker").all()] == [False, False]
    for section in page.locator("main section").all():
        assert section.is_visible()
        assert len(section.inner_text()) > 80
    for figure in page.locator("figure svg[role=img]").all():
        box = figure.bounding_box()
        assert figure.locator("xpath=ancestor::details").count() or (box and box["width"] > 0)
    page.get_by_text("The decomposition as a table").click()
    assert page.locator("#samples-table").is_visible()
    assert case.report.samples.labels[0] in page.locator("#samples-table").inner_text()


def test_everything_is_open_in_print(cases: Any, show: Any) -> None:
    page = show(cases("binary"), java_script_enabled=False).page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator("#weights-table tbody tr").first.is_visible()
    assert not page.locator("nav").is_visible()
    # white paper, whatever the screen prefers
    assert page.locator("body").evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize(("name", "scheme"), [("binary", "light"), ("regression", "dark")])
def test_axe_finds_nothing_serious(name: str, scheme: str, cases: Any, show: Any) -> None:
    opened = show(cases(name), color_scheme=scheme)
    opened.open_details()
    assert opened.axe_faults(rules=20) == []
