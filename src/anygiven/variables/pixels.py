"""Images of one size as variables: pixels, or the channels of pixels; masks of them; and rows to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor

from anygiven.errors import ImageError, QuestionError
from anygiven.variables.domains import Levels, SharedDomain
from anygiven.variables.images import (
    MAX_CHANNELS,
    Images,
    cells_of_images,
    image_domains,
    images_array,
    images_of_cells,
    read_images,
)
from anygiven.variables.modelled import Variables
from anygiven.variables.rows import Data
from anygiven.variables.stored import Stored, StoredLevels

Side = Annotated[int, Meta(ge=1, le=2**16)]


class StoredImages(Stored):
    """What is modelled, as schema.json keeps it."""

    size: tuple[Side, Side, Annotated[int, Meta(ge=1, le=MAX_CHANNELS)]]
    shape: Annotated[list[Side], Meta(min_length=2, max_length=3)]
    domain: StoredLevels
    white: Annotated[int, Meta(ge=0, le=2**16)]

    def __post_init__(self):
        height, width, channels = self.size
        is_by_pixel = self.shape == [height, width] and self.domain.n_channels == channels
        if not is_by_pixel and not (self.shape == [height, width, channels] and self.domain.n_channels == 1):
            raise ValueError("the size of the images and the shape of the variables do not fit")


@dataclass(frozen=True)
class Pixels(Variables):
    """Images of one size; `white` is 255 where two levels were given as 0 and 255."""

    size: tuple[int, int, int]  # height, width, channels
    grid: SharedDomain
    white: int
    stored_type = StoredImages

    @property
    def domains(self) -> SharedDomain:
        return self.grid

    @classmethod
    def of(cls, images: Images, element: str) -> Pixels:
        return cls(images.size, image_domains(images, element), images.white)

    @property
    def domain(self) -> Levels:
        assert isinstance(self.domains.domain, Levels)
        return self.domains.domain

    @property
    def n_levels(self) -> int:
        return self.domain.n_symbols

    @property
    def shape(self) -> tuple[int, ...]:
        return self.domains.shape

    def to_json(self) -> dict[str, Any]:
        return {"size": list(self.size), "shape": list(self.shape), "domain": self.domain.to_json(),
                "white": self.white}  # fmt: skip

    @classmethod
    def from_stored(cls, stored: StoredImages) -> Pixels:
        return cls(stored.size, SharedDomain(stored.domain.read(), tuple(stored.shape)), stored.white)

    def name_of(self, variable: int) -> str:
        n_each = len(self.domains) // (self.size[0] * self.size[1])
        row, column = divmod(variable // n_each, self.size[1])
        return f"the pixel in row {row}, column {column}"

    def describe(self) -> str:
        return describe_size(self.size)

    # ------------------------------------------------------------------ images

    def encode(self, X) -> Tensor:
        """(n, N, 4) cells of images of this size."""
        images = read_images(X, self.n_levels)
        self.check_size(images.size)
        return torch.from_numpy(cells_of_images(images.levels, self.domains))

    def decode(self, cells: np.ndarray, white: int | None = None) -> np.ndarray:
        return self.shown(images_of_cells(cells, self.domains, self.size), self.white if white is None else white)

    def shown(self, images: np.ndarray, white: int) -> np.ndarray:
        """(n, height, width) where there is one channel; black and white as they were given."""
        images = images * white if white else images
        return images[..., 0] if self.size[2] == 1 else images

    def array(self, X) -> np.ndarray:
        """(n, height, width, channels) of images, or of one."""
        array = images_array(X)
        if array.shape == self.size or (self.size[2] == 1 and array.shape == self.size[:2]):
            array = array[None]
        return array[..., None] if array.ndim == 3 else array

    def one(self, image) -> np.ndarray:
        """(1, height, width, channels) of one image."""
        array = images_array(image)
        is_several = array.ndim == 3 and (array.shape[1:] == self.size[:2] or array.shape[-1] > MAX_CHANNELS)
        # Of whatever size; it is checked when it is read.
        is_one = array.ndim == 2 or array.shape == self.size or (array.ndim == 3 and not is_several)
        array = self.array(array[None] if is_one else array)
        if array.shape[0] != 1:
            raise ImageError(f"{len(array)} images were given; inpaint takes one, such as images[0].")
        self.check_size(array.shape[1:])
        return array

    def shown_alone(self, array: np.ndarray, is_used: Tensor) -> np.ndarray:
        """Images with zero wherever no question looks (n, N), so that what is there need not be a number."""
        if array.shape[1:] != self.size or len(array) == 0:
            return array  # refused when it is read
        used = is_used.numpy().reshape(len(is_used), *self.size[:2], -1)
        return np.where(used, array, 0) if len(used) == len(array) else array

    def white_of(self, image, known: Tensor) -> int:
        """What white is called in an image of two levels, as far as it is known: 255, or 0 for 1."""
        if self.n_levels != 2:
            return self.white
        shown = images_array(image).reshape(known.numel(), -1)[known.flatten().numpy()]
        return {255: 255, 1: 0}.get(int(shown.max(initial=0)), self.white)

    def check_size(self, size: tuple[int, ...]) -> None:
        if len(size) != 3 or size == self.size:
            return  # an array of another form is refused when it is read
        both = f"The images are {describe_size(size)} and the model's are {self.describe()}"
        if size[:2] != self.size[:2]:
            raise ImageError(f"{both}; cut or scale them.")
        raise ImageError(f"{both}; make them {'grey' if self.size[2] == 1 else 'as colourful'} first.")

    # ------------------------------------------------------------------ masks

    def mask(self, mask, n: int) -> Tensor:
        """(n, N) from (height, width) or (n, height, width) bool; with channels that are variables, also of them."""
        array = np.asarray(mask)
        if array.dtype != bool:
            if not np.isin(array, (0, 1)).all():
                raise ImageError("A mask holds True and False (or 1 and 0) alone; of a picture take mask > 127.")
            array = array.astype(bool)
        shape = self.shape
        if len(shape) == 2 or array.shape[-3:] != shape:
            array = array[..., None].repeat(len(self.domains) // (shape[0] * shape[1]), axis=-1)
        each = (*shape[:2], array.shape[-1])
        if array.shape[-3:] != each or array.ndim not in (3, 4):
            raise ImageError(f"The mask has shape {np.shape(mask)}; it must be {self.size[:2]}, as the images are.")
        if array.ndim == 4 and len(array) != n:
            each_has = "one image has one mask" if n == 1 else "give one for all or one for each"
            raise ImageError(f"There are {n} images and {len(array)} masks; {each_has}.")
        return torch.from_numpy(np.broadcast_to(array, (n, *each)).reshape(n, -1).copy())

    def asked_and_given(self, n: int, query, given) -> tuple[Tensor, Tensor]:
        """(n, N) is_query and is_evidence of two masks; without a query all is asked that is not given."""
        is_evidence = torch.zeros(n, len(self.domains), dtype=torch.bool) if given is None else self.mask(given, n)
        is_query = ~is_evidence if query is None else self.mask(query, n)
        if bool((is_query & is_evidence).any()):
            raise QuestionError("Some pixels are both asked and given; take them out of one of the masks.")
        return is_query, is_evidence


def describe_size(size: tuple[int, ...]) -> str:
    height, width, channels = size
    return f"{width} by {height}" + (f" with {channels} channels" if channels > 1 else "")


class Pictures:
    """Images as rows for training, made when they are asked for."""

    def __init__(self, levels: np.ndarray, domains: SharedDomain):
        self.levels, self.domains = levels, domains

    def __len__(self) -> int:
        return len(self.levels)

    def rows(self, index: Tensor) -> Data:
        cells = cells_of_images(self.levels[index.numpy()], self.domains)
        return Data(torch.from_numpy(cells), torch.ones(cells.shape[:2], dtype=torch.bool))
