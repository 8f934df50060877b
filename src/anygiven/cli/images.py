"""What the commands do with an image model."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from anygiven.cli.commands import Commands, Options, drawing_options
from anygiven.cli.outputs import tell
from anygiven.disk import check_file_place, is_stream, write_whole
from anygiven.errors import ImageError, QuestionError
from anygiven.estimators import ImageDensity
from anygiven.variables.images import MASKS, draw_mask, images_array, read_images, read_picture, write_picture
from anygiven.variables.tables import check_writable, write_table

GAP = 2  # pixels between pictures
SMALLEST = 96  # pictures are shown at least so wide


class ImageCommands(Commands):
    noun = "images"
    takes: ClassVar = {"fit": ("--element", "--n-components"), "score": ("--query", "--given"), "sample": ("--groups",)}
    instead: ClassVar = {
        "ask": "ask it with anygiven inpaint {model} IMAGE --mask box.",
        "impute": "complete images with anygiven inpaint {model} IMAGE.",
    }

    def own(self, options: Options) -> dict[str, Any]:
        return {"element": options["--element"], "n_components": options["--n-components"]}

    def hint(self, density: ImageDensity, out: Path) -> str:
        return f"Draw from it: anygiven sample {out} --rows 16 --out drawn.png"

    def score(self, density: ImageDensity, source: Path, out: Path | None, options: Options, as_json: bool) -> None:
        score_images(density, source, options["--query"], options["--given"], out, as_json)

    def sample(
        self, density: ImageDensity, n: int, given: str, out: Path | None, options: Options, as_json: bool
    ) -> None:
        sample_images(density, n, given, out, drawing_options(options))

    def inpaint(self, density: ImageDensity, model: Path, source: Path, out: Path, options: Options) -> None:
        which = options["--index"], options["--mask"], options["--n"]
        inpaint_image(density, source, *which, out, options["--seed"], drawing_options(options))


def sample_images(density: ImageDensity, n: int, given: str, out: Path | None, options: dict) -> None:
    """A grid of new images as PNG, or all of them as npz."""
    if given:
        raise QuestionError("Images are completed with anygiven inpaint MODEL IMAGE --mask MASK --out OUT.png.")
    out = _picture_path(out)
    drawn = density.sample(n, **options)
    _write(out, drawn, 256 if density.variables_.white else density.variables_.n_levels, math.ceil(n**0.5))
    tell(out, f"{n} images written to {out}.")


def inpaint_image(density: ImageDensity, image: Path, index: int, mask: str, n: int, out: Path, seed: int,
                  options: dict) -> None:  # fmt: skip
    """What is given, n completions, and the image itself, side by side; as npz the completions alone."""
    out = _picture_path(out)
    images = read_images(image, density.variables_.n_levels)
    if not 0 <= index < len(images):
        raise QuestionError(f"There is no image {index} in {image}; there are {len(images)}, counted from 0.")
    truth = images.levels[index]
    is_known = _read_mask(mask, truth.shape[:2], seed)
    filled = density.inpaint(truth, is_known, n, **options).clip(max=density.variables_.n_levels - 1)
    if out.suffix == ".npz":
        _write(out, filled * (images.white or density.variables_.white or 1), density.variables_.n_levels, n)
        tell(out, f"{n} completions written to {out}.")
        return
    known = np.where(is_known[..., None], truth, density.variables_.n_levels // 2)
    shown = [known, *filled.reshape(n, *truth.shape), truth]
    if density.variables_.n_levels == 2:  # grey for what is not known
        shown = [255 * picture for picture in shown]
        shown[0] = np.where(is_known[..., None], 255 * truth.astype(int), 128)
    n_levels = 256 if density.variables_.n_levels == 2 else density.variables_.n_levels
    _write(out, np.stack(shown), n_levels, len(shown))
    tell(out, f"What is given, {n} completions and the image written to {out}.")


def score_images(density: ImageDensity, source: Path, query: str, given: str, out: Path | None, as_json: bool) -> None:
    """Bits per dimension: of all pixels, of a mask's, or of a mask's given another's."""
    if out is not None:
        check_writable(out)
    size = density.variables_.size[:2]
    where, known = (_read_mask(mask, size, 0) if mask else None for mask in (query, given))
    log_p = density.log_prob(source, query=where, given=known)
    if out is not None:
        write_table(pd.DataFrame({"log_prob": log_p}), out)
    asked = where if where is not None else np.ones(size, dtype=bool) if known is None else ~known
    bits = float(-log_p.mean() / math.log(2) / max(1, asked.sum() * density.variables_.size[2]))
    if as_json:
        tell(out, json.dumps({"bits_per_dim": bits, "nats": float(-log_p.mean()), "images": len(log_p)}))
    else:
        tell(out, f"{bits:.4f} bits per dimension, {-log_p.mean():.3f} nats an image, over {len(log_p):,} images.")
        if out is not None:
            tell(out, f"Log probabilities of the images written to {out}.")


def _picture_path(out: Path | None) -> Path:
    """A PNG or npz; a pipe or standard output gets a PNG."""
    if out is None or (out.suffix not in (".png", ".npz") and not is_stream(out)):
        raise QuestionError("Images are written to a file: --out drawn.png, or .npz for the numbers.")
    check_file_place(out)
    return out


def _read_mask(mask: str, size: tuple[int, ...], seed: int) -> np.ndarray:
    """A file that is white where the image is known, or the name of a mask."""
    if mask in MASKS:
        return draw_mask(mask, size, seed)
    path = Path(mask)
    if path.suffix == ".npz" and path.exists():
        known = images_array(path)
        return known > 0 if known.ndim == 2 else known
    if not path.exists():
        raise ImageError(f"There is no mask {mask!r}: give a picture that is white where the image is known, or one of "
                         f"{', '.join(MASKS)}.")  # fmt: skip
    bright = read_picture(path)[..., 0]
    if 0 < bright.max() < 128:
        raise ImageError(
            f"The mask {path} has no white pixel (its brightest is {bright.max()} of 255); white is known."
        )
    return bright >= 128


def _write(out: Path, images: np.ndarray, n_levels: int, n_columns: int) -> None:
    if out.suffix == ".npz":
        write_whole(out, lambda file: np.savez_compressed(file, images=images))
        return
    grid = tiled(images if images.ndim == 4 else images[..., None], n_levels, n_columns)
    write_whole(out, lambda file: write_picture(file, grid))


def tiled(images: np.ndarray, n_levels: int, n_columns: int) -> np.ndarray:
    """(n, height, width, channels) in a grid with gaps between them, small ones enlarged; levels 0 to 255."""
    bright = np.round(images.astype(float) * (255 / (n_levels - 1))).astype(np.uint8)
    zoom = max(1, math.ceil(SMALLEST / bright.shape[2]))
    bright = bright.repeat(zoom, axis=1).repeat(zoom, axis=2)
    n, height, width, channels = bright.shape
    n_rows = math.ceil(n / n_columns)
    grid = np.full((n_rows * (height + GAP) - GAP, n_columns * (width + GAP) - GAP, channels), 200, dtype=np.uint8)
    for k, picture in enumerate(bright):
        top, left = (k // n_columns) * (height + GAP), (k % n_columns) * (width + GAP)
        grid[top : top + height, left : left + width] = picture
    return grid
