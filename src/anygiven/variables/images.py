"""Images as variables: levels on a grid, from arrays, npz files and folders; and the masks that people draw."""

from __future__ import annotations

import os
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from anygiven.errors import AnyGivenWarning, ImageError, require
from anygiven.variables.domains import CELL, Levels, SharedDomain

ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp")
MAX_CHANNELS = len(CELL)
ELEMENTS = ("pixel", "channel")


@dataclass(frozen=True)
class Images:
    """n images of one size: levels (n, height, width, channels) uint8, each from 0 to n_levels − 1."""

    levels: np.ndarray
    n_levels: int
    white: int = 0  # 255 where two levels were given as 0 and 255

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def size(self) -> tuple[int, int, int]:
        """height, width, channels"""
        return self.levels.shape[1:]  # type: ignore[return-value]


def read_images(source, n_levels: int | None = None) -> Images:
    """An array (n, height, width[, channels]), an npz file, one picture, or a folder of pictures.

    Values are whole numbers: 0 and 1 (or 0 and 255 alone), or 0 to 255. `n_levels` says how many there are; by
    default two where no more occur, else 256.
    """
    array = images_array(source)
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4:
        raise ImageError(
            f"Images are an array (n, height, width) or (n, height, width, channels); this one has shape {array.shape}."
        )
    if not 1 <= array.shape[3] <= MAX_CHANNELS:
        raise ImageError(
            f"Images have 1 to {MAX_CHANNELS} channels, in the last axis; this array has shape {array.shape}."
        )
    if 0 in array.shape:
        raise ImageError(f"There is no image: the array has shape {array.shape}.")
    return _checked(array, n_levels)


