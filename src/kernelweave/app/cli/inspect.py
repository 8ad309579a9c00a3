"""``kernelweave inspect``: what is in a model file."""

from __future__ import annotations

from . import _options as opt
from ._errors import guarded
from ._paths import model_file

#: settings worth a line
SHOWN = ("command", "target", "task", "n_train", "n_test", "method", "kernels", "seconds", "interrupted")


@guarded
def inspect(model: opt.Model, as_json: opt.Json = False, debug: opt.Debug = False) -> None:
    """Show the weights, the certificate and the settings of a model."""
    model_file(model)
    from ._bundle import load_bundle
    from ._console import out, print_json
    from ._encode import features_of
    from ._facts import certificate, certificate_words, top_kernels
    from ._gram_design import GramEncoder
    from ._summary import weights_listing

    bundle = load_bundle(model)
    estimator, settings = bundle.estimator, dict(bundle.settings)
    gram = isinstance(bundle.encoder, GramEncoder)
    columns = [bundle.encoder.names] if gram else features_of(bundle.encoder).values()
    if as_json:
        facts = {
            "weights": top_kernels(estimator),
            "certificate": certificate(estimator),
            "features": [name for names in columns for name in names],
        }
        for name in ("columns", "training_rows"):
            settings.pop(name, None)
        print_json({"estimator": type(estimator).__name__, **facts, "settings": settings})
        return
    screen = out()
    screen.print(f"{type(estimator).__name__} in {bundle.path}", markup=False, highlight=False, style="bold")
    screen.print(weights_listing(estimator))
    screen.print(certificate_words(estimator), markup=False, highlight=False)
    for name in SHOWN:
        if settings.get(name) not in (None, [], ""):
            screen.print(f"{name.replace('_', ' ')}: {settings[name]}", markup=False, highlight=False)
    scores = settings.get("scores") or {}
    for name, value in scores.items():
        where = settings.get("scored_on", "")
        screen.print(f"{name} on the {where}: {value:.4g}", markup=False, highlight=False)
    made = ", ".join(f"{name} {number}" for name, number in settings.get("versions", {}).items())
    screen.print(f"made with: {made}", markup=False, highlight=False)
