"""The paper's figures beside ours, with a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field

#: in place of a paper, where what is judged is our own
OWN = "Our own statements"

#: what a comparison may say; "ours alone" where the paper has no figure
VERDICTS = ("reproduced", "not reproduced", "contradicted", "undecided", "not testable here", "ours alone")


@dataclass(frozen=True)
class Line:
    """One figure or statement of the paper beside ours; made by the functions of `verdict`.

    Parameters
    ----------
    what : str
        What was measured, or what is stated.
    paper, ours : str
        The figures, as text.
    verdict : str
        One of `VERDICTS`.
    why : str
        Why: what an experiment has shown, not a guess.
    n : int
        Number of repetitions.
    side : str
        On which side of the paper's figure ours is, where it is not reproduced.
    kind : {"claim", "figure"}
        Whether it is a statement of the paper, or a figure.

    Examples
    --------
    >>> Line("accuracy", "93.5", "94.0", "not reproduced", side="higher").said
    'not reproduced, higher'
    """

    what: str
    paper: str
    ours: str
    verdict: str
    why: str = ""
    n: int = 0
    side: str = ""
    kind: str = "claim"

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict={self.verdict!r}: use one of {', '.join(map(repr, VERDICTS))}.")

    @property
    def said(self) -> str:
        """The verdict with its side."""
        return f"{self.verdict}, {self.side}" if self.side else self.verdict


@dataclass(frozen=True)
class Table:
    """A table of its own: title, header and lines of text.

    Examples
    --------
    >>> Table("errors", ["method", "error"], [["l1", "0.1"]]).title
    'errors'
    """

    title: str
    header: list[str]
    lines: list[list[str]]


#: methods under the names they have in all experiments
METHODS = (
    "uniform sum",
    "best single kernel",
    "single SVM",
    "l1-MKL",
    "lp-MKL (p = 4/3)",
    "lp-MKL (p = 2)",
    "lp-MKL (p tuned)",
    "elastic net",
    "block norm (q = 4)",
    "SMKL",
    "MKL-GOMP",
    "GMKL",
    "empirical Bayes",
)


@dataclass(frozen=True)
class Standing:
    """How well a method does on a problem, under names that all experiments share.

    Parameters
    ----------
    data : str
        The data set.
    problem : str
        What was made of it; the set's name where it is taken as it is.
    method : str
        One of `METHODS`.
    score : float
        Its mean over the repetitions.
    higher : bool, default=True
        Whether higher is better.

    Examples
    --------
    >>> Standing("sonar", "sonar", "l1-MKL", 85.0).higher
    True
    """

    data: str
    problem: str
    method: str
    score: float
    higher: bool = True

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"method={self.method!r}: use one of {', '.join(map(repr, METHODS))}.")


@dataclass(frozen=True)
class Summary:
    """What an experiment found.

    Parameters
    ----------
    lines : list of Line
        The paper's figures beside ours.
    tables : list of Table
        More tables.
    notes : list of str
        Paragraphs that follow from the rows (write them with figures taken from the rows).
    standings : list of Standing
        Scores of methods on problems, for the page on what all experiments say together.

    Examples
    --------
    >>> Summary().lines
    []
    """

    lines: list[Line] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    standings: list[Standing] = field(default_factory=list)
