"""Checkpoints: a run killed after any machine, in any phase, goes on; damaged files are noticed."""

from __future__ import annotations

import errno
import io
import os
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from kernelweave import _container
from kernelweave._container import CHECKPOINT, DamagedFileError, ForeignFileError
from kernelweave.gram import BlockedGram, DenseGram
from kernelweave.losses import Hinge, Logistic, OneClass, Squared
from kernelweave.regularizers import SMKL, BlockNorm, ElasticNet, LpNorm, Uniform
from kernelweave.solvers import Problem, checkpoint, growing
from kernelweave.solvers.checkpoint import (
    Checkpoint,
    Entry,
    Keeper,
    describe,
    digest,
    entries_of,
    previous,
    probe,
    read,
    same_probe,
    write,
)
from kernelweave.solvers.multiple import choose_solver

TOL = 1e-7


class Killed(BaseException):
    """Stands in for SIGKILL: nothing on the way catches it."""


class Dying(Checkpoint):
    """Dies right after the file was written for the `lives`-th time."""

    def __init__(self, path, lives=10**9):
        super().__init__(path, {})
        self.lives, self.kept = lives, []

    def keep(self, key, entry, instead_of=None):
        self._begun = -np.inf  # as if much time had passed
        super().keep(key, entry, instead_of)
        self.kept.append(key)
        if len(self.kept) >= self.lives:
            raise Killed


class Counting:
    """A solver's callback that counts machines."""

    def __init__(self):
        self.count = 0

    def __call__(self, iteration, state):
        self.count += 1


def killed(path, lives, *job, **options):
    """Run a job until it dies; the names it wrote under, or None when it ended before."""
    keeper = Keeper(Dying(path, lives), "0")
    try:
        solve(*job, keeper=keeper, **options)
    except Killed:
        return keeper.checkpoint.kept
    return None


def solve(problem, gram, regularizer, solver="auto", tol=TOL, **options):
    return choose_solver(solver, regularizer).solve(problem, gram, regularizer, tol, 400, **options)


def resumed(path, *job, **options):
    return solve(*job, keeper=Keeper(Checkpoint(path, {}), "0"), **options)


CASES = [
    (Hinge(), LpNorm(p=4 / 3), "alternating"),
    (Squared(), LpNorm(p=4), "alternating"),
    (Logistic(), LpNorm(p=1), "newton"),
    (Hinge(), ElasticNet(l1_ratio=0.5), "newton"),
    (Hinge(), LpNorm(p=2), "interleaved"),
    (Hinge(), LpNorm(p=1), "interleaved"),
    (Squared(), BlockNorm(q=8), "joint_ascent"),
    (OneClass(), LpNorm(p=2), "auto"),
    (Squared(), SMKL(), "majorize_minimize"),
    (Hinge(), Uniform(), "auto"),
]


def goes_on(history, count):
    """Whether the machine after the first `count` is about as good as the best of them."""
    if np.isfinite(history["gap"]).all():
        assert history["gap"][count] <= 4.0 * min(history["gap"][:count])
    else:
        before, after = history["primal"][count - 1 : count + 1]
        assert after <= before + 1e-9 * abs(before)


@pytest.mark.wide
@pytest.mark.parametrize(("loss", "regularizer", "solver"), CASES, ids=lambda value: str(value)[:24])
def test_a_run_killed_after_any_machine_goes_on_to_the_same_objective(
    tmp_path, draw, loss, regularizer, solver
):
    sample = draw(loss, n=50)
    job = (sample.problem, sample.gram, regularizer, solver)
    whole = solve(*job)
    for lives in range(1, min(whole.n_iter, 6) + 1):
        path = tmp_path / str(lives)
        assert killed(path, lives, *job) == ["0/main"] * lives
        counting = Counting()
        rest = resumed(path, *job, callback=counting)
        assert rest.converged
        assert rest.state.certificate.primal == pytest.approx(whole.state.certificate.primal, rel=1e-6)
        assert rest.n_resumed == lives
        assert rest.n_iter == lives + counting.count
        assert {len(values) for values in rest.history.values()} == {rest.n_iter}
        if lives == whole.n_iter:
            assert counting.count == 0
        else:
            goes_on(rest.history, lives)


