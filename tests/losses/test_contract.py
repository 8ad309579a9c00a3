"""Every registered loss, some at more than one parameter, has the properties of `kernelweave.testing`."""

from __future__ import annotations

import pytest
from sklearn.base import clone

from kernelweave.losses import LOSSES, EpsInsensitive, Huber, Loss, MulticlassHinge, Squared
from kernelweave.testing import check_loss
from kernelweave.testing.losses import contract, coupled_contract

from ..targets import SEPARABLE

LOSSES_TO_CHECK = [
    *(cls() for cls in SEPARABLE.values()),
    EpsInsensitive(eps=0.0),
    EpsInsensitive(eps=0.6),
    Huber(delta=0.3),
]


@pytest.mark.parametrize("loss", LOSSES_TO_CHECK, ids=repr)
@pytest.mark.parametrize("promise", contract.promises, ids=lambda promise: promise.__name__)
def test_contract(loss, promise):
    promise(loss)


@pytest.mark.parametrize("promise", coupled_contract.promises, ids=lambda promise: promise.__name__)
def test_contract_of_coupled_outputs(promise):
    promise(MulticlassHinge())


class WrongConjugate(Squared):
    """V* without its linear term."""

    def conjugate(self, y, v):
        return 0.5 * v**2


class WrongBox(Huber):
    """Half as wide."""

    def dual_box(self, y):
        lower, upper = super().dual_box(y)
        return 0.5 * lower, 0.5 * upper


class WrongGradient(Huber):
    """The residual, however large."""

    def gradient(self, y, f):
        return f - y


class WrongSlopes(MulticlassHinge):
    """Off by a factor."""

    def gradient(self, y, f):
        return 2.0 * super().gradient(y, f)


class WrongCurvature(Squared):
    """Off by a factor."""

    def dual_curvature(self, y, a):
        return 2.0 * super().dual_curvature(y, a)


@pytest.mark.parametrize(
    ("loss", "title"),
    [
        (WrongConjugate(), "conjugate is the largest v f minus value"),
        (WrongBox(), "domain is the dual box"),
        (WrongGradient(), "gradient is a subgradient everywhere"),
        (WrongSlopes(), "convex with a subgradient everywhere"),
        (WrongCurvature(), "dual curvature is the second difference"),
    ],
    ids=repr,
)
def test_a_mistake_is_found_and_named(loss, title):
    with pytest.raises(AssertionError, match=f"^{type(loss).__name__}.* breaks the contract, {title}: "):
        check_loss(loss)


def test_changed_parameters_show():
    assert repr(Huber(delta=0.25)) == "Huber(delta=0.25)"
    assert clone(Huber()).set_params(delta=2.0).delta == 2.0


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_registry_gives_the_default_part(name):
    part = LOSSES.resolve(name, Loss)
    assert type(part) is LOSSES[name]
    assert part.name == name
    assert LOSSES.resolve(part, Loss) is part


def test_registry_names_the_choices():
    with pytest.raises(ValueError, match=r"loss='hing' is not a loss: pass one of .*, 'hinge', 'huber'"):
        LOSSES.resolve("hing", Loss)
