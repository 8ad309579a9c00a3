"""What the data sets are, whom to cite, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

RAW = "https://raw.githubusercontent.com"
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
    openml : dict of str to int
        Data ids on OpenML, by the array they become.
    urls : tuple of str
        Original addresses.
    reader : str
        The function of `kernelweave.datasets.readers` that makes arrays of what was downloaded.
    sha256 : str
        Of the arrays `X` and `y` (or what stands for them), see `kernelweave.datasets.download`.

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
    openml: tuple[tuple[str, int], ...] = ()
    urls: tuple[str, ...] = ()
    reader: str = ""
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
        openml=(("X", 59),),
        reader="ionosphere",
    ),
    Dataset(
        "sonar",
        "Sonar echoes of mines (+1) and rocks (-1): 208 samples, 60 frequency bands.",
        "Gorman & Sejnowski 1988",
        openml=(("X", 40),),
        reader="sonar",
    ),
    Dataset(
        "pima",
        "Diabetes (+1) or not (-1): 768 women, 8 measurements, missing values written as 0.",
        "Smith et al. 1988",
        openml=(("X", 37),),
        reader="pima",
    ),
    Dataset(
        "wpbc",
        "Breast cancer that recurs (+1) or does not (-1): the 194 complete cases, 33 features.",
        "Street, Mangasarian & Wolberg 1995",
        urls=(f"{UCI}/breast-cancer-wisconsin/wpbc.data",),
        reader="wpbc",
    ),
    Dataset(
        "liver",
        "BUPA liver disorders, 345 men, 6 measurements; y is the column `selector`, which papers predict "
        "although it marks a split of the data, not a diagnosis (McDermott & Forsyth 2016).",
        "Forsyth, BUPA Medical Research",
        urls=(f"{UCI}/liver-disorders/bupa.data",),
        reader="liver",
    ),
    Dataset(
        "magic04",
        "Showers seen by a telescope, gamma (+1) or hadron (-1): 19020 samples, 10 features.",
        "Bock et al. 2004",
        urls=(f"{UCI}/magic/magic04.data",),
        reader="magic04",
    ),
    Dataset(
        "spambase",
        "Mail, spam (+1) or not (-1): 4601 samples, 57 frequencies of words and characters.",
        "Hopkins et al. 1999",
        openml=(("X", 44),),
        reader="spambase",
    ),
    Dataset(
        "mushroom",
        "Mushrooms, poisonous (+1) or edible (-1): 8124 samples, 22 categories (X) or 117 "
        "indicators (X_onehot).",
        "Schlimmer 1987",
        urls=(f"{UCI}/mushroom/agaricus-lepiota.data",),
        reader="mushroom",
    ),
    Dataset(
        "mnist",
        "Handwritten digits, 28 x 28 pixels: 60000 to train (X, y), 10000 to test (X_test, y_test).",
        "LeCun et al. 1998",
        real=False,
        openml=(("X", 554),),
        reader="mnist",
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
        reader="indian_pines",
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
        reader="ovarian",
    ),
    Dataset(
        "swri_diesel",
        "Near-infrared spectra of diesel fuels, 750 to 1550 nm in 401 steps, with seven properties; the "
        "cetane number CN is known for 381 of 784.",
        "S. Hutzler, Southwest Research Institute",
        target="CN",
        urls=(f"{RAW}/ryuzakyl/data-bloodhound/HEAD/datasets/nir_fuel/data/SWRI_Diesel_NIR.mat",),
        reader="swri_diesel",
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
        urls=(f"{RAW}/ryuzakyl/data-bloodhound/HEAD/datasets/nir_corn/data/corn.mat",),
        reader="corn_nir",
    ),
    Dataset(
        "tecator",
        "Near-infrared spectra of 240 samples of meat by a Tecator Infratec analyser, 850 to 1050 nm in 100 "
        "steps, with moisture, fat and protein.",
        "Borggaard & Thodberg 1992",
        target="fat",
        urls=(f"{RAW}/caseykneale/ChemometricsData.jl/HEAD/data/Tecator_Meat_Data/tecator.csv",),
        reader="tecator",
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
        "Handwritten digits seen six ways: 2000 samples, 200 a class; profile correlations, Fourier and "
        "Karhunen-Loeve coefficients, morphology, pixels, Zernike moments.",
        "van Breukelen, Duin et al. 1998",
        openml=(("fac", 12), ("fou", 14), ("kar", 16), ("mor", 18), ("pix", 20), ("zer", 22)),
        reader="mfeat",
    ),
    Dataset(
        "bbcsport",
        "Sports news in five classes, 544 articles, each cut in two segments of about 3200 terms.",
        "Greene & Cunningham 2006",
        urls=(f"{RAW}/ChuanbinZhang/Multi-view-datasets/HEAD/BBCSport.mat",),
        reader="bbcsport",
    ),
    Dataset(
        "proteinfold_kpca27",
        "Proteins in 27 folds, 694 samples, 12 feature spaces, each as its 27 leading kernel principal "
        "components.",
        "Ding & Dubchak 2001; Damoulas & Girolami 2008",
        urls=(f"{RAW}/ChuanbinZhang/Multi-view-datasets/HEAD/ProteinFold.mat",),
        reader="proteinfold",
    ),
    Dataset(
        "rosmap_mogonet",
        "Alzheimer's disease or not from gene expression, methylation and micro-RNA: 245 persons to train, "
        "106 to test, 200 features a view.",
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
    ),
)
_BY_NAME = {record.name: record for record in _ALL}