@pytest.mark.wide
@pytest.mark.parametrize("regularizer", [LpNorm(p=1), LpNorm(p=2)], ids=repr)
def test_rounds_on_a_part_of_the_samples_are_kept(tmp_path, rng, monkeypatch, regularizer):
    monkeypatch.setattr(growing, "FEWEST", 300)
    X = rng.normal(size=(700, 3))
    Ks = [np.exp(-((X[:, None, :] - X[None]) ** 2).sum(-1) / width) for width in (0.5, 2.0, 8.0)]
    problem = Problem(np.sign(X[:, :1] * X[:, 1:2] + X[:, 2:3]), Hinge(), np.full((700, 1), 2.0))
    whole = solve(problem, BlockedGram(Ks), regularizer, tol=1e-6)
    assert growing.can_grow(problem, BlockedGram(Ks), regularizer)
    seen = set()
    for lives in (1, 2, 4, 8, 16):
        path = tmp_path / str(lives)
        kept = killed(path, lives, problem, BlockedGram(Ks), regularizer, tol=1e-6)
        if kept is None:
            break
        seen.add(kept[-1])
        found = Checkpoint(path, {}).found(kept[-1])
        if kept[-1] == "0/main":  # of all samples, whatever part the round was on
            assert found.arrays["alpha"].shape == (700, 1)
            assert found.arrays["alpha"].any()
        rest = resumed(path, problem, BlockedGram(Ks), regularizer, tol=1e-6)
        assert rest.converged
        assert rest.state.certificate.primal == pytest.approx(whole.state.certificate.primal, rel=1e-6)
    assert {name.split()[0] for name in seen} == {"0/pilot", "0/main"}


@pytest.mark.parametrize("regularizer", [LpNorm(p=1), LpNorm(p=2)], ids=repr)
def test_rounds_with_a_few_kernels_are_kept(tmp_path, draw, monkeypatch, regularizer):
    for name, value in {"MANY": 20, "FEW": 6, "JOINING": 3}.items():
        monkeypatch.setattr(growing, name, value)
    sample = draw(Squared(), n=50, M=24)
    job = (sample.problem, sample.gram, regularizer)
    whole, seen = solve(*job), set()
    for lives in range(1, 12, 2):
        path = tmp_path / str(lives)
        kept = killed(path, lives, *job)
        if kept is None:
            break
        seen.add(kept[-1])
        if kept[-1] == "0/main":
            assert Checkpoint(path, {}).found(kept[-1]).arrays["weights"].shape == (24,)
            assert Checkpoint(path, {}).found("0/few kernels") is None  # it has served
        rest = resumed(path, *job)
        assert rest.converged
        assert rest.state.certificate.primal == pytest.approx(whole.state.certificate.primal, rel=1e-6)
    assert seen == {"0/few kernels", "0/main"}


def test_a_first_look_is_not_taken_twice(tmp_path, draw):
    sample = draw(Logistic(), n=700, M=4)
    job = (sample.problem, sample.gram, LpNorm(p=4 / 3))
    fresh = Dying(tmp_path / "other")
    whole = solve(*job, keeper=Keeper(fresh, "0"))
    looks = sum("pilot" in name for name in fresh.kept)
    assert killed(tmp_path / "c", looks, *job) == fresh.kept[:looks]
    second = Dying(tmp_path / "c")
    rest = solve(*job, keeper=Keeper(second, "0"))
    assert set(second.kept) == {"0/main"}
    assert rest.state.certificate.primal == pytest.approx(whole.state.certificate.primal, rel=1e-6)


