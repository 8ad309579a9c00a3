"""The documentation: links lead somewhere, code runs, commands exist, every public name has its place."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote, urlsplit

import pytest

import kernelweave as kw
from kernelweave.kernels.parametric import PARAMETRIC_KERNELS
from kernelweave.losses import LOSSES
from kernelweave.regularizers import REGULARIZERS
from kernelweave.solvers.multiple import MKL_SOLVERS

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
EXTENDING = DOCS / "extending"
BUILT = {DOCS / "api", DOCS / "gallery"}  # written when the documentation is built

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if not BUILT & set(page.parents)),
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

#: opening fence, information, options, code: fences nest by their length
FENCE = re.compile(r"^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=fence)[ \t]*$", re.M | re.S)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Language and content of the code blocks of a page, captions and other options included."""
    for match in FENCE.finditer(text_of(page)):
        info = match["info"].strip().replace("{code-block}", "").strip()
        if not info.startswith("{"):
            yield info, match["code"]


def prose(page: Path) -> str:
    """A page without its code."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text_of(page)))


def links(page: Path) -> Iterator[str]:
    """Targets of links, pictures, cards and included files."""
    for match in re.finditer(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s[^)]*)?\)", prose(page)):
        yield match[1]
    for match in re.finditer(r"^`*\{(?:image|figure|literalinclude|include)\} (\S+)$", text_of(page), re.M):
        yield match[1]
    for match in re.finditer(r"^:link: (\S+)\n:link-type: (doc|ref)$", text_of(page), re.M):
        yield f"{match[1]}.md" if match[2] == "doc" else f"#{match[1]}"


def anchors(page: Path) -> set[str]:
    """Headings as links name them, and labels."""
    text = FENCE.sub("", text_of(page))
    headings, labels = re.findall(r"^#+ (.+)$", text, re.M), re.findall(r"^\((\S+)\)=$", text, re.M)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(labels)


# -- links -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    broken = []
    for link in links(page):
        parts = urlsplit(link)
        target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
        if parts.scheme or BUILT & {target, *target.parents}:
            continue
        if not target.exists() or (parts.fragment and parts.fragment not in anchors(target)):
            broken.append(link)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_addresses_are_well_formed(page):
    """The network is not asked: only the form of an address is checked, and that it is not this machine's."""
    for address in [link for link in links(page) if urlsplit(link).scheme]:
        parts = urlsplit(address)
        assert parts.scheme in {"https", "mailto"}, address
        assert parts.scheme == "mailto" or re.fullmatch(r"[a-z0-9.-]+\.[a-z]{2,}", parts.netloc), address


def test_every_page_is_in_a_list_of_pages():
    listed = "\n".join(text_of(page) for page in PAGES if "{toctree}" in text_of(page))
    for page in PAGES[2:]:
        relative = page.relative_to(DOCS).with_suffix("")
        by_folder = relative.parent.name in {"guide", "results"}  # their index lists what there is
        assert by_folder or page.stem in listed or str(relative) in listed or page == DOCS / "index.md"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_columns_of_tables_have_names(page):
    """Words: readers of screens say nothing of an empty cell, or of a formula alone."""
    lines = text_of(page).splitlines()
    for head, rule in itertools.pairwise(lines):
        if re.fullmatch(r"\|(?: ?:?-+:? ?\|)+", rule):
            cells = re.split(r"(?<!\\)\|", head)[1:-1]
            assert not [cell for cell in cells if re.fullmatch(r"\s*(?:\$[^$]*\$\s*)?", cell)], head


# -- code --------------------------------------------------------------------------------------------


def is_foreign(page: Path, code: str) -> bool:
    """The left side of "coming from": code of other libraries."""
    return page.parent.name == "coming_from" and ":caption: kernelweave" not in code


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_is_written_so_that_it_is_run(page):
    for language, code in blocks(page):
        if language in {"python", "pycon", "py"} and not is_foreign(page, code):
            assert ">>> " in code
            assert "+SKIP" not in code
            assert code.endswith("\n\n"), "an empty line has to end the last output of a block"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_is_in_no_other_block(page):
    """The guide says that every block of Python is run: none is called text."""
    statement = re.compile(r"^(?:import|from) \w+|\bkw\.\w+\(|\.fit\(", re.M)
    assert not [
        code for language, code in blocks(page) if language in {"text", ""} and statement.search(code)
    ]


