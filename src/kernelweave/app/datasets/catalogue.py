"""What the data sets are, whom to cite, and where they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from . import readers

RAW = "https://raw.githubusercontent.com"
VIEWS = f"{RAW}/ChuanbinZhang/Multi-view-datasets/03ead31e6538322e4e0701c3c28a01595c1a015d"
NIR = f"{RAW}/ryuzakyl/data-bloodhound/cc44914e827087925cd528d891f1af01be0cb00a/datasets"
MULTILOC = (
    f"{RAW}/KohlbacherLab/MultiLoc2/8c4b6f4cc5f43093787f87a04b6edfc4044e307b/MultiLoc2/data/datasets/multiloc"
)
UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"


@dataclass(frozen=True)
class Dataset:
    """A data set: what it is, and where it comes from.

    Parameters
    ----------
    name : str
        Name of the set, and of its file without ``.npz``.
    description : str
        What the samples and the targets are.
    citation : str
        Who made it.
    target : str, optional
        For sets with several targets, the one `load` predicts unless told otherwise.
    real : bool
        Whether samples are returned as float64; large sets keep the type they are stored in.
    openml : int, optional
        Data id on OpenML.
    urls : tuple of str
        Original addresses, where it is not OpenML.
    reader : callable, optional
        What makes arrays of what was downloaded; None for sets without a public address.
    sha256 : str
        Of samples and targets in single precision.

    Examples
    --------
    >>> Dataset("tiny", "two samples", "nobody").target is None
    True
    """

    name: str
    description: str
    citation: str
    target: str | None = None
    real: bool = True
    openml: int | None = None
    urls: tuple[str, ...] = ()
    reader: Callable[..., dict[str, np.ndarray]] | None = None
    sha256: str = ""


def names() -> list[str]:
    """Names of all data sets.

    Examples
    --------
    >>> from kernelweave.datasets import names
    >>> names()[:3]
    ['bbcsport', 'corn_nir', 'gasoline']
    """
    return sorted(_BY_NAME)


def info(name: str) -> Dataset:
    """What a data set is, whom to cite, where it comes from.

    Parameters
    ----------
    name : str
        One of `names()`.

    Examples
    --------
    >>> from kernelweave.datasets import info
    >>> info("tecator").target
    'fat'
    """
    if name not in _BY_NAME:
        raise ValueError(f"name={name!r} is not a data set; there are {', '.join(names())}.")
    return _BY_NAME[name]


_ALL = (
    Dataset(
        "ionosphere",
        "Radar returns, good (+1) or bad (-1): 351 samples, 34 features, of which the second is constant.",
        "Sigillito et al. 1989",
        urls=(f"{UCI}/ionosphere/ionosphere.data",),
        reader=readers.labelled("g"),
        sha256="c03c04bbfacd54f574bcc3e8d05b7aed93cb3224d14098f58adf1531643b14e9",
    ),
    Dataset(
        "sonar",
        "Sonar echoes of mines (+1) and rocks (-1): 208 samples, 60 frequency bands.",
        "Gorman & Sejnowski 1988",
        urls=(f"{UCI}/undocumented/connectionist-bench/sonar/sonar.all-data",),
        reader=readers.labelled("M"),
        sha256="daaa617df29cb486ed12376279101b33357bfd4e0fb77216f86f9217deda34f5",
    ),
    Dataset(
        "pima",
        "Diabetes (+1) or not (-1): 768 women, 8 measurements, missing values written as 0.",
        "Smith et al. 1988",
        openml=37,
        reader=readers.pima,
        sha256="170fdcca1bfd4afd568ece37608292dc8b2cdfd23640c813123cbe4d94933272",
    ),
    Dataset(
        "wpbc",
        "Breast cancer that recurs (+1) or does not (-1): the 194 complete cases, 33 features.",
        "Street, Mangasarian & Wolberg 1995",
        urls=(f"{UCI}/breast-cancer-wisconsin/wpbc.data",),
        reader=readers.wpbc,
        sha256="e7f0730e3401b69159c274c0e418c4eaf1c542c2891d18c9b1bda28381e8eb0b",
    ),
    Dataset(
        "liver",
        "BUPA liver disorders, 345 men, 6 measurements; y is the column `selector`, which papers predict "
        "although it marks a split of the data, not a diagnosis (McDermott & Forsyth 2016).",
        "Forsyth, BUPA Medical Research",
        urls=(f"{UCI}/liver-disorders/bupa.data",),
        reader=readers.labelled("2"),
        sha256="e3547136d864b65e7b3134b90f67de965bb4d4cb324dcf44005d14ec3d81238d",
    ),
    Dataset(
        "magic04",
        "Showers seen by a telescope, gamma (+1) or hadron (-1): 19020 samples, 10 features.",
        "Bock et al. 2004",
        urls=(f"{UCI}/magic/magic04.data",),
        reader=readers.labelled("g"),
        sha256="50a4451af1f9511c3504d14ab2617a1022936bf1790aeaf08fb192cceaee072a",
    ),
    Dataset(
        "spambase",
        "Mail, spam (+1) or not (-1): 4601 samples, 57 frequencies of words and characters.",
        "Hopkins et al. 1999",
        urls=(f"{UCI}/spambase/spambase.data",),
        reader=readers.labelled("1"),
        sha256="e6cc7d565cf7d3e4b316083f5833ee360f72c5f2a0b9f133897ab9196e785174",
    ),
    Dataset(
        "mushroom",
        "Mushrooms, poisonous (+1) or edible (-1): 8124 samples, 22 categories (X) or 117 "
        "indicators (X_onehot).",
        "Schlimmer 1987",
        urls=(f"{UCI}/mushroom/agaricus-lepiota.data",),
        reader=readers.mushroom,
        sha256="67e409e9acbbecc668211e3c545c3b5102737fb0a5e4d03e7e52232d3f96c268",
    ),
    Dataset(
        "mnist",
        "Handwritten digits, 28 x 28 pixels: 60000 to train (X, y), 10000 to test (X_test, y_test).",
        "LeCun et al. 1998",
        real=False,
        openml=554,
        reader=readers.mnist,
        sha256="14404c39b5ee7f308a9e9b0a229df85c65ae2b18d41017b770518a8c83eca581",
    ),
    Dataset(
        "indian_pines",
        "A hyperspectral image (AVIRIS 1992): 145 x 145 pixels, 200 bands, 16 classes of land, 10249 "
        "labelled pixels.",
        "Baumgardner, Biehl & Landgrebe 2015, doi:10.4231/R7RX991C",
        urls=(
            "http://www.ehu.eus/ccwintco/uploads/6/67/Indian_pines_corrected.mat",
            "http://www.ehu.eus/ccwintco/uploads/c/c4/Indian_pines_gt.mat",
        ),
        reader=readers.indian_pines,
        sha256="872200052f400267451fec1740ceae9a6ab560f8f6c62a6dae574ce9d9e917d6",
    ),
    Dataset(
        "ovarian_216x4000",
        "Mass spectra of serum, ovarian cancer (+1) or normal (-1): 216 samples, 4000 positions. It is not "
        "the set of 253 spectra of 15154 positions.",
        "Conrads et al. 2004",
        urls=(
            f"{RAW}/Giordi9902/Singular-Value-Decomposition-Principal-Component-Analysis/HEAD/scripts/"
            "ovariancancer.mat",
        ),
        reader=readers.ovarian,
        sha256="411fe3eedb8ace237adaaff92ba842e87a6a7dcab9116e6c301e1134d162fd68",
    ),
    Dataset(
        "swri_diesel",
        "Near-infrared spectra of diesel fuels, 750 to 1550 nm in 401 steps, with seven properties; the "
        "cetane number CN is known for 381 of 784.",
        "S. Hutzler, Southwest Research Institute",
        target="CN",
        urls=(f"{NIR}/nir_fuel/data/SWRI_Diesel_NIR.mat",),
        reader=readers.swri_diesel,
        sha256="92cc1a2c053fd9ea21202b03dc448bab707e4dbbf5926e7b734ca2d68b072cd5",
    ),
    Dataset(
        "gasoline",
        "Near-infrared spectra of 60 gasolines, 900 to 1700 nm in 401 steps, and their octane numbers.",
        "Kalivas 1997",
    ),
    Dataset(
        "corn_nir",
        "Near-infrared spectra of 80 samples of corn by three instruments, 1100 to 2498 nm in 700 steps, "
        "with moisture, oil, protein and starch.",
        "Cargill; eigenvector.com/data/Corn",
        target="Protein",
        urls=(f"{NIR}/nir_corn/data/corn.mat",),
        reader=readers.corn_nir,
        sha256="670f6fa2038ca6472c9b9ef766c8c1530e9d417307f17c71f3e3ac70a94b0d31",
    ),
    Dataset(
        "tecator",
        "Near-infrared spectra of 240 samples of meat by a Tecator Infratec analyser, 850 to 1050 nm in 100 "
        "steps, with moisture, fat and protein.",
        "Borggaard & Thodberg 1992",
        target="fat",
        openml=505,
        reader=readers.tecator,
        sha256="a61f1287083ef02a601ae3710705bfbcadae4699753d1f30b07e6d3fa2dd6841",
    ),
    Dataset(
        "nirsoil",
        "Near-infrared spectra of 825 soils, 1100 to 2498 nm in 700 steps, with nitrogen, carbon and cation "
        "exchange capacity.",
        "Fernandez Pierna & Dardenne 2008",
        target="Ciso",
    ),
    Dataset(
        "mfeat",
        "Handwritten digits seen six ways: 2000 samples, 200 per class; profile correlations, Fourier and "
        "Karhunen-Loeve coefficients, morphology, pixels, Zernike moments.",
        "van Breukelen, Duin et al. 1998",
        urls=(f"{VIEWS}/Handwritten.mat",),
        reader=readers.mfeat,
        sha256="f3b16e75b0a6cd08788b646b10ee58150c417ddae26d38185c699aa5241cb7e2",
    ),
    Dataset(
        "bbcsport",
        "Sports news in five classes, 544 articles, each cut in two segments of about 3200 terms.",
        "Greene & Cunningham 2006",
        urls=(f"{VIEWS}/BBCSport.mat",),
        reader=readers.views("seg1", "seg2"),
        sha256="4fa4720d32cea724c408655c47167eace1cf463e381bb2b7b33aaf7d084f463c",
    ),
    Dataset(
        "proteinfold_kpca27",
        "Proteins in 27 folds, 694 samples, 12 feature spaces, each as its 27 leading kernel principal "
        "components.",
        "Ding & Dubchak 2001; Damoulas & Girolami 2008",
        urls=(f"{VIEWS}/ProteinFold.mat",),
        reader=readers.views(*(f"k{m:02d}" for m in range(1, 13))),
        sha256="c844f00468964e91e4e9da79f449a995f080f95526f41e16955c37decf66abb4",
    ),
    Dataset(
        "rosmap_mogonet",
        "Alzheimer's disease or not from gene expression, methylation and micro-RNA: 245 persons to train, "
        "106 to test, 200 features per view.",
        "Wang et al. 2021, Nature Communications 12:3445",
    ),
    Dataset(
        "nutrimouse",
        "Forty mice, two genotypes: 120 genes and 21 lipids.",
        "Martin et al. 2007",
    ),
    Dataset(
        "multiloc_sequences",
        "Protein sequences, 5959, in 11 places of the cell.",
        "Hoeglund et al. 2006, Bioinformatics 22:1158",
        urls=tuple(f"{MULTILOC}/{location}.fasta" for location in readers.LOCATIONS),
        reader=readers.multiloc,
        sha256="fe1d64f5abb653454a1526e44552075d1dc5ce5cc7b85b64d58a6535d35db115",
    ),
)
_BY_NAME = {record.name: record for record in _ALL}