@pytest.mark.parametrize("lives", [1, 2])
def test_newton_steps_go_on_where_they_were(tmp_path, draw, lives):
    """A first look gives Newton's matrix, which a run that is resumed has too."""
    sample = draw(Hinge(), n=700, M=4)
    job = (sample.problem, sample.gram, LpNorm(p=1.2))
    fresh = Dying(tmp_path / "other")
    whole = solve(*job, keeper=Keeper(fresh, "0"), tol=1e-9)
    looks = sum("pilot" in name for name in fresh.kept)
    assert looks > 0
    assert whole.n_iter > lives
    killed(tmp_path / "c", looks + lives, *job, tol=1e-9)
    assert "newton" in Checkpoint(tmp_path / "c", {}).found("0/main").arrays
    rest = resumed(tmp_path / "c", *job, tol=1e-9)
    assert rest.n_resumed == lives
    assert rest.n_iter <= whole.n_iter + 1
    np.testing.assert_allclose(rest.history["gap"][:lives], whole.history["gap"][:lives], rtol=1e-6)


def test_many_kills_in_a_row_still_end(tmp_path, draw):
    """A process that never lives longer than two machines gets there."""
    sample = draw(Hinge(), n=80)
    job = (sample.problem, sample.gram, LpNorm(p=4 / 3))
    whole = solve(*job)
    for kills in range(40):  # noqa: B007
        if killed(tmp_path / "c", 2, *job) is None:
            break
    assert 2 <= kills < 20
    rest = resumed(tmp_path / "c", *job)
    assert rest.n_iter == rest.n_resumed
    assert rest.state.certificate.primal == pytest.approx(whole.state.certificate.primal, rel=1e-6)


def test_max_iter_counts_all_machines(tmp_path, draw):
    sample = draw(Hinge())
    path, solver = tmp_path / "c", choose_solver("auto", LpNorm(p=4 / 3))
    for most in (2, 2, 3):
        with pytest.warns(ConvergenceWarning, match=f"after {most} single-kernel fits"):
            found = solver.solve(
                sample.problem, sample.gram, LpNorm(p=4 / 3), 1e-12, most, keeper=Keeper(Checkpoint(path, {}))
            )
        assert found.n_iter == most


def test_interruption_writes_before_it_warns(tmp_path, draw):
    sample, path = draw(Hinge()), tmp_path / "c"
    keeper = Keeper(Checkpoint(path, {}))

    def interrupt(iteration, state):
        keeper.checkpoint._spent = 1e9  # too dear to write of its own accord
        if iteration == 2:
            raise KeyboardInterrupt

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        monkey = [lambda *args, **kwargs: caught.append(read(path)["/main"])]
        warnings.showwarning = monkey[0]
        solve(sample.problem, sample.gram, LpNorm(p=4 / 3), tol=1e-12, callback=interrupt, keeper=keeper)
    assert caught[0].values["n_machines"] == 3


# -- the file ---------------------------------------------------------------------------------

ENTRIES = {
    "a": Entry({"text": "x", "n": 3}, {"f": np.array([[1.5, np.inf], [np.nan, -0.0]]), "i": np.arange(3)}),
    "b": Entry({}, {"empty": np.zeros((0, 4))}),
}


@pytest.fixture(scope="module", name="data")
def content_of_a_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("file") / "c"
    write(path, ENTRIES)
    return path.read_bytes()


def unpack(data):
    head, arrays = _container.read(io.BytesIO(data), CHECKPOINT)
    return entries_of(head.content, arrays)


def test_what_goes_in_comes_out(data):
    out = unpack(data)
    assert {key: entry.values for key, entry in out.items()} == {"a": {"text": "x", "n": 3}, "b": {}}
    for key, entry in ENTRIES.items():
        for name, array in entry.arrays.items():
            np.testing.assert_array_equal(out[key].arrays[name], array)
            assert out[key].arrays[name].dtype == array.dtype
            assert out[key].arrays[name].flags.writeable


