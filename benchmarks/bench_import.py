"""Time of ``import kernelweave`` in a fresh process, against the promise of one second."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

PROMISE = 1.0
REPEATS = 7


def seconds(statement: str) -> float:
    """Wall time of a fresh interpreter that runs `statement`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def median_seconds(statement: str) -> float:
    return statistics.median(seconds(statement) for _ in range(REPEATS))


def main() -> int:
    bare = median_seconds("pass")
    total = median_seconds("import kernelweave")
    estimators = median_seconds("from kernelweave import MKLClassifier")
    print(f"python alone                          {bare:.3f} s")
    print(f"import kernelweave                    {total:.3f} s   (promised: under {PROMISE:g} s)")
    print(f"from kernelweave import MKLClassifier {estimators:.3f} s")
    return int(total >= PROMISE)


if __name__ == "__main__":
    sys.exit(main())
