"""Writes the API pages: every public name of every public module, in the groups of this file.

A name that no group holds appears under "More", and a module that has no page here gets one of its own, so
nothing public is left out. The pages go to docs/api and are not kept in version control.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

#: modules on one page, and the groups of their names; a page without groups lists names in their own order
PAGES: dict[str, tuple[tuple[str, ...], dict[str, tuple[str, ...]]]] = {
    "estimators": (
        ("estimators",),
        {
            "Weighted sums of kernels": ("MKLClassifier", "MKLRegressor", "MKLOneClass"),
            "The same, cross-validated": ("MKLClassifierCV", "MKLRegressorCV", "mkl_path", "Path"),
            "Kernels chosen one after another": (
                "GroupOMPClassifier",
                "GroupOMPRegressor",
                "GroupOMPClassifierCV",
                "GroupOMPRegressorCV",
            ),
            "The kernel itself learned": ("GMKLClassifier", "GMKLRegressor", "GMKLOneClass"),
            "Weights by evidence": ("EmpiricalBayesClassifier", "EmpiricalBayesRegressor"),
            "Several tables": ("ViewTransformer",),
        },
    ),
    "regularizers": (
        ("regularizers",),
        {
            "Norms and prices of the weights": (
                "LpNorm",
                "Uniform",
                "ElasticNet",
                "BlockNorm",
                "Mahalanobis",
                "Wedge",
            ),
            "Concave terms, which add with +": (
                "SMKL",
                "LogTerm",
                "GroupLassoTerm",
                "MFocussTerm",
                "MKLTerm",
                "ConcaveTerm",
                "TermSum",
            ),
            "Functions of your own": ("FromPrice", "FromBlockNorm", "price_of", "block_norm_of"),
            "Foundations": ("Regularizer", "TwoForms", "REGULARIZERS", "equivalent_cost"),
        },
    ),
    "kernels": (
        ("kernels",),
        {
            "Numbers": ("Linear", "Polynomial", "RBF", "Laplacian", "Matern", "Constant"),
            "Histograms, counts and fingerprints": (
                "Chi2",
                "HistogramIntersection",
                "SpatialPyramid",
                "Tanimoto",
            ),
            "Strings": ("Spectrum", "WeightedDegree"),
            "Matrices and functions": ("Precomputed", "FunctionKernel", "GPKernel", "check_gram"),
            "Tasks": ("TaskKernel", "per_task"),
            "Several tables": ("Views", "as_views"),
            "Dictionaries of kernels": (
                "auto",
                "bands",
                "bandwidths",
                "from_gmt",
                "GeneSets",
                "per_feature",
                "per_group",
                "random_subsets",
                "Family",
            ),
            "Combinations": ("Sum", "Product", "Scaled"),
            "Kernels with learned parameters": (
                "ProductRBF",
                "GroupProductRBF",
                "ProjectedRBF",
                "MetricRBF",
                "PowerSum",
                "ExpSum",
                "WeightedSum",
                "ProductOf",
                "AutogradKernel",
                "ParametricKernel",
            ),
            "Normalisation": ("NORMALIZATIONS", "Dimension", "Normalization", "resolve_normalization"),
            "What kernels are functions of": (
                "SquaredEuclidean",
                "Euclidean",
                "Manhattan",
                "InnerProduct",
                "ChiSquared",
                "Intersection",
                "Base",
            ),
            "Foundations": ("Kernel", "KERNELS", "as_kernel", "resolve_kernels"),
        },
    ),
    "losses": (
        ("losses",),
        {
            "Classification": ("Hinge", "SquaredHinge", "Logistic", "MulticlassHinge"),
            "Regression": ("Squared", "EpsInsensitive", "Huber"),
            "One class": ("OneClass",),
            "Order": ("Ranking",),
            "Foundations": ("Loss", "JointLoss", "LOSSES"),
        },
    ),
    "gram": (
        ("gram", "gram.lowrank"),
        {
            "Engines": ("DenseGram", "PackedGram", "CachedGram", "StoreGram", "BlockedGram", "Gram", "GRAMS"),
            "Matrices you bring": ("KernelStack", "GramStore"),
            "Data read in pieces": ("ParquetTable",),
            "How kernels become features": ("Nystroem", "RandomFourier", "Approximation", "APPROXIMATIONS"),
            "Kernels of low rank": ("LowRankGram", "FactoredMatrix", "StoredFactors", "ComputedFactors"),
        },
    ),
    "metrics": (
        ("metrics",),
        {
            "Order of risks": ("concordance_harrell", "concordance_uno", "concordance_jackknife"),
            "Errors of survival curves": ("integrated_brier", "brier_scores"),
            "Curves of groups": ("kaplan_meier", "log_rank", "LogRank"),
            "In searches": ("SurvivalScorer",),
        },
    ),
    "dask": (("dask",), {"On a cluster": ("DaskGram", "find_client")}),
    "solvers": (
        (
            "solvers",
            "solvers.multiple",
            "solvers.single",
            "solvers.greedy",
            "solvers.kernel_gradient",
        ),
        {
            "Problem and certificate": (
                "Problem",
                "certificate",
                "Certificate",
                "best_intercept",
                "leave_one_out",
            ),
            "Weights and machine": (
                "NewtonWeights",
                "JointAscent",
                "MajorizeMinimize",
                "Alternating",
                "MKL_SOLVERS",
                "choose_solver",
            ),
            "Methods to compare with": ("Interleaved", "CuttingPlanes", "QCQP"),
            "One kernel": (
                "LeastSquares",
                "SMO",
                "Newton",
                "PrimalNewton",
                "BlockDescent",
                "SingleSolver",
                "Machine",
                "SINGLE_SOLVERS",
                "choose_single",
                "machine_gap",
            ),
            "Penalties and constraints of a learned kernel": (
                "L1",
                "L2",
                "Prior",
                "PowerNorm",
                "LogDet",
                "FunctionPenalty",
                "PenaltySum",
                "Box",
                "Projection",
                "PENALTIES",
            ),
        },
    ),
    "theory": (
        ("theory",),
        {
            "What to try first": ("suggest", "Suggestion"),
            "Alignment": ("pairwise_alignment", "target_alignment", "effective_number"),
            "Bounds": (
                "empirical_complexity",
                "lp_complexity",
                "norm_complexity",
                "lp_risk_bound",
                "radius_margin_bound",
                "conversion_factor",
                "greedy_complexity",
                "greedy_risk_bound",
            ),
            "Recovery": ("recovery_coefficient", "Recovery"),
            "What the answers are made of": ("Finding", "Assumption"),
        },
    ),
}

INDEX = """API
===