@given(share=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_damaged(data, share):
    with pytest.raises(DamagedFileError):
        unpack(data[: int(share * len(data))])


@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_one_wrong_bit_is_damage(data, share, bit):
    """After magic and format, which say whether it is one of these at all."""
    wrong = bytearray(data)
    wrong[12 + int(share * (len(data) - 12))] ^= 1 << bit
    with pytest.raises(DamagedFileError):
        unpack(bytes(wrong))


def described(arrays='["<f8","C",[1],"00000000"]', content="{}"):
    return f'{{"kernelweave":"1","kind":"checkpoint","arrays":[{arrays}],"content":{content}}}'


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{",
        described('["|O","C",[1],"00000000"]'),
        described('["<f8","C",[1000000000000],"00000000"]'),
        described('["<f8","C",[-1],"00000000"]'),
        described('["<f8","C",[1]]'),
        described('["<f8","C",[1],0]'),
        described(""),
        described("3"),
        described(),
        "[" * 100_000,
    ],
)
def test_a_hostile_file_with_a_right_checksum_is_refused(text):
    size = _container.PREAMBLE + len(text) + 8
    with pytest.raises(DamagedFileError):
        unpack(_container.seal(text.encode(), size) + text.encode() + b"12345678")


@pytest.mark.parametrize("content", [[], {"a": 3}, {"a": {"values": {}, "arrays": {"x": 1}}}, {"a": {}}])
def test_entries_that_make_no_sense(content):
    with pytest.raises(DamagedFileError, match="make no sense"):
        entries_of(content, [np.zeros(1)])


def test_other_files_are_not_ours():
    with pytest.raises(ForeignFileError, match="not a checkpoint"):
        unpack(b"sepal length,sepal width\n" * 10)
    with pytest.raises(ForeignFileError, match="format 9"):
        unpack(_container.seal(b"{}", 66, version=9) + b"{}")
    with pytest.raises(ForeignFileError, match="checkpoint of an earlier format"):
        unpack(b"kernelweave checkpoint 1\n" + bytes(100))


def kept_twice(path):
    """A checkpoint written twice: step 2 in the file, step 1 in the one before it."""
    first = Dying(path)
    for step in (1, 2):
        first.keep("a", Entry({"step": step}))


@pytest.mark.parametrize("left", [0, 10, 40, 100])
def test_a_damaged_file_gives_way_to_the_one_before_it(tmp_path, left):
    path = tmp_path / "c"
    kept_twice(path)
    path.write_bytes(path.read_bytes()[:left])
    with pytest.warns(UserWarning, match="is damaged .* resumes the one before it"):
        found = Checkpoint(path, {})
    assert found.resumed
    assert found.found("a").values == {"step": 1}
    found.keep("a", Entry({"step": 3}))
    assert Checkpoint(path, {}).found("a").values == {"step": 3}
    assert read(previous(path))["a"].values == {"step": 1}  # not the damaged one


def test_two_damaged_files_start_anew(tmp_path):
    path = tmp_path / "c"
    kept_twice(path)
    for file in (path, previous(path)):
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="starts again"):
        found = Checkpoint(path, {})
    assert not found.resumed
    assert found.found("a") is None
    found.keep("a", Entry({"step": 1}))
    assert Checkpoint(path, {}).resumed


def test_a_kill_while_writing_leaves_the_file_whole(tmp_path, monkeypatch):
    """At each of the steps of a replacement."""
    path = tmp_path / "c"
    for victim in ("fsync", "link", "replace"):
        kept_twice(path)

        def die(*args, **kwargs):
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(os, victim, die)
            with pytest.raises(Killed):
                Dying(path).keep("a", Entry({"step": 3}))
        assert Checkpoint(path, {}).found("a").values["step"] == 2


def test_file_systems_without_links_keep_a_copy(tmp_path, monkeypatch):
    def no_link(*args):
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", no_link)
    kept_twice(tmp_path / "c")
    assert read(previous(tmp_path / "c"))["a"].values == {"step": 1}


def test_a_file_that_is_no_checkpoint_is_left_alone(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"table.csv' .* is not a checkpoint of kernelweave: pass another"):
        Checkpoint(path, {})
    assert path.read_text() == "a,b\n1,2\n"


