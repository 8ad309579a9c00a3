"""Write results/benchmarks.md of a docs folder from the JSON results in it.

python benchmarks/page.py [DOCS]
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
WANTED = 1e-3
NORM_NAMES = {1.0: "1", 1.333: "4/3", 2.0: "2", 4.0: "4"}

INTRODUCTION = """\
# Benchmarks

<!-- Written by benchmarks/page.py from the JSON files in data/ and ../images/: edit those, or the script. -->

Measured on a machine with {cores}, one thread unless a table says otherwise, best of a few runs. Seconds are
those of that machine; ratios and exponents carry further.

```
make bench              # small sizes, a few minutes: results in build/bench
make bench BENCH=full   # the sizes of this page, and every benchmarks/bench_*.py: hours
python benchmarks/run.py --full --docs docs bench_gomp     # one of them, and this page again
```

Real data are read from the folder `KERNELWEAVE_DATA`; what needs a file that is not there is left out and
says so.
"""

SUITE_TEXT = """\
## lp-norm MKL to a certified gap

A [benchopt](https://benchopt.github.io) benchmark, `benchmarks/benchopt_mkl`: hinge loss, C = 1, matrices in
memory. Every solver returns dual variables and weights, and the relative duality gap is computed from them,
by the same function for all. The tables give the seconds to a gap of 1e-3 or, where that was not reached, the
best gap and the seconds it took. "User loops" are what one would write around scikit-learn's `SVC`: weights
in closed form for p > 1, a linear program over cuts for p = 1. MKLpy and himalaya solve other problems: their
weights, scaled onto the lp ball, with the support vector machine trained at them, are what is certified.
"""

GROWTH_TEXT = """\
## Growth with samples and kernels

`benchmarks/bench_growth.py`, {data}: processor seconds of the optimisation alone, to a certified gap of 1e-3.

![time of a fit against samples and kernels](../images/bench_growth.png)
"""


def summary_of(table: Path) -> dict[str, Any]:
    """The curves of a benchopt run: for every stopping value the best time of its repetitions."""
    import pandas as pd

    frame = pd.read_parquet(table)
    keys = ["dataset_name", "p_dataset_n_samples", "p_dataset_n_kernels", "p_obj_p", "solver_name"]
    curves = []
    for (dataset, n, n_kernels, p, solver), part in frame.groupby(keys, sort=False):
        best = part.loc[part.groupby("stop_val", sort=False)["time"].idxmin()]
        points = [
            {"seconds": float(t), "gap": float(g)}
            for t, g in zip(best["time"], best["objective_gap"], strict=True)
        ]
        name = str(dataset).partition("[")[0]
        curves.append(
            {
                "data": name,
                "n": int(n),
                "M": int(n_kernels),
                "p": float(p),
                "solver": solver,
                "points": points,
            }
        )
    return {"curves": curves}


def cell(points: list[dict[str, float]]) -> str:
    """Seconds to the wanted gap, which ends a curve, or how near it came."""
    if points[-1]["gap"] <= WANTED:
        return f"{points[-1]['seconds']:.3g} s"
    best = min(points, key=lambda point: point["gap"])
    return f"gap {best['gap']:.1g} in {best['seconds']:.2g} s"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def problems(curves: list[dict[str, Any]]) -> list[tuple[str, int, int]]:
    return list(dict.fromkeys((curve["data"], curve["n"], curve["M"]) for curve in curves))


def of_problem(curves: list[dict[str, Any]], problem: tuple[str, int, int]) -> dict[tuple[str, str], Any]:
    """Points by solver and norm: kernelweave first, then the user's loops."""
    chosen = [curve for curve in curves if (curve["data"], curve["n"], curve["M"]) == problem]
    chosen.sort(key=lambda curve: [not curve["solver"].startswith(own) for own in ("kernelweave", "user")])
    return {(curve["solver"], norm_name(curve["p"])): curve["points"] for curve in chosen}


def norm_name(p: float) -> str:
    return NORM_NAMES.get(round(p, 3), f"{p:.3g}")


def suite_section(result: dict[str, Any], docs: Path) -> str:
    text = [SUITE_TEXT]
    for problem in problems(result["curves"]):
        cells = of_problem(result["curves"], problem)
        norms = list(dict.fromkeys(norm for _, norm in cells))
        solvers = list(dict.fromkeys(solver for solver, _ in cells))
        rows = [[s, *(cell(cells[s, p]) if (s, p) in cells else "" for p in norms)] for s in solvers]
        text.append("**{}, n = {:,}, {} kernels**\n".format(*problem))
        text.append(table(["solver", *(f"p = {p}" for p in norms)], rows) + "\n")
    if draw_suite(result["curves"], docs / "images" / "bench_mkl.png"):
        text.append("![certified gap against time](../images/bench_mkl.png)\n")
    return "\n".join(text)


def draw_suite(curves: list[dict[str, Any]], path: Path) -> bool:
    """Gap against time on the last problem, one panel per norm; returns whether there is matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    cells = of_problem(curves, problems(curves)[-1])
    norms, solvers = list(dict.fromkeys(p for _, p in cells)), list(dict.fromkeys(s for s, _ in cells))
    figure = Figure(figsize=(3.2 * len(norms), 3.8), layout="constrained")
    for axes, norm in zip(figure.subplots(1, len(norms), sharey=True, squeeze=False)[0], norms, strict=True):
        for number, solver in enumerate(solvers):
            points = [point for point in cells.get((solver, norm), []) if point["seconds"] > 1e-4]
            x, y = [point["seconds"] for point in points], [point["gap"] for point in points]
            axes.loglog(x, y, ".-", color=f"C{number}", label=solver)
        axes.axhline(WANTED, color="k", linestyle=":")
        axes.set(xlabel="seconds", title=f"p = {norm}", ylim=(WANTED / 10, 2))
        axes.minorticks_off()
    figure.axes[0].set_ylabel("certified relative gap")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    figure.suptitle("{}, n = {:,}, {} kernels".format(*problems(curves)[-1]))
    figure.savefig(path, dpi=120)
    return True


def growth_section(result: dict[str, Any]) -> str:
    exponents = [
        [f["along"], f["p"], f"{f['exponent']:.2f}", f"{f['last_step']:.2f}", f"{f['promise']:g}"]
        for f in result["exponents"]
    ]
    points = [
        [f"{q['n']:,}", str(q["M"]), q["p"], f"{q['seconds']:.3f}", str(q["machines"]), f"{q['gap']:.0e}"]
        for q in result["points"]
    ]
    return "\n\n".join(
        [
            GROWTH_TEXT.format(data=result["data"]).rstrip(),
            table(["against", "p", "exponent", "of the last step", "promised at most"], exponents),
            table(["n", "M", "p", "seconds", "machines", "gap"], points) + "\n",
        ]
    )


def script_section(name: str, result: dict[str, Any], docs: Path) -> str:
    """First lines of the script's docstring, its picture if it has one, and what it printed."""
    documentation = ast.get_docstring(ast.parse((HERE / f"{name}.py").read_text())) or name
    title, _, rest = documentation.partition("\n\n")
    description = rest.partition("\n\n    python ")[0]
    command = " ".join(["python", f"benchmarks/{name}.py", *result["arguments"]])
    kept = "" if result["exit_code"] == 0 else "This run found a promise broken, or failed."
    printed = f"```text\n$ {command}\n{result['output'].rstrip()}\n```\n"
    drawn = (
        f"![{title.rstrip('.')}](../images/{name}.png)" if (docs / "images" / f"{name}.png").exists() else ""
    )
    parts = (f"## {title.rstrip('.')}", description, kept, drawn, printed)
    return "\n\n".join(part for part in parts if part)


def write_page(docs: Path) -> Path:
    """Write the page of everything that was found, and return its path."""
    results = {
        path.stem: json.loads(path.read_text()) for path in sorted((docs / "results" / "data").glob("*.json"))
    }
    cores = {1: "one core", 2: "two cores"}
    counts = sorted({result["cores"] for result in results.values() if result.get("cores")} or {0})
    text = [INTRODUCTION.format(cores=" or ".join(cores.get(count, f"{count} cores") for count in counts))]
    suite, growth = results.pop("benchopt_mkl", None), docs / "images" / "bench_growth.json"
    if suite:
        text.append(suite_section(suite, docs))
    if growth.exists():
        text.append(growth_section(json.loads(growth.read_text())))
    text += [script_section(name, result, docs) for name, result in results.items()]
    path = docs / "results" / "benchmarks.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text))
    return path


if __name__ == "__main__":
    print(write_page(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")))
