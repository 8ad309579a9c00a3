from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from scipy.io import savemat

from kernelweave import datasets
from kernelweave.app.datasets import ChecksumError, DataNotFoundError, catalogue, loading

Publish = Callable[..., catalogue.Dataset]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Puts contents at addresses of this machine as the origin of a data set; nothing else is found."""
    monkeypatch.setenv("KERNELWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(loading, "folders", lambda: [tmp_path / "own", loading.cache_folder()])

    def put(name: str, *contents: bytes, sha256: str | None = None) -> catalogue.Dataset:
        urls = []
        for k, content in enumerate(contents):
            path = tmp_path / f"file{k}"
            path.write_bytes(content)
            urls.append(path.as_uri())
        known = catalogue.info(name)
        record = dataclasses.replace(known, urls=tuple(urls), openml=None, sha256=sha256 or known.sha256)
        monkeypatch.setitem(catalogue._BY_NAME, name, record)
        return record

    return put


SONAR = b"0.1,0.2,R\n0.3,0.4,M\n"
SONAR_ARRAYS = {"X": np.array([[0.1, 0.2], [0.3, 0.4]]), "y": np.array([-1, 1])}


def test_what_is_downloaded_is_checked_cached_and_not_downloaded_again(
    publish: Publish, tmp_path: Path
) -> None:
    publish("sonar", SONAR, sha256=loading.digest(SONAR_ARRAYS))
    data = datasets.load("sonar")
    np.testing.assert_allclose(data.X, SONAR_ARRAYS["X"], rtol=1e-7)
    assert data.y.tolist() == [-1, 1]
    (tmp_path / "file0").unlink()
    np.testing.assert_array_equal(datasets.load("sonar").X, data.X)
    assert datasets.find("sonar") == tmp_path / "cache" / "sonar.npz"


def test_a_wrong_checksum_is_refused_and_nothing_is_kept(publish: Publish, tmp_path: Path) -> None:
    publish("sonar", SONAR)
    with pytest.raises(
        ChecksumError, match=r"sonar from file:.* has SHA-256 .* is expected.*KERNELWEAVE_DATA"
    ):
        datasets.load("sonar")
    assert not (tmp_path / "cache").exists()


def test_a_damaged_cache_is_seen(publish: Publish, tmp_path: Path) -> None:
    publish("sonar", SONAR, sha256=loading.digest(SONAR_ARRAYS))
    datasets.load("sonar")
    np.savez(tmp_path / "cache" / "sonar.npz", **{**SONAR_ARRAYS, "y": np.array([1, 1])})
    with pytest.raises(ChecksumError, match=r"sonar\.npz \(delete it to download it again\)"):
        datasets.load("sonar")


@pytest.mark.parametrize("content", [b"<html>moved</html>\n", b"", b"0.1,0.2,R\n0.3,M\n"])
def test_pages_in_place_of_data_are_refused(publish: Publish, content: bytes) -> None:
    publish("sonar", content)
    with pytest.raises(ChecksumError, match="is not what it was"):
        datasets.load("sonar")


def test_without_a_network_one_error_names_the_file_and_the_places(
    publish: Publish, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("sonar", SONAR)

    def offline(*_: object, **__: object) -> None:
        raise URLError("Name or service not known")

    monkeypatch.setattr(loading.urllib.request, "urlopen", offline)
    with pytest.raises(DataNotFoundError) as caught:
        datasets.load("sonar")
    message = str(caught.value)
    for part in (
        "sonar.npz",
        str(tmp_path / "own"),
        str(tmp_path / "cache"),
        "KERNELWEAVE_DATA",
        "not known",
    ):
        assert part in message


def test_sets_without_an_address_say_so(publish: Publish) -> None:
    with pytest.raises(DataNotFoundError, match=r"gasoline\.npz is not .*no public address is known"):
        datasets.load("gasoline")


def test_openml_is_asked_for_its_number(publish: Publish, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.array([[1.0, 2.0, "tested_positive"], [3.0, 4.0, "tested_negative"]], dtype=object)
    asked = []

    def fetch_openml(**options: object) -> object:
        asked.append(options["data_id"])
        from sklearn.utils import Bunch

        return Bunch(data=values, feature_names=["preg", "plas", "class"])

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    wanted = {"X": np.array([[1.0, 2.0], [3.0, 4.0]]), "y": np.array([1, -1])}
    record = dataclasses.replace(catalogue.info("pima"), sha256=loading.digest(wanted))
    monkeypatch.setitem(catalogue._BY_NAME, "pima", record)
    np.testing.assert_array_equal(datasets.load("pima").X, wanted["X"])
    assert asked == [37]


def test_the_digest_knows_content_from_form() -> None:
    one = {"X": np.array([[1.0, np.nan], [0.0, 4.0]]), "y": np.arange(2)}
    same = {"y": np.arange(2.0), "X": np.asfortranarray(one["X"]), "classes": np.array(["a", "b"])}
    assert loading.digest(one) == loading.digest(same)
    for changed in ({**one, "y": np.array([1, 0])}, {**one, "X": one["X"].T}, {"X": one["X"]}):
        assert loading.digest(changed) != loading.digest(one)


def mat(**arrays: object) -> bytes:
    file = io.BytesIO()
    savemat(file, arrays)
    return file.getvalue()


def cell(*parts: object) -> np.ndarray:
    found = np.empty((1, len(parts)), dtype=object)
    for k, part in enumerate(parts):
        found[0, k] = part
    return found


def rows(X: np.ndarray, *labels: np.ndarray) -> bytes:
    """Numbers that read back as they are, and labels, by comma."""
    lines = [",".join([*map(repr, x.tolist()), *map(str, ends)]) for x, *ends in zip(X, *labels, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def original(name: str, arrays: dict[str, np.ndarray]) -> list[bytes] | list[np.ndarray]:
    """A data set in the form of its origin."""
    X, y = arrays.get("X"), arrays.get("y")
    signs = {"ionosphere": "bg", "sonar": "RM", "magic04": "hg", "spambase": "01", "liver": "12"}
    if name in signs:
        return [rows(X, np.where(y > 0, signs[name][1], signs[name][0]))]
    if name == "wpbc":
        lines = rows(arrays["X_full"], np.where(arrays["y_full"] > 0, "R", "N")).decode().replace("nan", "?")
        table = [line.split(",") for line in lines.splitlines()]
        return ["\n".join(",".join(["7", line[-1], *line[:-1]]) for line in table).encode()]
    if name == "mushroom":
        columns = [np.array([*code])[X[:, j]] for j, code in enumerate(arrays["categories"])]
        lines = zip(np.where(y > 0, "p", "e"), *columns, strict=True)
        return ["\n".join(",".join(line) for line in lines).encode()]
    if name == "pima":
        labels = np.where(y > 0, "tested_positive", "tested_negative")
        return [np.column_stack([X.astype(object), labels.astype(object)]), np.array(["x"])]
    if name == "mnist":
        both = np.vstack([X, arrays["X_test"]]), np.append(y, arrays["y_test"])
        return [np.column_stack(both), np.array(["x"])]
    if name == "tecator":
        names = [f"absorbance_{k}" for k in range(1, 101)] + ["moisture", "fat", "protein"]
        return [np.column_stack([X, arrays["Y"]]), np.array(names)]
    if name == "indian_pines":
        return [mat(indian_pines_corrected=arrays["cube"]), mat(indian_pines_gt=arrays["gt"])]
    if name == "ovarian_216x4000":
        groups = cell(*np.where(y > 0, "Cancer", "Normal")).T
        return [mat(obs=X, grp=groups)]
    if name == "swri_diesel":
        return [mat(diesel_spec={"data": X}, diesel_prop={"data": arrays["Y"]})]
    if name == "corn_nir":
        views = {f"{view}spec": {"data": arrays[f"X_{view}"]} for view in ("m5", "mp5", "mp6")}
        return [mat(**views, propvals={"data": arrays["Y"]})]
    if name == "multiloc_sequences":
        text, ends = arrays["seq_bytes"].tobytes().decode(), arrays["offsets"]
        parts = [
            f">some name\n{text[a : (a + b) // 2]}\n{text[(a + b) // 2 : b]}\n" for a, b in pairwise(ends)
        ]
        return ["".join(np.array(parts, dtype=object)[y == k]).encode() for k in range(11)]
    views = [arrays[f"X_{view}"] for view in arrays["view_names"]]
    return [mat(X=cell(*(view.T for view in views)), Y=y[:, None].astype(float) + 1)]


READ = [name for name in datasets.names() if catalogue.info(name).reader]


@pytest.mark.parametrize("name", [name for name in READ if name != "mnist"])
def test_readers_make_the_arrays_on_record(name: str, data_folder: Path) -> None:
    record = catalogue.info(name)
    with np.load(data_folder / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    assert record.reader is not None
    made = record.reader(original(name, arrays))
    loading.check(record, made, name)
    for key in set(made) & set(arrays) - {"wavelength_nm"}:
        assert made[key].dtype.kind == arrays[key].dtype.kind or key.startswith("X"), key