def test_another_problem_is_refused_by_name(tmp_path):
    path = tmp_path / "c"
    Dying(path).keep("a", Entry())
    with pytest.raises(
        ValueError, match=r"another problem \(loss differ\): delete it .* or pass another path"
    ):
        Checkpoint(path, {"loss": "Hinge()"})


@pytest.mark.parametrize("where", ["missing/c", "."])
def test_paths_that_cannot_be_written_are_refused_at_once(tmp_path, where):
    with pytest.raises(ValueError, match="cannot be written"):
        Checkpoint(tmp_path / where, {})
    with pytest.raises(ValueError, match="must be a path"):
        Checkpoint(3, {})


def test_a_full_disk_warns_and_goes_on(tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    found = Checkpoint(tmp_path / "c", {})
    monkeypatch.setattr(checkpoint, "write", full)
    with pytest.warns(UserWarning, match="could not be written .*No space left"):
        found.keep("a", Entry())


def test_writing_waits_until_it_is_cheap(tmp_path, monkeypatch):
    """A write of 1 s is followed by 50 s without one."""
    now, writes = [0.0], []

    def slow(*args, **kwargs):
        now[0] += 1.0
        writes.append(now[0])

    monkeypatch.setattr(checkpoint, "write", slow)
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    found = Checkpoint(tmp_path / "c", {})
    while now[0] < 1000.0:
        found.keep("a", Entry())
        now[0] += 0.7
    assert writes[0] == 1.0  # the first one at once
    assert len(writes) / now[0] <= 0.021
    assert len(writes) >= 18
    found.flush()
    found.flush()
    assert len(writes) <= 21


# -- fingerprints -----------------------------------------------------------------------------


def test_descriptions_tell_parts_apart():
    assert describe(LpNorm(p=2)) != describe(LpNorm(p=3))
    assert describe(LpNorm(p=2)) == describe(LpNorm(p=2))
    assert "0x" not in describe(lambda d: d)
    big = np.arange(10_000.0)
    other = big.copy()
    other[5000] += 1.0
    assert describe(big) != describe(other)
    assert digest(big) != digest(big.astype(np.float32))


def test_a_probe_notices_any_sample_and_any_kernel(draw):
    sample = draw(Squared(), n=30, M=4)
    mine = probe(DenseGram(sample.Ks))
    assert mine.shape == (30,)
    assert same_probe(mine, probe(BlockedGram(list(sample.Ks))))
    assert not same_probe(mine, probe(DenseGram(sample.Ks[[1, 0, 2, 3]])))
    assert not same_probe(mine, probe(DenseGram(sample.Ks[:3])))
    for i in range(30):
        changed = sample.Ks.copy()
        changed[2, i, :] *= 1.01
        changed[2, :, i] *= 1.01
        assert not same_probe(mine, probe(DenseGram(changed)))


def test_a_probe_costs_no_pass(draw):
    gram = draw(Squared()).gram
    probe(gram)
    assert gram.n_passes == 0


def test_files_of_others_beside_a_checkpoint_are_left_alone(tmp_path):
    """Whatever ending they have; the one before the newest has a fixed name, and is refused."""
    names = ["c.partial", "c.keeping", "c.part", ".c.12345678.part"]
    for name in names:
        (tmp_path / name).write_text("mine")
    kept_twice(tmp_path / "c")
    assert [(tmp_path / name).read_text() for name in names] == ["mine"] * len(names)
    previous(tmp_path / "c").write_text("a diary")
    with pytest.raises(ValueError, match=r"'c.previous', and a file of that name exists that is not a k"):
        Checkpoint(tmp_path / "c", {})
    assert previous(tmp_path / "c").read_text() == "a diary"


def test_a_full_disk_leaves_the_checkpoint_before_and_nothing_beside_it(tmp_path, monkeypatch):
    kept_twice(tmp_path / "c")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        again = Checkpoint(tmp_path / "c", {})
        with pytest.warns(UserWarning, match="could not be written"):
            again.keep("a", Entry({"step": 3}))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
