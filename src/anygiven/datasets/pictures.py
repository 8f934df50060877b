"""CIFAR-10, ImageNet at 32 and 64 pixels, CelebA-HQ at 64: the papers' images, from what a user downloads."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np

from anygiven.datasets.files import find_file, read_array
from anygiven.errors import ImageError, TableError, require

CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
IMAGENET = "https://image-net.org/download-images.php (downsampled, npz)"
CELEBA = "https://github.com/tkarras/progressive_growing_of_gans (CelebA-HQ), as PNG or JPEG files in one folder"
CIFAR_FILES = {"train": [f"data_batch_{k}.bin" for k in range(1, 6)], "test": ["test_batch.bin"]}
N_IMAGENET = {"train": 1_281_167, "val": 50_000}
CIFAR_RECORD = 1 + 3 * 32 * 32  # a label, then the three colours one after the other


def cifar10(part: str = "train", images_per_file: int = 10_000) -> np.ndarray:
    """(n, 32, 32, 3) uint8 of the binary version, which holds no pickles."""
    if part not in CIFAR_FILES:
        raise ImageError(f"CIFAR-10 has no part {part!r}; it has {', '.join(CIFAR_FILES)}.")
    path = find_file("images/cifar-10-binary.tar.gz", CIFAR)
    found = []
    try:
        with tarfile.open(path) as archive:
            for name in CIFAR_FILES[part]:
                file = archive.extractfile(f"cifar-10-batches-bin/{name}")
                found.append(np.frombuffer(file.read() if file else b"", dtype=np.uint8))
    except (tarfile.TarError, KeyError, OSError, EOFError) as error:
        raise ImageError(f"{path} is another file or cut short ({type(error).__name__}); get {CIFAR} again.") from None
    if any(len(one) != images_per_file * CIFAR_RECORD for one in found):
        raise ImageError(f"{path} is another version: no {images_per_file:,} images in a file; get {CIFAR}.")
    records = np.concatenate(found).reshape(-1, CIFAR_RECORD)[:, 1:]
    return records.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def imagenet(size: int = 32, part: str = "train") -> np.ndarray:
    """(n, size, size, 3) uint8 of all files of a part: Imagenet32_train_npz/train_data_batch_1.npz, …; val_data.npz."""
    if size not in (32, 64) or part not in ("train", "val"):
        raise ImageError(f"ImageNet is here at 32 or 64 pixels, train or val; not {size!r}, {part!r}.")
    folder = find_file(f"images/Imagenet{size}_{part}_npz", IMAGENET)
    files = sorted(folder.glob("*_data*.npz"))
    if not files:
        raise ImageError(f"{folder} holds no npz files of ImageNet; get them from {IMAGENET}.")
    images = np.concatenate([_imagenet_file(path, size) for path in files])
    if len(images) != N_IMAGENET[part]:
        raise ImageError(f"{folder} has {len(images):,} of {N_IMAGENET[part]:,} images; get all from {IMAGENET}.")
    return images


def _imagenet_file(path: Path, size: int) -> np.ndarray:
    try:
        flat = read_array(path, "data")
    except TableError as error:
        raise ImageError(str(error)) from None
    if flat.ndim != 2 or flat.shape[1] != 3 * size * size or flat.dtype != np.uint8:
        raise ImageError(f"{path} is not ImageNet at {size} pixels: it holds {flat.dtype} of the shape {flat.shape}.")
    return flat.reshape(-1, 3, size, size).transpose(0, 2, 3, 1)


def celeba_hq(size: int = 64) -> np.ndarray:
    """(n, size, size, 3) uint8, each picture of the folder made that small."""
    Image = require("PIL.Image", "images")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ImageError(f"size is {size!r}; it must be a whole number of at least 1.")
    folder = find_file("images/celeba_hq", CELEBA)
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in (".png", ".jpg", ".jpeg"))
    if not files:
        raise ImageError(f"{folder} holds no pictures; get them from {CELEBA}.")
    found = []
    for path in files:
        try:
            with Image.open(path) as picture:
                found.append(np.asarray(picture.convert("RGB").resize((size, size), Image.Resampling.BOX)))
        except OSError:
            raise ImageError(f"{path} is damaged or no picture; get it again from {CELEBA}.") from None
    return np.stack(found)
