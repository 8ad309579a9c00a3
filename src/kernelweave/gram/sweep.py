"""Models that are trained together: kernel values are read or computed once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, NamedTuple, TypeVar

import numpy as np

from .._linalg import distinct
from .._typing import FloatArray, IntArray
from .._warnings import collecting, place, tell
from ._workers import may_use_threads, using_threads
from .base import OF_ENGINE, Gram
from .blocks import tiles
from .choice import free_share
from .some_rows import RowsOfSum

Result = TypeVar("Result")

#: kinds of requests that are answered together, in the order of the answers; sums come before `quad`, so that
#: models that ask for sums catch up with the others
KINDS = ("in_double", "once", "subset", "products", "dot", "square", "rows", "combine", "quad")

#: bytes up to which weighted sums are made together, or this share of what the kernels take; how many are
#: made together in any case; bytes of a sum that may be kept; and most models at once
SUM_BYTES, SUM_SHARE, LEAST_SUMS, SMALL_SUM, MOST_MODELS = 1 << 27, 0.5, 4, 1 << 22, 64

#: matrices that a machine may need besides its weighted sum
FACTORS = 3


class Swept(Gram):
    """The kernels of an engine, as seen by one of several models that are trained together.

    Weighted sums, quadratic forms, products and parts are asked of the `Sweep`, which answers all models at
    once; everything else is asked of the engine itself. `n_passes` is this model's share of what was read.

    Parameters
    ----------
    gram : Gram
        The engine, of all models.
    model : Worker
        Which of them asks.
    """

    portable = False

    def __init__(self, gram: Gram, model: Worker) -> None:
        self.gram, self.model, self.passes = gram, model, 0.0
        for name in (*OF_ENGINE, "conditional", "parts_in_place"):
            setattr(self, name, getattr(gram, name))
        self.spares_sums = 8 * self.n_samples**2 <= SMALL_SUM
        self.summed: tuple[FloatArray, Any] | None = None  # weights of the last sum; the sum, if released

    @property
    def engine(self) -> Gram:
        return self.gram

    @property
    def n_passes(self) -> float:
        """Passes over the kernels made for this model; what is added here is added to the engine's too."""
        return self.passes

    @n_passes.setter
    def n_passes(self, value: float) -> None:
        self.gram.n_passes += value - self.passes
        self.passes = value

    @property
    def n_models(self) -> int:
        return len(self.model.sweep.models)

    @property
    def rounds(self) -> bool:
        return self.gram.rounds

    @property
    def nbytes(self) -> int:
        return self.gram.nbytes

    @property
    def cached_alignments(self) -> FloatArray | None:
        """The result of the engine, computed once for all models."""
        return self.gram.cached_alignments

    @cached_alignments.setter
    def cached_alignments(self, value: FloatArray | None) -> None:
        self.gram.cached_alignments = value

    # -- asked together -----------------------------------------------------------------------

    def combine(self, weights: FloatArray) -> Any:
        self.forget()
        self.summed = (weights.copy(), None)
        return self.model.ask(Request(self, "combine", (weights,)))

    def some_rows(self, weights: FloatArray, samples: IntArray) -> RowsOfSum:
        self.forget()
        return super().some_rows(weights, samples)

    def square(self, samples: IntArray, weights: FloatArray) -> Any:
        return self.model.ask(Request(self, "square", (samples, weights)))

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        return np.asarray(self.model.ask(Request(self, "rows", (indices, weights))))

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        return np.asarray(self.model.ask(Request(self, "dot", (weights, alpha, rows))))

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        return np.asarray(self.model.ask(Request(self, "quad", (alpha, kernels))))

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        return np.asarray(self.model.ask(Request(self, "products", (alpha, kernels, rows))))

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Any:
        part = self.model.ask(Request(self, "subset", (samples, kernels)))
        return Swept(part, self.model)

    def once(self, task: Callable[[Gram], Result]) -> Result:
        found: Result = self.model.ask(Request(self, "once", (task,)))
        return found

    def in_double(self) -> Gram | None:
        fine = self.model.ask(Request(self, "in_double", ()))
        return None if fine is None else Swept(fine, self.model)

    # -- asked alone --------------------------------------------------------------------------

    def release(self, K: Any) -> None:
        """If there is room for the sums of all models, this one stays `at_hand` until the next."""
        room = self.model.sweep.holds(self.n_samples)
        if isinstance(K, RowsOfSum):
            self.forget()
            self.summed = (K.weights, K) if room else None
        elif self.summed is not None and room and isinstance(K, np.ndarray):
            self.summed = (self.summed[0], K)
        else:
            self.model.sweep.release(self.gram, K)

    def forget(self) -> None:
        """Drop a sum that was released."""
        (_, K), self.summed = self.summed or (None, None), None
        if K is not None:
            self.model.sweep.release(self.gram, K)

    def shared(self, weights: FloatArray, K: Any) -> Any:
        with self.model.sweep.lock:
            self.model.sweep.holders.setdefault(id(K), self.n_models)
        self.summed = (weights.copy(), None)
        return K

    def at_hand(self, weights: FloatArray) -> Any:
        own, K = self.summed or (None, None)
        return K if own is not None and np.array_equal(weights, own) else None

    def inner(self, A: FloatArray) -> FloatArray:
        with self._counted():
            return self.gram.inner(A)

    def diag(self, weights: FloatArray) -> FloatArray:
        return self.gram.diag(weights)

    def diagonals(self) -> FloatArray:
        return self.gram.diagonals()

    def component_norms(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        return self.gram.component_norms(coefficients)

    def values_of(self, coefficients: dict[int, FloatArray]) -> FloatArray:
        with self._counted():
            return self.gram.values_of(coefficients)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        before = self.gram.n_passes
        yield
        self.passes += self.gram.n_passes - before


class Request(NamedTuple):
    """What a model asks: a method of its kernels, and the arguments."""

    view: Swept
    kind: str
    args: tuple[Any, ...]

    @property
    def group(self) -> tuple[Any, ...]:
        """Requests of one group are answered together; groups sort by size of the kernels, then by kind."""
        gram, kind, args = self.view.gram, self.kind, self.args
        common = {"quad": args[1:], "products": args[1:2], "subset": args, "square": args[:1]}.get(kind, ())
        told = tuple(b"" if part is None else b"some" + np.asarray(part).tobytes() for part in common)
        return (gram.n_kernels * gram.n_samples**2, KINDS.index(kind), id(gram), told)


class Abandoned(BaseException):
    """Another model has failed: this one need not be trained."""


class Worker(threading.Thread):
    """One of the models, in a thread that runs only when it is its turn.

    Attributes
    ----------
    state : {"ready", "running", "waiting", "over"}
        Whether it may run, is running, waits for an answer, or is over.
    request, answer : object
        What it asks, and the answer; if that is an exception, it is raised where the model asked.
    interrupted : bool
        Whether it has to be told of Ctrl-C.
    result, failure : object
        The outcome.
    """

    def __init__(self, sweep: Sweep, task: Callable[[Gram], Any], threads: bool) -> None:
        super().__init__(daemon=True)
        self.sweep, self.threads = sweep, threads
        self.task: Callable[[Gram], Any] | None = task
        self.wake, self.context, self.caller = threading.Condition(sweep.lock), copy_context(), place()
        self.view = Swept(sweep.gram, self)
        self.state, self.interrupted = "ready", False
        self.request: Request | None = None
        self.answer: Any = None
        self.result: Any = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        """Train the model, once it may."""
        self._pause("ready")
        try:
            with using_threads(self.threads):
                if self.task is not None:
                    self.result = self.context.run(collecting, self.caller, self.task, (self.view,), {})
        except BaseException as failure:
            self.failure = failure
        self.view.forget()
        with self.sweep.lock:
            self.state = "over"
            self.sweep.changed.notify()

    def forget(self) -> None:
        """Drop the kernels, which would otherwise wait for the garbage collector."""
        del self.view, self.task, self.context

    def ask(self, request: Request) -> Any:
        """The answer to a request, given together with the answers to the other models."""
        self.request = request
        self._pause("waiting")
        answer, self.request, self.answer = self.answer, None, None
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _pause(self, state: str) -> None:
        with self.sweep.lock:
            self.state = state
            self.sweep.changed.notify()
            self.wake.wait_for(lambda: self.state == "running")


class Sweep:
    """Models trained together on one engine: every pass over the kernels serves all of them.

    Each model is trained by code that knows nothing of the others, in a thread of its own, on a view of the
    engine (`Swept`). It runs until it asks for something. When all of them wait, requests of the same kind to
    the same kernels are answered together, by `combine_each`, `dot_each`, `quad_each` and `products_each`;
    equal parts and equal weighted sums are made once, and nobody may change them. Requests to parts are
    answered before those to the whole, so that models that are done with a first look wait for the others.
    Only a few weighted sums are made at a time, and their machines are trained before the next sums are made:
    there are never more of them in memory.

    One thread runs at a time unless `n_jobs` allows more; the results do not depend on timing. Ctrl-C reaches
    every model at its next request; an exception in one model ends all.

    Parameters
    ----------
    gram : Gram
    n_jobs : int, default=1
        Models that run at once.
    limit : int, optional
        Bytes that kernels and weighted sums may take; by default a share of the free memory.

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> gram = DenseGram([np.eye(2), np.ones((2, 2))])
    >>> Sweep(gram).run([lambda K, c=c: K.quad(np.array([1.0, c])) for c in (0.0, 1.0)])
    [array([1., 1.]), array([2., 4.])]
    """

    def __init__(self, gram: Gram, n_jobs: int = 1, limit: int | None = None) -> None:
        self.gram, self.n_jobs, self.lock = gram, n_jobs, threading.Lock()
        self.room = free_share() if limit is None else max(limit - gram.nbytes, 0)
        self.changed = threading.Condition(self.lock)
        self.models: list[Worker] = []
        self.holders: dict[int, int] = {}  # how many models have a weighted sum, by the identity of the sum

    def run(self, tasks: Sequence[Callable[[Gram], Result]]) -> list[Result]:
        """Results of tasks, each called with its own view of the kernels."""
        found: list[Result] = []
        for some in tiles(len(tasks), MOST_MODELS):
            found += self._together(tasks[some])
        return found

    def _together(self, tasks: Sequence[Callable[[Gram], Result]]) -> list[Result]:
        threads = self.n_jobs == 1 and may_use_threads()
        self.models = [Worker(self, task, threads) for task in tasks]
        self._start()
        while not all(model.state == "over" for model in self.models):
            try:
                self._answer()
                self._take_turns()
            except KeyboardInterrupt:
                for model in self.models:
                    model.interrupted = True
                    with self.lock:
                        model.wake.notify()
        models, self.models = self.models, []
        for model in models:
            model.forget()
        failed = [model.failure for model in models if model.failure is not None]
        for failure in sorted(failed, key=lambda failure: isinstance(failure, Abandoned)):
            raise failure
        for _, told in (model.result for model in models):
            tell(told)
        return [model.result[0] for model in models]

    def _start(self) -> None:
        """Start the threads, which wait for their turn; all or none."""
        try:
            for model in self.models:
                model.start()
        except BaseException:
            for model in self.models:
                with self.lock:
                    model.task, model.state = None, "running"
                    model.wake.notify()
            raise

    def _take_turns(self) -> None:
        """Let models run until each waits or is over."""
        with self.lock:
            while any(model.state in ("ready", "running") for model in self.models):
                free = self.n_jobs - sum(model.state == "running" for model in self.models)
                for model in [model for model in self.models if model.state == "ready"][:free]:
                    model.state = "running"
                    model.wake.notify()
                self.changed.wait()

    def _answer(self) -> None:
        """Answer one group of requests, if all models wait."""
        waiting = [model for model in self.models if model.state == "waiting"]
        if any(model.state in ("ready", "running") for model in self.models) or not waiting:
            return
        failed = any(model.failure is not None for model in self.models)
        stopped = [model for model in waiting if failed or model.interrupted]
        if stopped:
            self._give(stopped, [Abandoned()] * len(stopped))
            return
        requests = [model.request for model in waiting if model.request is not None]
        first = min(request.group for request in requests)
        pairs = zip(waiting, requests, strict=True)
        asking = [(model, request) for model, request in pairs if request.group == first]
        kind, args = asking[0][1].kind, asking[0][1].args
        if kind in ("combine", "rows", "square"):
            n_samples = len(args[0]) if kind == "square" else asking[0][1].view.gram.n_samples
            _, which = distinct([request.args[-1] for _, request in asking])
            most = self.most_sums(n_samples)
            asking = [one for one, place in zip(asking, which, strict=True) if place < most]
        found = answers([request for _, request in asking])
        if kind == "combine":
            places = [id(K) for K in found]
            self.holders |= {place: places.count(place) for place in places}
        self._give([model for model, _ in asking], found)

    def release(self, gram: Gram, K: Any) -> None:
        """Note that a model no longer needs a weighted sum; the last such model releases it in the engine."""
        with self.lock:
            left = self.holders.pop(id(K), 1) - 1
            if left > 0:
                self.holders[id(K)] = left
        if left <= 0:
            gram.release(K)

    def most_sums(self, n_samples: int) -> int:
        """Weighted sums that may be in memory at a time, besides what the current machine takes.

        Examples
        --------
        >>> from kernelweave.gram import DenseGram
        >>> gram = DenseGram(np.ones((2, 100, 100)))  # 160 kB, and 80 kB for every sum
        >>> [Sweep(gram, limit=limit).most_sums(100) for limit in (160_000, 600_000, 10**9)]
        [1, 2, 1677]
        """
        size = max(8 * n_samples**2, 1)
        most = max(LEAST_SUMS, max(SUM_BYTES, int(SUM_SHARE * self.gram.nbytes)) // size)
        return most if self.room is None else max(1, min(most, self.room // size - FACTORS))

    def holds(self, n_samples: int) -> bool:
        """Whether a weighted sum of every model may be in memory."""
        return len(self.models) <= self.most_sums(n_samples)

    def _give(self, models: Sequence[Worker], found: Sequence[Any]) -> None:
        for model, answer in zip(models, found, strict=True):
            model.answer = answer
            model.state = "ready"


def answers(requests: Sequence[Request]) -> list[Any]:
    """Answers to the requests of one group; if that fails, each gets its own answer or exception."""
    gram, kind = requests[0].view.gram, requests[0].kind
    before = gram.n_passes
    try:
        found = TOGETHER[kind](gram, [request.args for request in requests])
    except Exception as failure:
        if len(requests) > 1:
            return [answers([request])[0] for request in requests]
        found = [failure]
    for request in requests:
        request.view.passes += (gram.n_passes - before) / len(requests)
    return found


def _combine(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    weights, which = distinct([weights for (weights,) in calls])
    sums = gram.combine_each(np.array(weights)) if len(weights) > 1 else [gram.combine(weights[0])]
    return [sums[place] for place in which]


def _square(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    samples, (weights, which) = calls[0][0], distinct([weights for _, weights in calls])
    several = len(weights) > 1
    sums = gram.square_each(samples, np.array(weights)) if several else [gram.square(samples, weights[0])]
    return [sums[place] for place in which]


def _rows(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    indices, weights = zip(*calls, strict=True)
    return list(gram.rows_each(indices, np.array(weights))) if len(calls) > 1 else [gram.rows(*calls[0])]


def _dot(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    if len(calls) == 1:
        return [gram.dot(*calls[0])]
    columns, cuts = _columns([alpha for _, alpha, _ in calls])
    counts = np.diff([0, *cuts, columns.shape[1]])
    weights = np.repeat([weights for weights, _, _ in calls], counts, axis=0)
    rows = [rows for (_, _, rows), count in zip(calls, counts, strict=True) for _ in range(count)]
    found = gram.dot_each(weights, columns, rows)
    parts = [found[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(found)], strict=True)]
    shapes = [alpha.shape[1:] for _, alpha, _ in calls]
    return [np.column_stack(part).reshape(-1, *shape) for part, shape in zip(parts, shapes, strict=True)]


def _quad(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    if len(calls) == 1:
        return [gram.quad(*calls[0])]
    columns, cuts = _columns([alpha for alpha, _ in calls])
    return [part.sum(axis=0) for part in np.split(gram.quad_each(columns, calls[0][1]), cuts)]


def _products(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    if len(calls) == 1:
        return [gram.products(*calls[0])]
    columns = np.column_stack([alpha for alpha, _, _ in calls])
    return list(gram.products_each(columns, calls[0][1], [rows for _, _, rows in calls]))


def _subset(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    return [gram.subset(*calls[0])] * len(calls)


def _once(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    return [calls[0][0](gram)] * len(calls)


def _in_double(gram: Gram, calls: Sequence[Any]) -> list[Any]:
    return [gram.in_double()] * len(calls)


#: how requests of each kind are answered together
TOGETHER: dict[str, Callable[[Gram, Sequence[Any]], list[Any]]] = {
    "combine": _combine,
    "rows": _rows,
    "square": _square,
    "dot": _dot,
    "quad": _quad,
    "products": _products,
    "subset": _subset,
    "once": _once,
    "in_double": _in_double,
}


def _columns(alphas: Sequence[FloatArray]) -> tuple[FloatArray, list[int]]:
    """Columns of several alphas side by side, and where each but the first begins."""
    shaped = [alpha.reshape(len(alpha), -1) for alpha in alphas]
    return np.hstack(shaped), np.cumsum([part.shape[1] for part in shaped])[:-1].tolist()
