"""What is said of the package in several files is the same in all of them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import kernelweave as kw

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def jobs(workflow: Path) -> Iterator[dict[str, Any]]:
    yield from load(workflow)["jobs"].values()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_run_targets_that_exist(workflow: Path) -> None:
    content = load(workflow)
    assert content.keys() == {"name", True, "permissions", "jobs"} | (content.keys() & {"concurrency"})
    for job in jobs(workflow):
        assert "runs-on" in job
        for step in job["steps"]:
            assert ("run" in step) != ("uses" in step)
            assert set(re.findall(r"\bmake ([a-z-]+)", step.get("run", ""))) <= TARGETS
            assert re.fullmatch(r"[\w-]+/[\w.-]+@[\w./]+", step.get("uses", "a/b@v1"))
        assert set(job.get("needs", "").split()) <= load(workflow)["jobs"].keys()


def test_what_is_promised_to_run_is_run() -> None:
    """Systems and versions of Python; `.ci/run` runs targets that exist."""
    (systems,) = (job for path in WORKFLOWS for name, job in load(path)["jobs"].items() if name == "systems")
    matrix = systems["strategy"]["matrix"]
    named = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert set(matrix["python"]) == named
    assert PROJECT["requires-python"] == ">=" + min(named, key=lambda name: int(name.partition(".")[2]))
    assert {row["os"] for row in matrix["include"]} | set(matrix["os"]) == {
        f"{system}-latest" for system in ("ubuntu", "macos", "windows")
    }
    steps = set(re.findall(r"\bstep ([a-z-]+)", (ROOT / ".ci" / "run").read_text(encoding="utf-8")))
    assert {"test", "test-wheel", "test-minimum"} <= steps <= TARGETS


def test_the_recipe_asks_for_what_the_package_asks_for() -> None:
    text = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    run = re.search(r"^  run:\n((?:    - .*\n)+)", text, re.M)
    assert run is not None
    asked = {line.strip("- ").replace(" ", "") for line in run[1].splitlines()}
    assert asked == {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert "_version.py" in text
    assert kw.__version__ not in text


def test_the_citation_names_this_version() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert citation["version"] == kw.__version__
    assert {"cff-version", "message", "title", "authors", "license"} <= citation.keys()
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[(Unreleased|{re.escape(kw.__version__)})\]", changes, re.M)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_forms_are_complete(template: Path) -> None:
    form = load(template)
    if template.name != "config.yml":
        assert form["name"]
        assert form["description"]
        assert [field["attributes"]["label"] for field in form["body"]]
        assert len({field["id"] for field in form["body"]}) == len(form["body"])
