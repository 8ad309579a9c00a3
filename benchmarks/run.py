"""Run the benchmarks, keep what they find as JSON, and write the page of results.

    python benchmarks/run.py [--full] [--docs FOLDER] [NAME ...]

Without names: the benchopt suite (benchopt_mkl), bench_growth and, at small sizes, a few more; with
``--full`` all of them at the sizes of docs/results/benchmarks.md, which takes hours on two cores. FOLDER
(build/bench unless given) receives results/data/*.json, images and results/benchmarks.md; ``--docs docs``
makes the published page again. Ends with 1 if a benchmark failed or found a promise broken.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
SUITE, GROWTH = "benchopt_mkl", "bench_growth"

#: solvers of the suite, and the packages of those that are left out where these are not installed
SOLVERS = ["kernelweave", "kernelweave interleaved", "user loop closed form", "user loop cutting planes"]
RIVALS = {"MKLpy EasyMKL": "MKLpy", "himalaya hyper-gradient": "himalaya"}

#: scripts that use all cores
ALL_CORES = {"bench_on_the_fly", "bench_many_kernels", "bench_threads", "bench_low_rank", "bench_explain"}
#: scripts that draw
PLOTS = {"bench_low_rank"}

#: arguments at small sizes; what is not here is left out of them
SMALL = {
    "bench_import": [],
    "bench_end_to_end": ["500"],
    "bench_path": ["500"],
    "bench_engines": ["1000", "--repeats", "1"],
}


def call(command: list[str], threads: int = 1) -> subprocess.CompletedProcess[str]:
    """Run a command with so many threads, showing what it prints and keeping it."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    lines = []
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    return subprocess.CompletedProcess(command, process.wait(), "".join(lines))


def run_suite(docs: Path, full: bool) -> int:
    """`benchopt run`, its results as a parquet file and, summarised, as JSON."""
    config, table = HERE / SUITE / ("full.yml" if full else "small.yml"), docs / "benchopt_mkl.parquet"
    table.unlink(missing_ok=True)
    command = [sys.executable, "-m", "benchopt", "run", str(HERE / SUITE), "--config", str(config)]
    options = ["--no-cache", "--no-plot", "--no-display", "--output", str(table)]
    solvers = [option for solver in SOLVERS + rivals() for option in ("-s", solver)]
    done = call(command + options + solvers)
    if table.exists():
        write(docs, SUITE, page.summary_of(table))
    # benchopt goes on without a solver that failed
    return done.returncode or int(re.search(r"\|--.*(error|diverged)", done.stdout) is not None)


def rivals() -> list[str]:
    """The other packages that are installed."""
    for solver, package in RIVALS.items():
        if importlib.util.find_spec(package) is None:
            print(f"{solver} is left out: {package} is not installed")
    return [solver for solver, package in RIVALS.items() if importlib.util.find_spec(package)]


def run_growth(docs: Path, full: bool) -> int:
    """Its JSON and its plot lie side by side, among the images."""
    sizes = [] if full else ["--quick"]
    return call(
        [sys.executable, str(HERE / f"{GROWTH}.py"), *sizes, "--out", str(docs / "images")]
    ).returncode


def run_script(docs: Path, name: str, arguments: list[str]) -> int:
    """A script, and what it printed."""
    start = time.perf_counter()
    threads = os.cpu_count() if name in ALL_CORES else 1
    plot = ["--plot", str(docs / "images" / f"{name}.png")] if name in PLOTS else []
    done = call([sys.executable, str(HERE / f"{name}.py"), *arguments, *plot], threads or 1)
    kept = {"arguments": arguments, "output": done.stdout, "exit_code": done.returncode}
    write(docs, name, {**kept, "minutes": round((time.perf_counter() - start) / 60, 1)})
    return done.returncode


def write(docs: Path, name: str, result: dict) -> None:
    folder = docs / "results" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    result = {"cores": os.cpu_count(), **result}
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def chosen_names(names: list[str], full: bool) -> list[str]:
    """The benchmarks asked for, or all that there are at these sizes."""
    scripts = sorted(path.stem for path in HERE.glob("bench_*.py") if path.stem != GROWTH)
    known = [SUITE, GROWTH, *scripts]
    unknown = set(names) - set(known)
    if unknown:
        sys.exit(f"no benchmark named {', '.join(sorted(unknown))}: choose from {', '.join(known)}")
    return names or [name for name in known if full or name not in scripts or name in SMALL]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--docs", type=Path, default=Path("build/bench"))
    options = parser.parse_args()
    (options.docs / "images").mkdir(parents=True, exist_ok=True)
    special = {SUITE: run_suite, GROWTH: run_growth}
    failed = []
    for name in chosen_names(options.names, options.full):
        print(f"== {name}", flush=True)
        if name in special:
            code = special[name](options.docs, options.full)
        else:
            code = run_script(options.docs, name, [] if options.full else SMALL.get(name, []))
        failed += [name] if code else []
    print(f"\nwrote {page.write_page(options.docs)}")
    if failed:
        print(f"failed, or found a promise broken: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