def test_pages_that_need_an_optional_package_say_so():
    """Without it they are skipped; nothing else is."""
    stated = (DOCS / "conftest.py").read_text(encoding="utf-8").split("NEEDS = ")[1]
    needs = ast.literal_eval(stated.partition("\n")[0])
    imports = re.compile(r"^(?:>>>|\.\.\.) +(?:import|from) (torch|dask|distributed)\b", re.M)
    found = {
        page: {match[1] for _, code in blocks(page) for match in imports.finditer(code)} for page in PAGES
    }
    assert {page.name for page, packages in found.items() if packages} == set(needs)
    assert set(needs.values()) <= {"torch", "distributed"}


@pytest.mark.parametrize(
    ("family", "setting"),
    [("Mahalanobis", "alternating"), ("BlockNorm(q > 2)", "joint_ascent"), ("SMKL", "majorize")],
)
def test_the_table_of_solvers_says_what_auto_chooses(family, setting):
    rows = [line for line in text_of(DOCS / "guide" / "scaling.md").splitlines() if line.startswith('| `"')]
    assert [row for row in rows if f"`{family}`" in row] == [row for row in rows if f'`"{setting}' in row]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_languages_are_known(page):
    known = {"python", "bash", "text", "", "mermaid", "matlab", "toml", "json", "csv"}
    assert {language for language, _ in blocks(page)} <= known


def test_pages_with_code_are_collected():
    paths = PYPROJECT["tool"]["pytest"]["ini_options"]["testpaths"]
    assert {"docs", "README.md"} <= set(paths)
    ignored = (DOCS / "conftest.py").read_text(encoding="utf-8").split("collect_ignore_glob = ")[1]
    for pattern in ast.literal_eval(ignored.partition("\n")[0]):
        assert not [path for path in DOCS.glob(pattern) if path in PAGES]


def commands(page: Path) -> Iterator[list[str]]:
    """Command lines of a page, as words; lines that end in a backslash go on."""
    for language, code in blocks(page):
        if language in {"bash", ""}:
            for line in code.replace("\\\n", " ").splitlines():
                words = shlex.split(line.removeprefix("$ "), comments=True)
                while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                    words = words[1:]
                if words and words[0] in CHECKS:
                    yield words
                else:
                    assert language == "" or not words, f"{page.name}: nothing checks `{line}`"


def check_kernelweave(words: list[str]) -> None:
    """The command exists, and so do its options; it gets as many arguments as it takes."""
    import typer

    from kernelweave.app.cli import app

    command = typer.main.get_command(app)
    rest = words[1:]
    if rest and not rest[0].startswith("-"):
        command, rest = command.commands[rest[0]], rest[1:]
    options = {
        name: p for p in command.params for name in (*p.opts, *p.secondary_opts) if name.startswith("-")
    }
    arguments, given = [p for p in command.params if p.param_type_name == "argument"], []
    while rest:
        word, rest = rest[0], rest[1:]
        if not word.startswith("-"):
            given.append(word)
            continue
        option, _, value = word.partition("=")
        assert option in {*options, "--help"}, f"{option} is no option of `{shlex.join(words)}`"
        takes = option in options and not options[option].is_flag and not value
        rest = rest[1:] if takes else rest
    most = float("inf") if any(p.nargs < 0 for p in arguments) else len(arguments)
    assert sum(p.required for p in arguments) <= len(given) <= most


def check_make(words: list[str]) -> None:
    makefile = text_of(ROOT / "Makefile")
    for word in words[1:]:
        assert "=" in word or re.search(rf"^{word}:.*## ", makefile, re.M), f"no target {word!r}"


def check_pip(words: list[str]) -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    for word in words:
        for extra in re.findall(r"\[([\w,]+)\]$", word):
            assert set(extra.split(",")) <= set(extras)


def check_paths(words: list[str]) -> None:
    for word in words[1:]:
        if re.match(r"(tests|docs|src|examples|benchmarks|experiments)/", word):
            assert (ROOT / word).exists(), word


CHECKS = {
    "kernelweave": check_kernelweave,
    "make": check_make,
    "pip": check_pip,
    "pytest": check_paths,
    "python": check_paths,
    ".ci/run": lambda words: check_paths(["", *words]),
}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_command_lines_exist(page):
    for words in commands(page):
        CHECKS[words[0]](words)


# -- API ---------------------------------------------------------------------------------------------


@pytest.fixture
def extensions(monkeypatch):
    """The Sphinx extensions of docs/_ext can be imported."""
    monkeypatch.syspath_prepend(DOCS / "_ext")


def defined_at(module: ModuleType) -> dict[str, object]:
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for name in module.__all__
        if not name.startswith("__") and not isinstance(getattr(module, name), ModuleType)
    }


