"""ImageDensity: fit images once, then ask any pixels given any others."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor
from typing_extensions import NotRequired

from anygiven.errors import AnyGivenWarning, ImageError, QuestionError
from anygiven.estimators.defaults import Architecture, image_architecture_for
from anygiven.estimators.density import Density, HowMany, Report
from anygiven.estimators.drawing import LOSS, asks_one_by_one, check_drawing, check_losses, drawing_path
from anygiven.estimators.fitting import Recipe, fingerprint_of, fit_models, hold_out
from anygiven.estimators.options import COUNT
from anygiven.estimators.progress import share_bar
from anygiven.estimators.workload import image_objective_of, trained_modes
from anygiven.inference import (
    draw,
    elbo,
    expected,
    log_prob,
    losses_by_evidence,
    random_orders,
    raster_order,
    scan_orders,
)
from anygiven.inference.drawing import Choice
from anygiven.lattice import (
    SLANTS,
    Canonical,
    Path,
    Protocol,
    Question,
    RandomOrder,
    RandomScan,
    RandomSlant,
    Slanted,
    Told,
)
from anygiven.networks import networks_for
from anygiven.training import Data, Settings
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
from anygiven.variables.stored import Stored, StoredLevels

MUTUAL_NATS = 0.3  # what pixels revealed together may know of each other, with steps="auto"
NOTHING_LEFT_OPEN = ("joint", "conditionals", "random", "modes")  # workloads that know or ask every pixel
SCANS = (Slanted, RandomSlant, RandomScan)  # path networks were trained in these, and in raster order
CLOSING = 16  # validations' time, for what is measured after the training
FEW_IMAGES = 4
N_VALID = 100  # images that the validation questions are about


class Pictures:
    """Images as rows for training, made when they are asked for."""

    def __init__(self, levels: np.ndarray, domains: SharedDomain):
        self.levels, self.domains = levels, domains

    def __len__(self) -> int:
        return len(self.levels)

    def rows(self, index: Tensor) -> Data:
        cells = cells_of_images(self.levels[index.numpy()], self.domains)
        return Data(torch.from_numpy(cells), torch.ones(cells.shape[:2], dtype=torch.bool))


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


class ImageReport(Report):
    images: HowMany
    size: list[HowMany]
    levels: HowMany
    losses: tuple[list[HowMany], list[float | None]]
    held_out_bits_per_dim: NotRequired[float | None]
    slants: NotRequired[list[tuple[Annotated[int, Meta(ge=1, le=64)], float | None]]]


class ImageDensity(Density):
    """The distribution of images of one size, and every conditional of it.

    Parameters
    ----------
    element : "pixel" or "channel"
        What is revealed at a time: a pixel with all its channels, or one channel of it.
    n_components : int, optional
        Logistics in the mixture of a level; 0: a mass for each level. By default 0 for two levels, else 10.
    workload : str, MaskingMode, Workload or Objective
        Which questions will be asked: "any" (default: scoring and inpainting alike), "joint", "marginals",
        "conditionals", "modes" (SFARM's seven kinds of evidence), "random" (ARDM's uniform evidence), or a masking mode
        of your own (anygiven.lattice.RegionMode).
    network : "convolutions", "unet", "path" or "transformer"
        Path convolutions score and train a whole path in one pass; a U-Net looks once a step.
    max_minutes : float
        fit returns by then at the latest.
    max_steps, width, depth, dropout, kernel, n_sizes, n_strides, learning_rate, weight_decay, batch_size : optional
        A U-Net has `depth` blocks at each of `n_sizes` sizes, a half of the one before; the blocks of path convolutions
        look at neighbours 1, 2, 4, … places apart in turn, `n_strides` of these.
    checkpoint : path, optional
        A folder where training saves its state every 20 seconds; fitting the same images again resumes there. It is
        kept until the model is saved.
    verbose : bool, optional
        Progress on standard error; by default only in a terminal.
    random_state : int
    """

    kind = "image"
    stored_type = StoredImages
    report_type = ImageReport

    def __init__(
        self,
        element="pixel",
        n_components=None,
        workload="any",
        network="convolutions",
        max_minutes=10.0,
        max_steps=None,
        width=None,
        depth=None,
        dropout=None,
        kernel=None,
        n_sizes=None,
        n_strides=None,
        learning_rate=None,
        weight_decay=0.02,
        batch_size=16,
        checkpoint=None,
        verbose=None,
        random_state=0,
    ):
        self.element = element
        self.n_components = n_components
        self.workload = workload
        self.network = network
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.width = width
        self.depth = depth
        self.dropout = dropout
        self.kernel = kernel
        self.n_sizes = n_sizes
        self.n_strides = n_strides
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(self, X, y=None) -> ImageDensity:
        """Learn from an array (n, height, width[, channels]), an npz file, or a folder of pictures."""
        self._begin()
        images = read_images(X)
        self.size_, self.n_levels_, self.white_ = images.size, images.n_levels, images.white
        self.domains_ = image_domains(images, self.element)
        self.architecture_ = self._architecture(len(images))
        objective = image_objective_of(self.workload, self.architecture_.network, self.domains_.shape)
        recipe = Recipe(self.domains, self.architecture_, objective, self._settings())
        fingerprint = fingerprint_of(recipe, str(self.workload), images.levels) if self.checkpoint else ""
        held = None

        def split(seed: int) -> tuple[Pictures, Data]:
            nonlocal held
            learn, valid = hold_out(len(images), seed)
            if len(images) >= 20:
                learn = torch.cat([learn, valid[N_VALID:]])
            held = Pictures(images.levels[valid[:N_VALID].numpy()], self.domains_)
            return Pictures(images.levels[learn.numpy()], self.domains_), held.rows(torch.arange(len(held)))

        self.model_, outcomes = fit_models(recipe, split, 1, self.checkpoint, fingerprint, self.verbose, self._began,
                                            CLOSING)  # fmt: skip
        outcome = outcomes[0]
        self.report_ = {
            "images": len(images), "size": list(images.size), "levels": images.n_levels,
            "parameters": self.model_.n_parameters, "steps": outcome.steps, "best_step": outcome.best_step,
            "training_seconds": round(outcome.seconds, 1), "stopped": outcome.stopped, "curve": outcome.curve,
            "is_cut_short": outcome.is_cut_short,
        }  # fmt: skip
        assert held is not None
        few = held.rows(torch.arange(min(len(held), FEW_IMAGES)))
        valid = held.rows(torch.arange(self._affordable(few, len(held))))
        self.report_["losses"] = losses_by_evidence(self.model_, valid)
        if self._scores_in_one_pass and len(images) > len(held):  # of a handful all are learnt from
            self.report_["held_out_bits_per_dim"] = self._bits_along(Canonical(), valid.x)
        if self._scores_in_one_pass and self.workload == "any":
            self.report_["slants"] = self._slants(valid.x)
        self.report_["seconds"] = self._seconds()
        return self

    def _affordable(self, few: Data, most: int) -> int:
        """On how many held-out images what follows the training can be measured in the time that is left."""
        if self.max_minutes is None:
            return most
        started = time.monotonic()
        losses_by_evidence(self.model_, few, n_sizes=2)
        look = (time.monotonic() - started) / (2 * len(few))  # of one image
        left = 60 * self.max_minutes - self._seconds()
        return int(min(max(left / (CLOSING * max(look, 1e-9)), len(few)), most))

    def _bits_along(self, order: Protocol, x: Tensor) -> float:
        return self._bits(self._log_prob(x, self._whole(x), [order]))

    def _slants(self, x: Tensor) -> list[list[float]]:
        """The slants of lines that may be drawn at once, and bits per dimension of images drawn so."""
        lossless = raster_order(self.model_, self.domains_.shape)
        slants = [Slanted(self.domains_.shape, slant) for slant in SLANTS]
        if isinstance(lossless, Slanted):
            slants = [order for order in slants if order.slant < lossless.slant] + [lossless]
        return [[order.slant, self._bits_along(order, x)] for order in slants]

    @property
    def _scores_in_one_pass(self) -> bool:
        from anygiven.model import PathModel

        return isinstance(self.model_, PathModel)

    def _architecture(self, n_images: int) -> Architecture:
        networks = networks_for("image")
        if self.network not in networks:
            raise QuestionError(f"There is no network {self.network!r} for images; use one of {', '.join(networks)}.")
        chosen = image_architecture_for(n_images, self.network)
        if self.kernel is not None and self.kernel % 2 == 0:
            raise QuestionError(f"The kernel is {self.kernel}; it must be odd, so that it has a middle.")
        has_masses = self.n_levels_ == 2 and self._domain.n_channels == 1
        n_components = self.n_components if self.n_components is not None else 0 if has_masses else 10
        if n_components < 1 and self._domain.n_channels > 1:
            raise QuestionError("Pixels of several channels need a mixture; use n_components=10 or element='channel'.")
        names = ("width", "depth", "dropout", "kernel", "n_sizes", "n_strides")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        return replace(chosen, n_components=n_components, **given)

    @property
    def _domain(self) -> Levels:
        assert isinstance(self.domains_.domain, Levels)
        return self.domains_.domain

    def _settings(self) -> Settings:
        is_unet = self.network == "unet"
        return Settings(
            max_steps=self.max_steps or 1_000_000,
            max_minutes=self.max_minutes,
            learning_rate=self.learning_rate or (1e-3 if is_unet else 4e-3),
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            muon=not is_unet,
            ema=0.998,
            clip=1.0,
            validation_rows=N_VALID,
            evaluations=20,
            patience=15,
            seed=self.seed_,
        )

    # ------------------------------------------------------------------ how likely

    def log_prob(self, X, *, query=None, given=None, orders: int = 1, order: Protocol | None = None) -> np.ndarray:
        """Log probability in nats of each image: of all pixels, of a region, of a region given another.

        `query` and `given` are masks (height, width), or one for each image; what is in neither is left open. The
        pixels come in raster order, or in a fixed random one for a network that looks and learnt no other; or in the
        `order` of a protocol, such as a masking mode. With more `orders` it is the log of the mean of p along as many
        (Eq. 14): the eight scanning orders, then random ones; or as many draws of a random `order`.
        """
        self._check_fitted()
        self._check_number("orders", orders)
        self._check_order(order)
        if order is not None and orders > 1 and not order.is_random:
            raise QuestionError(f"orders is {orders} and the order given is the same each time; ask for one.")
        images = self._array(X)
        question = self._question(len(images), query, given)
        self._warn_untrained(question)
        protocols = self._orders(orders) if order is None else [self._told(order)] * orders
        return self._log_prob(self._encode(self._asked_alone(images, question)), question, protocols)

    def _log_prob(self, x: Tensor, question: Question, protocols: Sequence[Protocol]) -> np.ndarray:
        is_long = len(x) > 500 or not self._scores_in_one_pass
        with share_bar("scoring", self.verbose if is_long else False) as report:
            return log_prob(self.model_, x, question, protocols, self._generator(self.seed_), report).numpy()

    def _orders(self, n: int) -> list[Protocol]:
        if self._knows_raster:
            return scan_orders(self.domains_.shape, n, self.seed_)
        return random_orders(len(self.domains_), n, self.seed_ + 17)

    @property
    def _knows_raster(self) -> bool:
        """Whether the raster order was trained: by whole paths always, by looks where the workload is in that order."""
        return self._scores_in_one_pass or self.workload in ("joint", "marginals")

    @property
    def _order_of_drawing(self) -> Protocol:
        return raster_order(self.model_, self.domains_.shape) if self._knows_raster else RandomOrder()

    def _check_order(self, order) -> None:
        if not (order is None or isinstance(order, Protocol)):
            raise QuestionError(f"order is {order!r}; it must be a protocol, such as anygiven.lattice.RandomOrder().")
        n = len(self.domains_)
        if isinstance(order, Canonical) and order.order is not None and sorted(order.order) != list(range(n)):
            raise QuestionError(f"The order must name each of the {n} variables once; it names {len(order.order)}.")
        if isinstance(order, SCANS) and tuple(order.shape) != self.domains_.shape:
            raise QuestionError(f"The order is for {order.shape} and the variables stand as {self.domains_.shape}.")

    def _told(self, order: Protocol) -> Protocol:
        """A masking mode, with its number among those that were trained, for a network that is told it."""
        trained = trained_modes(self.workload, self.domains_.shape)
        return Told(order, trained.index(order) + 1) if order in trained else order

    def elbo(self, X, *, n: int = 1, random_state=None) -> np.ndarray:
        """The evidence lower bound of each image (Eq. 8): the mean of log p(x | order) over random orders.

        Estimated from `n` drawn steps of as many orders.
        """
        self._check_fitted()
        self._check_number("n", n)
        with share_bar("scoring", self.verbose) as report:
            return elbo(self.model_, self._encode(X), n, self._generator(random_state), report).numpy()

    def bits_per_dim(self, X, *, orders: int = 1) -> float:
        """Mean −log₂ p divided by height × width × channels."""
        return self._bits(self.log_prob(X, orders=orders))

    def _bits(self, nats: np.ndarray) -> float:
        return float(-nats.mean() / math.log(2) / math.prod(self.size_))

    def score(self, X, y=None) -> float:
        """Mean log probability of an image, in nats: higher is better."""
        return float(self.log_prob(X).mean())

    # ------------------------------------------------------------------ draws

    def sample(self, n: int = 1, *, steps: int | str | None = None, temperature: float = 1.0, groups: str = "planned",
               order: Protocol | None = None, random_state=None) -> np.ndarray:  # fmt: skip
        """New images (n, height, width[, channels]); drawn as `inpaint` says."""
        self._check_fitted()
        self._check_number("n", n)
        nothing = torch.zeros(n, len(self.domains_), 4)
        is_known = torch.zeros(nothing.shape[:2], dtype=torch.bool)
        return self._decode(self._draw(nothing, is_known, steps, temperature, groups, order, random_state), self.white_)

    def inpaint(self, image, given, n: int = 1, *, steps: int | str | None = None, temperature: float = 1.0,
                groups: str = "planned", order: Protocol | None = None, random_state=None) -> np.ndarray:  # fmt: skip
        """n completions (n, height, width[, channels]) of one image; what is known stays as it is.

        By default pixel by pixel, in raster order, or a random one for a network that looks and learnt no other; or in
        the `order` of a protocol, such as a masking mode. Path convolutions draw slanted lines at once that cannot see
        each other, which is the same in fewer steps.

        With a number of `steps`, in groups: "planned" to lose little, or each the "surest" pixels of all that are left.
        Plans are steeper lines where the network learnt them and there are steps enough, else groups of a random order
        by what each step is known to lose. With "auto", as few steps as lose little: lines, or of a network that looks
        groups, of black and white pixels those that are nearly independent.

        A `temperature` below 1 takes noise away: it shrinks the scales of the logistics in a level's mixture, or makes
        likely levels likelier where each has a mass. `given` is a mask (height, width) of what is known; where each
        channel is revealed on its own, it may be (height, width, channels).
        """
        self._check_fitted()
        self._check_number("n", n)
        x, known = self._encode_known(image, given), self._mask(given, 1)
        drawn = self._draw(x.repeat(n, 1, 1), known.repeat(n, 1), steps, temperature, groups, order, random_state)
        return self._decode(drawn, self._white_of(image, known))

    def _white_of(self, image, known: Tensor) -> int:
        """What white is called in an image of two levels, as far as it is known: 255, or 0 for 1."""
        if self.n_levels_ != 2:
            return self.white_
        shown = images_array(image).reshape(known.numel(), -1)[known.flatten().numpy()]
        return {255: 255, 1: 0}.get(int(shown.max(initial=0)), self.white_)

    def expected(self, image, given) -> np.ndarray:
        """The mean of every pixel that is not known, given those that are (height, width[, channels]), as floats."""
        self._check_fitted()
        x, known = self._encode_known(image, given), self._mask(given, 1)
        means = expected(self.model_, x, known)[0, :, : self._domain.n_channels].numpy()
        return self._shown(means.reshape(1, *self.size_), self._white_of(image, known))[0]

    def _draw(self, x: Tensor, is_known: Tensor, steps, temperature: float, groups: str, order: Protocol | None,
              random_state) -> Tensor:  # fmt: skip
        check_drawing(len(x), steps, temperature, groups)
        self._check_order(order)
        order = None if order is None else self._told(order)
        generator = self._generator(random_state)
        question = Question(~is_known, is_known)
        self._warn_untrained(question)
        path, choose, looks_again = self._path_of_drawing(question, steps, groups, order, generator)
        with share_bar("drawing", self.verbose) as report:
            return draw(self.model_, x, path, generator, temperature, report, choose, looks_again=looks_again)

    def _path_of_drawing(
        self, question: Question, steps, groups: str, order: Protocol | None, generator: torch.Generator
    ) -> tuple[Path, Choice | None, bool]:
        """The path, what is chosen on the way, and whether each step is a new look."""
        if asks_one_by_one(question, steps):
            order = order or self._order_of_drawing
            return order.path(question, generator), None, not self._was_trained(order)
        if order is None and groups == "planned" and (lines := self._lines(question, steps)):
            return lines, None, False
        if groups == "surest" and steps != "auto" and not bool(question.is_evidence.any()):
            warnings.warn(
                "Nothing is known, and the surest pixels of an image are its background; use groups='planned'.",
                AnyGivenWarning,
                stacklevel=4,
            )
        bound, losses = MUTUAL_NATS if self.n_levels_ == 2 else None, self.report_["losses"]
        path, choose = drawing_path(question, steps, losses, bound, lambda _: order or RandomOrder(), generator, groups)
        return path, choose, True  # groups of any order are better looked at anew each step

    def _was_trained(self, order: Protocol) -> bool:
        """As whole paths, so that the memory of a path network is right for it."""
        in_raster_order = order in (Canonical(), raster_order(self.model_, self.domains_.shape))
        return in_raster_order or ("slants" in self.report_ and isinstance(order, SCANS))

    def _lines(self, question: Question, steps: int | str) -> Path | None:
        """The slanted lines that lose least in so many steps, if the network learnt any that are as few."""
        slants = self.report_.get("slants", [])
        paths = [(Slanted(self.domains_.shape, int(slant)).path(question), bits) for slant, bits in slants]
        if not paths:
            return None
        if steps == "auto":
            best = min(self.report_.get("held_out_bits_per_dim", math.inf), *(bits for _, bits in paths))
            fitting = [(path.n_steps, path) for path, bits in paths if bits <= (1 + LOSS) * best]
        else:
            fitting = [(bits, path) for path, bits in paths if path.n_steps <= int(steps)]
        return min(fitting, key=lambda found: found[0])[1] if fitting else None

    @staticmethod
    def _check_number(name: str, n: int) -> None:
        if not COUNT.allows(n):
            raise QuestionError(f"{name} is {n!r}; it must be {COUNT}.")

    # ------------------------------------------------------------------ images and masks

    def _encode(self, X) -> Tensor:
        images = self._read(X)
        return torch.from_numpy(cells_of_images(images.levels, self.domains_))

    def _encode_known(self, image, given) -> Tensor:
        """(1, N, 4) of one image and one mask; what is not known may hold anything."""
        array = images_array(image)
        is_several = array.ndim == 3 and (array.shape[1:] == self.size_[:2] or array.shape[-1] > MAX_CHANNELS)
        # Of whatever size; it is checked when it is read.
        is_one = array.ndim == 2 or array.shape == self.size_ or (array.ndim == 3 and not is_several)
        array = self._array(array[None] if is_one else array)
        if array.shape[0] != 1:
            raise ImageError(f"{len(array)} images were given; inpaint takes one, such as images[0].")
        self._check_size(array.shape[1:])
        mask = self._mask(given, 1)
        return self._encode(self._asked_alone(array, Question(~mask, mask), or_asked=False))

    def _array(self, X) -> np.ndarray:
        """(n, height, width, channels) of images, or of one."""
        array = images_array(X)
        if array.shape == self.size_ or (self.size_[2] == 1 and array.shape == self.size_[:2]):
            array = array[None]
        return array[..., None] if array.ndim == 3 else array

    def _asked_alone(self, array: np.ndarray, question: Question, or_asked: bool = True) -> np.ndarray:
        """Images with zero wherever no question looks, so that what is there need not be a number."""
        if array.shape[1:] != self.size_ or len(array) == 0:
            return array  # refused when it is read
        used = (question.is_evidence | question.is_query) if or_asked else question.is_evidence
        used = used.numpy().reshape(len(used), *self.size_[:2], -1)
        return np.where(used, array, 0) if len(used) == len(array) else array

    def _read(self, X) -> Images:
        images = read_images(X, self.n_levels_)
        self._check_size(images.size)
        return images

    def _check_size(self, size: tuple[int, ...]) -> None:
        if len(size) != 3 or size == self.size_:
            return  # an array of another form is refused when it is read
        both = f"The images are {_size(size)} and the model's are {_size(self.size_)}"  # type: ignore[arg-type]
        if size[:2] != self.size_[:2]:
            raise ImageError(f"{both}; cut or scale them.")
        raise ImageError(f"{both}; make them {'grey' if self.size_[2] == 1 else 'as colourful'} first.")

    def _decode(self, cells: Tensor, white: int) -> np.ndarray:
        return self._shown(images_of_cells(cells.numpy(), self.domains_, self.size_), white)

    def _shown(self, images: np.ndarray, white: int) -> np.ndarray:
        """(n, height, width) where there is one channel; black and white as they were given."""
        images = images * white if white else images
        return images[..., 0] if self.size_[2] == 1 else images

    def _mask(self, mask, n: int) -> Tensor:
        """(n, N) from (height, width) or (n, height, width) bool; with channels that are variables, also of them."""
        array = np.asarray(mask)
        if array.dtype != bool:
            if not np.isin(array, (0, 1)).all():
                raise ImageError("A mask holds True and False (or 1 and 0) alone; of a picture take mask > 127.")
            array = array.astype(bool)
        shape = self.domains_.shape
        if len(shape) == 2 or array.shape[-3:] != shape:
            array = array[..., None].repeat(len(self.domains_) // (shape[0] * shape[1]), axis=-1)
        each = (*shape[:2], array.shape[-1])
        if array.shape[-3:] != each or array.ndim not in (3, 4):
            raise ImageError(f"The mask has shape {np.shape(mask)}; it must be {self.size_[:2]}, as the images are.")
        if array.ndim == 4 and len(array) != n:
            each_has = "one image has one mask" if n == 1 else "give one for all or one for each"
            raise ImageError(f"There are {n} images and {len(array)} masks; {each_has}.")
        return torch.from_numpy(np.broadcast_to(array, (n, *each)).reshape(n, -1).copy())

    def _question(self, n: int, query, given) -> Question:
        is_evidence = torch.zeros(n, len(self.domains_), dtype=torch.bool) if given is None else self._mask(given, n)
        is_query = ~is_evidence if query is None else self._mask(query, n)
        if bool((is_query & is_evidence).any()):
            raise QuestionError("Some pixels are both asked and given; take them out of one of the masks.")
        return Question(is_query, is_evidence)

    def _warn_untrained(self, question: Question) -> None:
        """A workload in words says whether it has evidence, and whether some pixels are left open."""
        unseen = []
        if self.workload in ("joint", "marginals") and bool(question.is_evidence.any()):
            unseen.append("known pixels")
        leaves_open = not bool((question.is_query | question.is_evidence).all())
        if self._scores_in_one_pass and self.workload in NOTHING_LEFT_OPEN and leaves_open:
            unseen.append("pixels that are left open")
        if unseen:
            warnings.warn(
                f"The workload {self.workload!r} never trained questions with {' and '.join(unseen)}; "
                "fit with workload='any' to ask this.",
                AnyGivenWarning,
                stacklevel=4,
            )

    def _whole(self, x: Tensor) -> Question:
        return self._question(len(x), None, None)

    # ------------------------------------------------------------------ saving

    @property
    def domains(self) -> SharedDomain:
        return self.domains_

    def _variables_to_json(self) -> dict[str, Any]:
        return {"size": list(self.size_), "shape": list(self.domains_.shape), "domain": self._domain.to_json(),
                "white": self.white_}  # fmt: skip

    def _variables_from_stored(self, stored: StoredImages) -> None:
        self.size_, self.white_ = stored.size, stored.white
        self.domains_ = SharedDomain(stored.domain.read(), tuple(stored.shape))
        self.n_levels_ = self.domains_.domain.n_symbols

    def _try_out(self) -> None:
        super()._try_out()
        image_objective_of(self.workload, self.architecture_.network, self.domains_.shape)
        check_losses(self.report_["losses"])

    def describe(self) -> str:
        """What was learnt, for a person."""
        self._check_fitted()
        r = self.report_
        bits = r.get("held_out_bits_per_dim")
        lines = f"{r['images']:,} images, {_size(self.size_)}, {r['levels']} levels;\n{r['parameters']:,} parameters, "
        lines += f"{self._describe_training()}."
        return lines + (f"\nHeld-out bits per dimension: {bits:.4f}." if bits is not None else "")


def _size(size: tuple[int, int, int]) -> str:
    height, width, channels = size
    return f"{width} by {height}" + (f" with {channels} channels" if channels > 1 else "")
