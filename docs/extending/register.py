"""The parts of this folder among the registered ones, as a plugin of pytest: -p register."""

from berhu import BerHu
from cauchy import Cauchy
from conjugate_gradient import ConjugateGradient
from mapped import MappedGram
from pinball import Pinball

from kernelweave.gram import GRAMS
from kernelweave.kernels import KERNELS
from kernelweave.losses import LOSSES
from kernelweave.regularizers import REGULARIZERS
from kernelweave.solvers.single import SINGLE_SOLVERS

LOSSES.add(Pinball)
REGULARIZERS.add(BerHu)
KERNELS.add(Cauchy)
GRAMS.add(MappedGram)
SINGLE_SOLVERS.add(ConjugateGradient)