Every public object, by module. Estimators and regularisers are offered by the package itself, as in
``kw.MKLClassifier``; the rest by their module, as in ``kernelweave.kernels.RBF``.

.. toctree::
   :maxdepth: 1

"""


def public_modules() -> list[str]:
    """The modules that the package lists, and those of its solvers."""
    import kernelweave

    modules = [name for name in kernelweave.__all__ if isinstance(getattr(kernelweave, name), ModuleType)]
    parts = (*PAGES["gram"][0], *PAGES["solvers"][0])
    return [*modules, *(name for name in parts if "." in name)]


def public_names(module: str) -> list[str]:
    """Where each public name of a module is documented: at the top of the package if it is offered there."""
    import kernelweave

    loaded = import_module(f"kernelweave.{module}")
    names = [name for name in loaded.__all__ if not isinstance(getattr(loaded, name), ModuleType)]
    return [
        f"kernelweave.{name}" if name in kernelweave.__all__ else f"kernelweave.{module}.{name}"
        for name in names
    ]


def pages() -> dict[str, list[tuple[str, list[str]]]]:
    """Page -> its groups: a heading and the full names under it."""
    modules = public_modules()
    listed = {module for members, _ in PAGES.values() for module in members}
    layout = {page: (members, groups) for page, (members, groups) in PAGES.items()}
    layout |= {module: ((module,), {}) for module in modules if module not in listed}
    found = {page: _grouped(members, groups) for page, (members, groups) in layout.items()}
    rest = _left_over(found)
    return found | ({"kernelweave": [("", rest)]} if rest else {})


def _grouped(members: tuple[str, ...], groups: dict[str, tuple[str, ...]]) -> list[tuple[str, list[str]]]:
    names = list(dict.fromkeys(name for module in members for name in public_names(module)))
    by_short = {name.rpartition(".")[2]: name for name in reversed(names)}
    unknown = [short for group in groups.values() for short in group if short not in by_short]
    if unknown:
        raise ValueError(f"docs/_ext/api_pages.py lists names that are not public: {', '.join(unknown)}.")
    parts = [(heading, [by_short[short] for short in group]) for heading, group in groups.items()]
    rest = sorted(set(names) - {name for _, group in parts for name in group})
    return [*parts, ("More" if parts else "", rest)] if rest else parts


def _left_over(found: dict[str, list[tuple[str, list[str]]]]) -> list[str]:
    """Names of the package itself that no module's page has."""
    import kernelweave

    listed = {name for groups in found.values() for _, group in groups for name in group}
    own = [f"kernelweave.{name}" for name in kernelweave.__all__ if not name.startswith("__")]
    return [name for name in own if name not in listed and not isinstance(_object(name), ModuleType)]


def _object(name: str) -> Any:
    module, _, short = name.rpartition(".")
    return getattr(import_module(module), short)


def page_text(page: str, groups: list[tuple[str, list[str]]]) -> str:
    """An API page as reStructuredText."""
    module = "kernelweave" if page == "kernelweave" else f"kernelweave.{page}"
    about = (inspect.getdoc(import_module(module)) or "").partition("\n\n")[0]
    lines = [module, "=" * len(module), "", about, ""]
    for heading, names in groups:
        lines += [heading, "-" * len(heading), ""] if heading else []
        lines += [".. autosummary::", "   :toctree: generated", "   :nosignatures:", ""]
        lines += [f"   ~{name}" for name in names] + [""]
    return "\n".join(lines)


def write(folder: Path) -> list[Path]:
    """Write the pages, leaving alone those that have not changed, and return them."""
    folder.mkdir(exist_ok=True)
    found = pages()
    texts = {page: page_text(page, groups) for page, groups in found.items()}
    texts["index"] = INDEX + "".join(f"   {page}\n" for page in found)
    for page, text in texts.items():
        target = folder / f"{page}.rst"
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            target.write_text(text, encoding="utf-8")
    return [folder / f"{page}.rst" for page in texts]


def _on_start(app: Any, config: Any) -> None:
    # named one by one: a build that continues an earlier one would not look for new pages
    config.autosummary_generate = [str(path) for path in write(Path(app.srcdir) / "api")]


def setup(app: Any) -> dict[str, bool]:
    """Run before Sphinx looks for pages."""
    app.connect("config-inited", _on_start)
    return {"parallel_read_safe": True}
