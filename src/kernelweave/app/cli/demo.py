"""``kernelweave demo``: a first look, on data that come with scikit-learn."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import _options as opt
from ._console import guarded, show

PLOT = Path("kernelweave-demo.png")


@guarded
def demo(
    out: Annotated[Path, typer.Option(help="Where to write the picture.", dir_okay=False)] = PLOT,
    seed: Annotated[int, typer.Option(help="Seed of the training samples.", min=0)] = 0,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Show when learning the weights of several views pays, and when it does not, on real data."""
    from ..demo import N_OTHERS, VIEWS, compare
    from ._facts import certificate_words
    from ._monitor import Monitor
    from ._output import weights_table

    show("Breast tumours, benign or malignant, from several views", style="bold")
    show(f"The views {', '.join(VIEWS)} are of the tumour; {N_OTHERS} others, shuffled, say nothing.\n")
    with Monitor(quiet) as monitor:
        monitor.stage("training on few tumours, testing on all others")
        many = compare(N_OTHERS, seed, lambda words, share: monitor.part(words, share / 2))
        few = compare(0, seed, lambda words, share: monitor.part(words, (1 + share) / 2))
    show(weights_table(many.model, 5))
    show(
        f"These are the weights of one model, learned from about {many.n_train} tumours. From so few, "
        "weights are noisy: shuffled views can get some by chance. Views that say much the same share a "
        "weight, or one of them takes it all: mean and worst are such a pair."
    )
    show(f"{certificate_words(many.model)}\n")
    _say(f"{len(many.views)} views, {N_OTHERS} of which say nothing", many)
    _say(f"The {len(few.views)} views of the tumour alone", few)
    show("To see which is the case for your data: kernelweave compare DATA.csv --target COLUMN")
    try:
        _draw(many, few, out)
    except ImportError as error:
        show(f"No picture: {error}")
        return
    show(f"Picture: {out}")


def _say(title: str, result: Any) -> None:
    from ..demo import MODELS, standard_error
    from ._output import screen_table

    rows = [
        (name, f"{scores.mean():.3f} ± {standard_error(scores):.3f}")
        for name, scores in zip(MODELS, result.accuracies.T, strict=True)
    ]
    rows.append(("gain", f"{result.gain:+.3f} ± {result.error:.3f}"))
    show(screen_table(title, ("model", "accuracy on held-out tumours"), rows))
    sets = f"{len(result.accuracies)} training sets of about {result.n_train} tumours each"
    show(f"{sets}, no tumour in two of them. {result.verdict}\n")


def _draw(many: Any, few: Any, out: Path) -> None:
    """The weights, and the accuracies with their standard errors."""
    from ...inspection import KernelWeightsDisplay
    from ...inspection._matplotlib import import_pyplot
    from ..demo import MODELS, standard_error

    plt = import_pyplot("kernelweave demo")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    KernelWeightsDisplay.from_estimator(many.model, ax=left)
    left.set_title("Which views matter")
    for j, name in enumerate(MODELS):
        scores = [result.accuracies[:, j] for result in (few, many)]
        bars = [standard_error(values) for values in scores]
        right.errorbar(
            [0, 1], [values.mean() for values in scores], bars, marker="os"[j], capsize=4, label=name
        )
    right.set_xticks(
        [0, 1], [f"{len(few.views)} views", f"{len(many.views)} views,\n{len(many.views) - 3} say nothing"]
    )
    right.set_xlim(-0.4, 1.4)
    right.set_ylabel("accuracy on held-out tumours")
    right.set_title("When learning the weights pays")
    right.legend()
    figure.savefig(out, dpi=150)
    plt.close(figure)
