"""Loaders on small files that look like the real ones; another file, a cut one or another version is one sentence."""

import io
import tarfile
import zipfile

import numpy as np
import pandas as pd
import pytest

from anygiven.datasets import maf
from anygiven.datasets.binary import N_ROWS, N_VARIABLES, PARTS, binary_set
from anygiven.datasets.images import image_set, labels
from anygiven.datasets.pictures import CIFAR_FILES, CIFAR_RECORD, N_IMAGENET, celeba_hq, cifar10, imagenet
from anygiven.datasets.text8 import text8
from anygiven.datasets.uci import uci_table
from anygiven.errors import AnyGivenError

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("ANYGIVEN_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    return tmp_path


def put(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


MISSING = {
    "power": lambda: maf.maf_set("power"), "gas": lambda: maf.maf_set("gas"), "hepmass": lambda: maf.maf_set("hepmass"),
    "miniboone": lambda: maf.maf_set("miniboone"), "bsds300": lambda: maf.maf_set("bsds300"),
    "nltcs": lambda: binary_set("nltcs"), "yacht": lambda: uci_table("yacht"), "mnist": lambda: image_set("mnist"),
    "text8": text8, "cifar10": cifar10, "imagenet": imagenet, "celeba": celeba_hq,
}  # fmt: skip


@pytest.mark.parametrize("name", MISSING)
def test_what_is_not_here_says_where_to_get_it(name):
    with pytest.raises(AnyGivenError, match=r"is not here: get it from .* ANYGIVEN_DATA"):
        MISSING[name]()


def is_standard(splits: maf.Splits) -> bool:
    seen = np.vstack([splits.train, splits.valid])
    return bool(np.allclose(seen.mean(0), 0, atol=1e-6) and np.allclose(seen.std(0), 1, atol=1e-6))


# ------------------------------------------------------------------ MAF's five


def household(n=400) -> pd.DataFrame:
    meters = {f"m{k}": RNG.random(n) for k in range(7)}
    clock = [f"{h:02}:{m:02}:00" for h, m in zip(RNG.integers(0, 24, n), RNG.integers(0, 60, n), strict=True)]
    return pd.DataFrame({"Date": ["16/12/2006"] * n, "Time": clock, **meters})


def test_a_month_of_power(data):
    household().to_csv(put(data, "density/household_power_one_month.csv.gz"), index=False)
    splits = maf.maf_set("power", whole=False)
    assert [len(part) for part in (splits.train, splits.valid, splits.test)] == [324, 36, 40]
    assert splits.n_columns == 6
    assert not splits.is_whole
    assert is_standard(splits)
    assert np.array_equal(maf.maf_set("power", whole=False).test, splits.test)  # the same rows and noise each time


def test_the_whole_of_power_must_be_whole(data):
    np.save(put(data, "maf/power/data.npy"), RNG.random((100, 8)))
    with pytest.raises(AnyGivenError, match=r"cut short: it has the shape \(100, 8\), not 2,049,280"):
        maf.maf_set("power")


def test_power_with_question_marks_and_semicolons(data):
    frame = household().astype({"m0": object})
    frame.loc[:9, "m0"] = "?"
    path = put(data, "density/household_power_one_month.csv.gz")
    frame.to_csv(path, index=False, sep=";")
    assert sum(len(p) for p in (maf.power().train, maf.power().valid, maf.power().test)) == 390
    path.write_bytes(b"this is no gzip")
    with pytest.raises(AnyGivenError, match="is not UCI's household power"):
        maf.power()


def test_gas_leaves_out_what_says_nearly_the_same(data):
    sensors = RNG.normal(size=(200, 16))
    sensors[:, 5] = sensors[:, 2] + 1e-3 * RNG.normal(size=200)
    table = np.column_stack([np.arange(200), RNG.random((200, 2)), sensors])
    path = put(data, "maf/gas/ethylene_CO.txt")
    np.savetxt(path, table, header="Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings", comments="")
    splits = maf.maf_set("gas")
    assert splits.n_columns == 15
    assert np.abs(np.corrcoef(splits.train.T) - np.eye(15)).max() < maf.TOO_ALIKE
    np.savetxt(path, np.ones((30, 19)), header="x", comments="")
    with pytest.raises(AnyGivenError, match="a column of it is always the same"):
        maf.maf_set("gas")
    path.write_text("nothing\nto see here")
    with pytest.raises(AnyGivenError, match=r"ethylene_CO.txt is"):
        maf.maf_set("gas")


def test_hepmass_has_the_signal_and_no_repeated_values(data):
    def collisions(n, extra):
        values = RNG.normal(size=(n, 27 + extra))
        values[:, 4] = RNG.integers(0, 3, n)  # repeats
        return pd.DataFrame(np.column_stack([RNG.integers(0, 2, n), values]))

    train, test = collisions(300, 0), collisions(100, 1)
    train.to_csv(put(data, "maf/hepmass/1000_train.csv"), index=False)
    test.to_csv(put(data, "maf/hepmass/1000_test.csv"), index=False)
    splits = maf.maf_set("hepmass")
    assert splits.n_columns == 26
    assert len(splits.train) + len(splits.valid) == int((train[0] == 1).sum())
    assert len(splits.test) == int((test[0] == 1).sum())
    pd.DataFrame(RNG.normal(size=(50, 5))).to_csv(data / "maf/hepmass/1000_train.csv", index=False)
    with pytest.raises(AnyGivenError, match="is not HEPMASS"):
        maf.maf_set("hepmass")


def test_miniboone_whole_or_in_part(data):
    np.savez(put(data, "density/miniboone_first1523rows.npz"), data=RNG.normal(3, 2, (200, 43)))
    part = maf.maf_set("miniboone", whole=False)
    assert (part.n_columns, part.is_whole, is_standard(part)) == (43, False, True)
    with pytest.raises(AnyGivenError, match=r"Of miniboone only 200 rows are here: get the whole from .* whole=False"):
        maf.maf_set("miniboone")
    np.save(put(data, "maf/miniboone/data.npy"), RNG.normal(size=(36_488, 43)).astype(np.float32))
    assert [len(p) for p in (maf.miniboone().train, maf.miniboone().valid, maf.miniboone().test)] == [29556, 3284, 3648]
    (data / "maf/miniboone/data.npy").write_bytes((data / "maf/miniboone/data.npy").read_bytes()[:1000])
    with pytest.raises(AnyGivenError, match="another file or cut short"):
        maf.maf_set("miniboone")


def test_bsds300_patches_are_without_their_mean(data):
    grey = {
        part: RNG.integers(0, 256, (n, 64)).astype(np.uint8) for part, n in (("train", 50), ("val", 20), ("test", 20))
    }
    np.savez(put(data, "density/bsds300_patches_uint8.npz"), **grey)
    splits = maf.maf_set("bsds300", whole=False)
    assert splits.n_columns == 63
    whole = np.column_stack([splits.train, -splits.train.sum(1)])  # the pixel that was dropped
    assert np.abs(whole).max() < 1
    h5py = pytest.importorskip("h5py")
    with h5py.File(put(data, "maf/BSDS300/BSDS300.hdf5"), "w") as file:
        for part in ("train", "validation", "test"):
            file[part] = RNG.normal(size=(30, 63))
    with pytest.raises(AnyGivenError, match="not 1,000,000 rows"):
        maf.maf_set("bsds300")
    (data / "maf/BSDS300/BSDS300.hdf5").write_bytes(b"no hdf5")
    with pytest.raises(AnyGivenError, match=r"is not MAF's BSDS300\.hdf5"):
        maf.maf_set("bsds300")


def test_there_are_five():
    with pytest.raises(AnyGivenError, match="no density set 'iris'"):
        maf.maf_set("iris")


# ------------------------------------------------------------------ bits, texts, pictures


def bits_of(name: str, part: str) -> np.ndarray:
    return RNG.integers(0, 2, (N_ROWS[name][PARTS.index(part)], N_VARIABLES[name])).astype(np.uint8)


def test_binary_sets_packed_or_as_the_repository_has_them(data):
    packed, plain = bits_of("nltcs", "test"), bits_of("dna", "valid")
    np.savez(put(data, "binary/nltcs.npz"), n_vars=16, test=np.packbits(packed, axis=1))
    assert np.array_equal(binary_set("nltcs", "test"), packed)
    np.savetxt(put(data, "binary/dna/dna.valid.data"), plain, fmt="%d", delimiter=",")
    assert np.array_equal(binary_set("dna", "valid"), plain)


OTHER_FILES = {
    "fewer rows": lambda packed: packed[:-1], "other columns": lambda packed: packed[:, 1:],
    "numbers": lambda packed: packed.astype(float), "one side": lambda packed: packed[:, 0],
}  # fmt: skip


@pytest.mark.parametrize("other", OTHER_FILES)
def test_a_packed_binary_set_that_is_another_is_refused(data, other):
    packed = np.packbits(bits_of("dna", "valid"), axis=1)
    np.savez(put(data, "binary/dna.npz"), valid=OTHER_FILES[other](packed))
    with pytest.raises(AnyGivenError, match="the valid part of dna has 400 rows of 180 zeros and ones; get it again"):
        binary_set("dna", "valid")
    with pytest.raises(AnyGivenError, match="another file or cut short"):
        binary_set("dna", "test")


@pytest.mark.parametrize(("text", "said"), [("1,0,x\n", "is another file"), ("1,0,2\n", "69 zeros and ones")])
def test_a_plain_binary_set_that_is_another_is_refused(data, text, said):
    put(data, "binary/plants/plants.train.data").write_text(text)
    with pytest.raises(AnyGivenError, match=said):
        binary_set("plants")


def test_binary_sets_that_there_are_not():
    with pytest.raises(AnyGivenError, match="no binary set"):
        binary_set("iris")
    with pytest.raises(AnyGivenError, match="no part 'all'; it has train, valid, test"):
        binary_set("dna", "all")


def test_uci_tables_are_checked(data):
    table = RNG.normal(size=(308, 7))
    np.savez(put(data, "uci/yacht.npz"), data=table)
    assert np.array_equal(uci_table("yacht"), table)
    for other in (table[:-1], table[:, 1:], np.where(table > 2, np.nan, table), table.astype(str)):
        np.savez(put(data, "uci/yacht.npz"), data=other)
        with pytest.raises(AnyGivenError, match="yacht has 308 rows of 7 numbers"):
            uci_table("yacht")
    put(data, "uci/yacht.npz").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(AnyGivenError, match="another file or cut short"):
        uci_table("yacht")
    with pytest.raises(AnyGivenError, match="no UCI table 'iris'; there are concrete"):
        uci_table("iris")


def test_small_images_are_checked(data):
    digits = RNG.integers(0, 256, (5, 28, 28)).astype(np.uint8)
    np.savez(put(data, "images/mnist.npz"), x_train=digits, y_train=digits[:, 0, 0], x_test=digits[0])
    assert np.array_equal(image_set("mnist"), digits)
    assert np.array_equal(labels("mnist"), digits[:, 0, 0])
    with pytest.raises(AnyGivenError, match="is another file: it has the shape"):
        image_set("mnist", "test")
    with pytest.raises(AnyGivenError, match="another file or cut short"):
        image_set("mnist", "valid")


def test_text8_is_split_ninety_five_five(data):
    text = "".join(RNG.choice(list("abc "), 2000))
    with zipfile.ZipFile(put(data, "text/text8.zip"), "w") as archive:
        archive.writestr("text8", text)
    parts = [text8(part, 2000) for part in ("train", "valid", "test")]
    assert "".join(parts) == text
    assert [len(part) for part in parts] == [1800, 100, 100]
    with pytest.raises(AnyGivenError, match="100,000,000 of a to z and space: it has 2,000 characters"):
        text8()
    with pytest.raises(AnyGivenError, match="n_characters is 'x'"):
        text8("train", "x")  # type: ignore[arg-type]
    with zipfile.ZipFile(put(data, "text/text8.zip"), "w") as archive:
        archive.writestr("text8", text[:-1] + "!")
    with pytest.raises(AnyGivenError, match="a '!' is in it"):
        text8("train", 2000)
    with pytest.raises(AnyGivenError, match="no part 'dev'"):
        text8("dev")
    (data / "text/text8.zip").write_bytes(b"PK nothing")
    with pytest.raises(AnyGivenError, match="another file or cut short"):
        text8()


def test_cifar10_from_the_binary_archive(data):
    pixels = RNG.integers(0, 256, (4, 3, 32, 32)).astype(np.uint8)
    record = np.column_stack([np.zeros(4, dtype=np.uint8), pixels.reshape(4, -1)]).tobytes()
    path = put(data, "images/cifar-10-binary.tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        for name in [*CIFAR_FILES["train"], *CIFAR_FILES["test"]]:
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = len(record)
            archive.addfile(info, io.BytesIO(record))
    assert len(record) == 4 * CIFAR_RECORD
    images = cifar10("test", 4)
    assert np.array_equal(images, pixels.transpose(0, 2, 3, 1))
    assert cifar10("train", 4).shape == (20, 32, 32, 3)
    with pytest.raises(AnyGivenError, match="no 10,000 images in a file"):
        cifar10("test")
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(AnyGivenError, match="another file or cut short"):
        cifar10("test", 4)


def test_imagenet_of_all_its_files(data, monkeypatch):
    monkeypatch.setitem(N_IMAGENET, "train", 6)
    for k in (1, 2):
        np.savez(put(data, f"images/Imagenet32_train_npz/train_data_batch_{k}.npz"),
                 data=np.full((3, 3072), k, dtype=np.uint8))  # fmt: skip
    images = imagenet(32)
    assert images.shape == (6, 32, 32, 3)
    assert images[:3].max() == 1
    with pytest.raises(AnyGivenError, match="not 48, 'train'"):
        imagenet(48)
    monkeypatch.setitem(N_IMAGENET, "train", 7)
    with pytest.raises(AnyGivenError, match="has 6 of 7 images; get all from"):
        imagenet(32)
    np.savez(data / "images/Imagenet32_train_npz/train_data_batch_3.npz", data=np.zeros((3, 12), dtype=np.uint8))
    with pytest.raises(AnyGivenError, match="is not ImageNet at 32"):
        imagenet(32)


def test_celeba_is_made_small(data):
    from PIL import Image

    for k in range(2):
        Image.fromarray(RNG.integers(0, 256, (128, 128, 3)).astype(np.uint8)).save(
            put(data, f"images/celeba_hq/{k}.png")
        )
    assert celeba_hq().shape == (2, 64, 64, 3)
    for size in (0, -1, 2.5, "64"):
        with pytest.raises(AnyGivenError, match="it must be a whole number"):
            celeba_hq(size)  # type: ignore[arg-type]
    (data / "images/celeba_hq/2.png").write_bytes(b"no png")
    with pytest.raises(AnyGivenError, match="damaged or no picture"):
        celeba_hq()