def _checked(array: np.ndarray, n_levels: int | None) -> Images:
    if array.dtype == bool:
        array = array.astype(np.uint8)
    if not np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.complexfloating):
        raise ImageError(f"Pixels must be whole numbers; this array holds {array.dtype}.")
    low, high = array.min(), array.max()
    if not np.isfinite([low, high]).all():
        raise ImageError("Some pixels are not numbers; ask about them with a mask instead.")
    if not (array == np.round(array)).all():
        raise ImageError(
            "Pixels must be whole numbers and these are fractions; multiply by 255 and round: "
            "(255 * images).round().astype('uint8')."
        )
    if high == 255 and n_levels in (None, 2) and np.isin(array, (0, 255)).all():
        return Images((array // 255).astype(np.uint8), 2, white=255)  # black and white, as pictures hold it
    levels = n_levels or (2 if high <= 1 else 256)
    if low < 0 or high >= levels:
        todo = "; make them black and white: (images > 127).astype('uint8')" if levels == 2 and high <= 255 else ""
        raise ImageError(f"Pixels run from {low:g} to {high:g} and must lie between 0 and {levels - 1}{todo}.")
    if n_levels == 256 and high == 1:
        warnings.warn(
            "All pixels are 0 or 1 and the model has 256 levels, so 1 is nearly black; multiply by 255 if it is white.",
            AnyGivenWarning,
            stacklevel=3,
        )
    return Images(array.astype(np.uint8), levels)


def images_array(source) -> np.ndarray:
    """The numbers of an array, a file or a folder, as they are."""
    if isinstance(source, (str, os.PathLike)):
        path, name = Path(source), None
        if ".npz:" in str(source) and not path.exists():  # file.npz:name
            before, name = str(source).rsplit(":", 1)
            path = Path(before)
        if path.is_dir():
            return _read_folder(path)
        if not path.exists():
            raise ImageError(f"There is no file {path}; check the path.")
        if path.suffix == ".npz":
            return _read_npz(path, name)
        if path.suffix.lower() in ENDINGS:
            return read_picture(path)[None]
        raise ImageError(f"{path} is neither a folder, an npz file nor a picture ({', '.join(ENDINGS)}).")
    if hasattr(source, "detach"):
        source = source.detach().cpu().numpy()
    try:
        return np.asarray(source)
    except ValueError:
        raise ImageError("The images have different sizes; cut or scale them to one size.") from None


def _read_npz(path: Path, wanted: str | None) -> np.ndarray:
    """The array of this name; else that called images, data, train or x_train, or the only one."""
    try:
        with np.load(path, allow_pickle=False) as file:
            names = list(file)
            known = next((n for n in ("images", "data", "train", "x_train") if n in names), None)
            name = known or (names[0] if len(names) == 1 else None)
            if wanted is not None:
                name = wanted if wanted in names else None
            array = None if name is None else file[name]
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ImageError(f"{path} could not be read: {error}.") from None
    if array is None:
        raise ImageError(
            f"{path} has the arrays {', '.join(names)}; name one: {path}:{names[0] if names else 'images'}."
        )
    return array


def read_picture(path: Path) -> np.ndarray:
    """(height, width, channels) uint8; grey pictures have one channel, and what is transparent is white."""
    image = require("PIL.Image", "images")
    try:
        with image.open(path) as picture:
            if picture.mode.startswith("I"):  # sixteen bits: the upper eight are kept
                return (np.asarray(picture).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)[..., None]
            is_grey = picture.mode in ("1", "L", "LA")
            if picture.has_transparency_data:  # whatever colour lies under it, one sees the paper
                layers = picture.convert("RGBA")
                picture = image.alpha_composite(image.new("RGBA", picture.size, "white"), layers)
            levels = np.asarray(picture.convert("L" if is_grey else "RGB"), dtype=np.uint8)
            return levels[..., None] if is_grey else levels
    except (OSError, SyntaxError, ValueError, image.DecompressionBombError) as error:  # PIL has no common one
        raise ImageError(f"{path} could not be read: {error}.") from None


def _read_folder(folder: Path) -> np.ndarray:
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in ENDINGS)
    if not files:
        raise ImageError(f"There is no picture in {folder} ({', '.join(ENDINGS)}).")
    pictures = [read_picture(path) for path in files]
    for path, picture in zip(files, pictures, strict=True):
        if picture.shape != pictures[0].shape:
            raise ImageError(
                f"{path.name} is {_size(picture)} and {files[0].name} is {_size(pictures[0])}; "
                "cut or scale all pictures to one size, and make all grey or all in colour."
            )
    return np.stack(pictures)


def _size(picture: np.ndarray) -> str:
    height, width, channels = picture.shape
    return f"{width} by {height} in {'grey' if channels == 1 else 'colour'}"


def write_picture(file: Path | BinaryIO, levels: np.ndarray, n_levels: int = 256) -> None:
    """(height, width, channels) levels → a PNG."""
    image = require("PIL.Image", "images")
    bright = np.round(levels.astype(float) * (255 / (n_levels - 1))).astype(np.uint8)
    image.fromarray(bright[..., 0] if bright.shape[-1] == 1 else bright[..., :3]).save(file, format="PNG")


# ------------------------------------------------------------------ variables


def image_domains(images: Images, element: str) -> SharedDomain:
    """What is revealed at a time: a pixel with all its channels, or one channel of it."""
    if element not in ELEMENTS:
        raise ImageError(f"There is no element {element!r}; use one of {', '.join(ELEMENTS)}.")
    height, width, channels = images.size
    counts = np.bincount(images.levels[:: max(1, len(images) // 2000)].ravel(), minlength=images.n_levels)
    if channels == 1:
        return SharedDomain(Levels(tuple(counts.tolist())), (height, width))
    if element == "pixel":
        return SharedDomain(Levels(tuple(counts.tolist()), channels), (height, width))
    return SharedDomain(Levels(tuple(counts.tolist())), (height, width, channels))


def cells_of_images(levels: np.ndarray, domains: SharedDomain) -> np.ndarray:
    """(n, height, width, channels) → (n, N, 4) cells."""
    domain = domains.domain
    assert isinstance(domain, Levels)
    cells = np.zeros((len(levels), len(domains), len(CELL)), dtype=np.float32)
    cells[..., : domain.n_channels] = levels.reshape(len(levels), len(domains), domain.n_channels)
    return cells


def images_of_cells(cells: np.ndarray, domains: SharedDomain, size: tuple[int, int, int]) -> np.ndarray:
    """(n, N, 4) cells → (n, height, width, channels) uint8."""
    domain = domains.domain
    assert isinstance(domain, Levels)
    return cells[..., : domain.n_channels].round().astype(np.uint8).reshape(len(cells), *size)


# ------------------------------------------------------------------ masks

Mask = Callable[[int, int, np.random.Generator], np.ndarray]


def _box(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """A hidden box of half the height and width, somewhere."""
    known = np.ones((height, width), dtype=bool)
    top, left = rng.integers(height - height // 2 + 1), rng.integers(width - width // 2 + 1)
    known[top : top + height // 2, left : left + width // 2] = False
    return known


def _centre(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """A hidden box in the middle."""
    known = np.ones((height, width), dtype=bool)
    known[height // 4 : height - height // 4, width // 4 : width - width // 4] = False
    return known


def _half(side: str) -> Mask:
    def known(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
        row, column = np.mgrid[:height, :width]
        sides = {"left": column < width // 2, "right": column >= width // 2,
                 "top": row < height // 2, "bottom": row >= height // 2}  # fmt: skip
        return sides[side]

    return known


def _noise(height: int, width: int, rng: np.random.Generator, share: float = 0.3) -> np.ndarray:
    """Each pixel known by chance."""
    if not 0 <= share <= 1:
        raise ImageError(f"The share of known pixels is {share}; it must lie between 0 and 1.")
    return rng.random((height, width)) < share


def _strokes(height: int, width: int, rng: np.random.Generator, n: int = 4) -> np.ndarray:
    """Hidden strokes of a thick pen."""
    known = np.ones((height, width), dtype=bool)
    row, column = np.mgrid[:height, :width]
    radius = max(1.0, min(height, width) / 16)
    for _ in range(n):
        y, x, angle = rng.random() * height, rng.random() * width, rng.random() * 2 * np.pi
        for _ in range(max(height, width) // 2):
            known &= (row - y) ** 2 + (column - x) ** 2 > radius**2
            angle += rng.normal() * 0.3
            y, x = np.clip(y + np.sin(angle), 0, height - 1), np.clip(x + np.cos(angle), 0, width - 1)
    return known


MASKS: dict[str, Mask] = {
    "box": _box, "centre": _centre, "left": _half("left"), "right": _half("right"), "top": _half("top"),
    "bottom": _half("bottom"), "noise": _noise, "strokes": _strokes,
}  # fmt: skip


def draw_mask(kind: str, size: tuple[int, ...], random_state: int = 0, **options) -> np.ndarray:
    """(height, width) bool, True where a pixel is known.

    "box" and "centre" hide a box, "left", "right", "top" and "bottom" know that half, "noise" knows a `share` of the
    pixels, "strokes" hides `n` strokes of a pen.
    """
    if kind not in MASKS:
        raise ImageError(f"There is no mask {kind!r}; use one of {', '.join(MASKS)}.")
    try:
        known = MASKS[kind](size[0], size[1], np.random.default_rng(random_state), **options)
    except TypeError:
        raise ImageError(f"The mask {kind!r} has no option {', '.join(options)}.") from None
    return known