def test_every_public_name_is_on_an_api_page(extensions):
    listed = [
        name
        for groups in import_module("api_pages").pages().values()
        for _, group in groups
        for name in group
    ]
    shown = {id(import_module("api_pages")._object(name)) for name in listed}
    modules = [kw, *(getattr(kw, name) for name in kw.__all__ if isinstance(getattr(kw, name), ModuleType))]
    missing = [name for module in modules for name, obj in defined_at(module).items() if id(obj) not in shown]
    assert not missing
    assert len(listed) == len(set(listed)) > 100


def test_formulas_in_docstrings_survive(extensions):
    converted = import_module("plain_text_formulas").converted
    text = ["V*(y, v) = |v| of `a*b`, see weights_.", "", "    h(d) = sum_m d_m", "", "* ``x_``: a*b"]
    assert converted(text) == [
        r"V\*(y, v) = \|v\| of `a*b`, see weights\_.",
        "",
        "::",
        "",
        "    h(d) = sum_m d_m",
        "",
        r"* ``x_``: a\*b",
    ]
    sections = [
        "Parameters",
        "----------",
        "tol_ : float",
        "    Of |x|.",
        "",
        "Examples",
        "--------",
        ">>> 2 * 3",
    ]
    assert converted(sections)[2:4] == ["tol_ : float", r"    Of \|x\|."]
    assert converted(sections)[-1] == ">>> 2 * 3"


def test_lists_of_pages_name_what_there_is(extensions, tmp_path):
    pytest.importorskip("sphinx", reason="the tests do without Sphinx")
    for name in ("index", "a", "b", "c"):
        (tmp_path / f"{name}.md").touch()
    text = "```{toctree}\n:caption: One\n\na\nnot_yet\n```\n\n```{toctree}\n\n*\n```\n"
    filled = import_module("page_tools").with_present_pages(text, tmp_path)
    assert filled == "```{toctree}\n:caption: One\n\na\n```\n\n```{toctree}\n\nb\nc\n```\n"


def entry(cls: type, name: str) -> str:
    """What the docstring of a class says of a parameter."""
    match = re.search(rf"^{name} : .*?(?=^\S|\Z)", inspect.cleandoc(cls.__doc__ or ""), re.M | re.S)
    assert match, f"{cls.__name__} does not document {name}"
    return match[0]


@pytest.mark.parametrize(
    ("cls", "tasks"),
    [
        (kw.MKLClassifier, {"classification", "regression"}),
        (kw.MKLRegressor, {"regression", "ranking"}),
        (kw.MKLOneClass, {"one_class"}),
    ],
)
def test_docstrings_name_every_registered_part(cls, tasks):
    losses = {name for name, loss in LOSSES.items() if loss.task in tasks}
    parts = {"loss": losses, "regularizer": set(REGULARIZERS), "solver": {"auto", *MKL_SOLVERS}}
    for parameter, known in parts.items():
        assert set(re.findall('"(\\w+)"', entry(cls, parameter))) == known


def test_docstrings_of_generalized_mkl_name_every_registered_part():
    losses = {name for name, loss in LOSSES.items() if loss.task in {"classification", "regression"}}
    assert set(re.findall('"(\\w+)"', entry(kw.GMKLClassifier, "loss"))) == losses
    kernels = set(re.findall('"(\\w+)"', entry(kw.GMKLClassifier, "kernel")))
    assert kernels == set(PARAMETRIC_KERNELS)


# -- gallery -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_an_example_is_one_figure_offline(example):
    code = text_of(example)
    title, underline = (ast.get_docstring(ast.parse(code)) or "").splitlines()[:2]
    assert example.name.startswith("plot_")
    assert underline == "=" * len(title)
    assert code.count("plt.show()") == 1
    assert code.count("plt.subplots(") <= 1
    assert not re.search(r"fetch_|urlopen|requests|savefig|open\(", code)


# -- the "add a ..." pages ---------------------------------------------------------------------------

PARTS = ["pinball", "berhu", "cauchy", "mapped", "conjugate_gradient", "quantile"]


@pytest.mark.parametrize("part", PARTS)
def test_a_worked_file_is_short_and_shown_on_a_page(part):
    lines = text_of(EXTENDING / f"{part}.py").splitlines()
    assert len(lines) <= 80
    page = next(page for page in EXTENDING.glob("*.md") if f"{{literalinclude}} {part}.py" in text_of(page))
    example = next(node for node in ast.parse("\n".join(lines)).body if isinstance(node, ast.ClassDef))
    assert ">>>" in ast.get_docstring(example)
    assert re.search(rf"^>>> check_\w+\({example.name}\b", text_of(page), re.M), (
        "the page checks what it shows"
    )
