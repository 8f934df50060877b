"""Small images that the papers use: MNIST (also binarized), Fashion-MNIST, the first images of CIFAR-10."""

from __future__ import annotations

import numpy as np

from anygiven.datasets.files import find_file, read_array
from anygiven.datasets.pictures import imagenet
from anygiven.errors import ImageError

FILES = {
    "binarized-mnist": ("binarized_mnist_larochelle", "Larochelle's fixed binarization, its bits packed"),
    "mnist": ("mnist", "torchvision's MNIST"),
    "fashion-mnist": ("fashion_mnist", "torchvision's FashionMNIST"),
    "cifar10": ("cifar10_subset", "torchvision's CIFAR10, its first 12,000 and 2,000 images"),
}


def image_set(name: str, part: str = "train") -> np.ndarray:
    """(n, height, width[, channels]) of "train" or "test"; the binarized digits have "valid" too."""
    return _load(name, part, "x_")


def labels(name: str, part: str = "train") -> np.ndarray:
    """(n,) what is on each image."""
    return _load(name, part, "y_")


def _load(name: str, part: str, prefix: str) -> np.ndarray:
    if name == "imagenet32" and prefix == "x_":
        return imagenet(32, "train" if part == "train" else "val")
    if name not in FILES:
        raise ImageError(f"There are no images {name!r}; there are {', '.join(FILES)}, imagenet32.")
    file, origin = FILES[name]
    path = find_file(f"images/{file}.npz", origin)
    found = read_array(path, part if name == "binarized-mnist" else f"{prefix}{part}")
    n_sides = 1 if prefix == "y_" else 2 if name == "binarized-mnist" else 4 if name == "cifar10" else 3
    if found.ndim != n_sides or found.dtype != np.uint8 or len(found) == 0:
        raise ImageError(f"{path} is another file: it has the shape {found.shape}; get it again: {origin}.")
    return np.unpackbits(found, axis=1)[:, :784].reshape(-1, 28, 28) if name == "binarized-mnist" else found
