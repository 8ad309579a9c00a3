"""Statements and figures of the papers that cannot be judged here, with the reason."""

from __future__ import annotations

from .summary import Line
from .verdict import untestable

LP = "Kloft et al. (2011)"
GMKL = "Varma & Babu (2009)"
GOMP = "Sindhwani & Lozano (2011)"
SMKL = "Subrahmanya & Shin (2010)"
BAYES = "Tomioka & Suzuki (2011)"

TARGETP = (
    "the kernels of TargetP and PSORT are not available; statements are judged on the sequences of MultiLoc"
)
DBTSS = "the windows around gene starts (dbTSS) are not available; statements are judged on simulated DNA"
YEAST = "the kernels of yeast enzymes are not available; statements are judged on simulated networks"
SIMPLE = "the programs of the paper (SimpleMKL, HessianMKL) are MATLAB code of 2008 and are not run here"
LARGE = "too long for the two cores that the experiments have"
REFERENCE = "cutting planes are interleaved in the paper, and go around whole fits here (timed in lp-scaling)"
ONCE = "it is measured once, without the repetitions a verdict needs"
FACES = "the database of faces (Moghaddam & Yang 2002) is not available"
PSORT = "the kernels of PSORT and plant are not available; statements are judged on protein folds and digits"
MASS = "the spectra of the first study are not available; statements are judged on those of the second"
NIR = "the spectra of wheat and of grass are not available; statements are judged on other spectra"
PICTURES = "the pictures of Caltech 101 are not available; statements are judged on digits and news"

#: paper -> what it states
UNTESTABLE: dict[str, list[Line]] = {
    LP: [
        untestable("n = 800: model errors are relatively high", "high", "the paper has no figure for it"),
        untestable("Table 1: 40 errors on plant, nonplant, psortNeg, psortPos", "8.18 to 17.63", TARGETP),
        untestable(
            "PSORT: a norm between 1 and infinity is best, not significantly", "9.87 and 13.01", TARGETP
        ),
        untestable("Figure 4: area under the curve of gene starts, by training size", "curves", DBTSS),
        untestable("gene starts: one kernel alone", "0.89, 0.86, 0.84, 0.55, 0.74", DBTSS),
        untestable(
            "gene starts, 60,000 samples: all norms but l1 are alike", "yes", f"{DBTSS}, of fewer windows"
        ),
        untestable("Table 2: 14 areas under the curve of the metabolic network", "58.35 to 83.13", YEAST),
        untestable(
            "n = 8,000: SimpleMKL is over 120 times slower than chunking", "120 times", f"{SIMPLE}; {LARGE}"
        ),
        untestable("SimpleMKL is a slowest method", "yes", SIMPLE),
        untestable("SimpleMKL becomes more efficient with more kernels", "yes", SIMPLE),
        untestable("HessianMKL ranks between on-the-fly and interleaved", "yes", SIMPLE),
        untestable(
            "interleaved is faster than HessianMKL by 10 times, than SimpleMKL by 100", "up to", SIMPLE
        ),
        untestable("semi-infinite programs for p > 1 are slightly slower than for p = 1", "yes", REFERENCE),
        untestable("the closed form is somewhat faster than semi-infinite programs", "yes", REFERENCE),
        untestable("interleaved trains on 20,000 samples, and on 10,000 kernels", "yes", LARGE),
        untestable("1,000 kernels of 1,000 samples in under 3 minutes (chunking)", "yes", LARGE),
    ],
    GMKL: [
        untestable("Table 1: 52 accuracies of telling men from women", "71.6 to 95.5", FACES),
        untestable("faces: GMKL is above MKL by almost 10 % for few pixels", "93.2 against 83.8", FACES),
        untestable("faces: AdaBoost performs worst", "76.3", FACES),
        untestable("faces: LP-SVM and S-SVM are better than MKL", "89.3 and 88.6 against 86.3", FACES),
        untestable("faces: BAHSIC is significantly worse than GMKL", "89.4 against 95.1", FACES),
        untestable("faces: GMKL with 25 pixels is as good as equal weights with 252", "94.3", FACES),
        untestable("GMKL has the accuracy of MKL with a sixth of the features", "a sixth", FACES),
        untestable(
            "Table 2: figures of Parkinsons and musk, and GMKL best on them",
            "86.3 to 93.6",
            "the two sets are not among those here",
        ),
    ],
    GOMP: [
        untestable("Figure 2: scores on PSORT+, PSORT- and plant", "bars", PSORT),
        untestable("kernels selected on PSORT+, PSORT-, plant, of 69", "14, 15 and 24", PSORT),
        untestable("MKL-GOMP is slightly worse than l1-MKL on plant", "yes", PSORT),
        untestable("the sum of all kernels performs very well on plant", "yes", PSORT),
    ],
    SMKL: [
        untestable(
            "the cost of SMKL grows as K^1.0 and n^1.6",
            "K^1.0 and n^1.6",
            ONCE,
            "[Benchmarks](benchmarks.md)",
        ),
        untestable("Table 2: accuracies and bands", "100 % with 2.0, 98.67 % with 8.5", MASS),
        untestable(
            "cancer: the bands are those known to matter", "195.7 to 266.4 and 348.1 to 440.5 m/z", MASS
        ),
        untestable("Tables 4 and 5: errors and bands on wheat and grass", "0.024 to 0.151", NIR),
        untestable("wheat: the bands are those known to matter", "1,600 to 1,750 nm and others", NIR),
        untestable("grass: one kernel is worse than SMKL and MKL", "0.150 against 0.120", NIR),
        untestable("grass: SMKL and MKL are as good as B-splines+MI+RBFN", "0.120 and 0.121", NIR),
    ],
    BAYES: [
        untestable("Figures 1 to 3: accuracy against samples per class", "curves", PICTURES),
        untestable("the elastic net takes gamma = 0.1 of the Gaussian kernels", "always", PICTURES),
        untestable("the elastic net never takes gamma = 0.1 of the chi-square kernels", "never", PICTURES),
    ],
}
