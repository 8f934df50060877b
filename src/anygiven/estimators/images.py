"""ImageDensity: fit images once, then ask any pixels given any others."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor
from typing_extensions import NotRequired

from anygiven.errors import AnyGivenWarning, QuestionError
from anygiven.estimators.defaults import Architecture, image_architecture_for
from anygiven.estimators.density import Density, HowMany, Report
from anygiven.estimators.drawing import LOSS, asks_one_by_one, check_drawing, check_losses, drawing_path
from anygiven.estimators.fitting import hold_out
from anygiven.estimators.options import COUNT
from anygiven.estimators.progress import share_bar
from anygiven.estimators.workload import image_workload
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
)
from anygiven.training import Settings
from anygiven.variables.images import read_images
from anygiven.variables.pixels import Pictures, Pixels
from anygiven.variables.rows import Data

MUTUAL_NATS = 0.3  # what pixels revealed together may know of each other, with steps="auto"
SCANS = (Slanted, RandomSlant, RandomScan)  # path networks were trained in these, and in raster order
CLOSING = 16  # validations' time, for what is measured after the training
FEW_IMAGES = 4
N_VALID = 100  # images that the validation questions are about


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
    network : "auto" (convolutions), "convolutions", "unet", "path" or "transformer"
        Path convolutions score and train a whole path in one pass; a U-Net looks once a step.
    max_minutes : float
        fit returns by then at the latest.
    max_steps, width, depth, dropout, kernel, n_sizes, n_strides, learning_rate, weight_decay, batch_size : optional
        A U-Net has `depth` blocks at each of `n_sizes` sizes, a half of the one before; the blocks of path convolutions
        look at neighbours 1, 2, 4, … places apart in turn, `n_strides` of these.
    training : dict, optional
        Other settings of the training loop (anygiven.training.Settings): {"schedule": "linear", "noise": 0.01, …}.
    device : "auto", "cpu", "cuda" or "mps"
        Where it is trained and answers.
    checkpoint : path, optional
        A folder where training saves its state every 20 seconds; fitting the same images again resumes there. It is
        kept until the model is saved.
    verbose : bool, optional
        Progress on standard error; by default only in a terminal.
    random_state : int
    """

    kind = "image"
    variables_type = Pixels
    report_type = ImageReport
    variables_: Pixels

    def __init__(
        self,
        element="pixel",
        n_components=None,
        workload="any",
        network="auto",
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
        training=None,
        device="auto",
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
        self.training = training
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(self, X, y=None) -> ImageDensity:
        """Learn from an array (n, height, width[, channels]), an npz file, or a folder of pictures."""
        self._begin()
        images = read_images(X)
        self.variables_ = Pixels.of(images, self.element)
        self.architecture_ = self._choose_architecture(len(images))
        self.workload_ = image_workload(self.workload, self.architecture_.network, self.variables_.shape)
        held = None

        def split(seed: int) -> tuple[Pictures, Data]:
            nonlocal held
            learn, valid = hold_out(len(images), seed)
            if len(images) >= 20:
                learn = torch.cat([learn, valid[N_VALID:]])
            held = Pictures(images.levels[valid[:N_VALID].numpy()], self.variables_.domains)
            return Pictures(images.levels[learn.numpy()], self.variables_.domains), held.rows(torch.arange(len(held)))

        outcomes = self._learn(split, len(images), (images.levels,) if self.checkpoint else (), CLOSING)
        self.report_ = {
            "images": len(images),
            "size": list(images.size),
            "levels": images.n_levels,
            **self._report_of(outcomes),
        }
        assert held is not None
        self._measure(held, len(images) > len(held))  # of a handful all are learnt from
        self.report_["seconds"] = self._seconds()
        return self

    def _measure(self, held: Pictures, is_held_out: bool) -> None:
        """What plans of drawing go by, and how well it was learnt."""
        few = held.rows(torch.arange(min(len(held), FEW_IMAGES)))
        valid = held.rows(torch.arange(self._affordable(few, len(held))))
        self.report_["losses"] = losses_by_evidence(self.model_, valid)
        if self._reads_paths and is_held_out:
            self.report_["held_out_bits_per_dim"] = self._bits_along(Canonical(), valid.x)
        if self._reads_paths and self.workload_.trains_slanted_lines:
            self.report_["slants"] = self._slants(valid.x)

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
        return self._bits(self._log_prob(x, Question(*self.variables_.asked_and_given(len(x), None, None)), [order]))

    def _slants(self, x: Tensor) -> list[list[float]]:
        """The slants of lines that may be drawn at once, and bits per dimension of images drawn so."""
        lossless = raster_order(self.model_, self.variables_.shape)
        slants = [Slanted(self.variables_.shape, slant) for slant in SLANTS]
        if isinstance(lossless, Slanted):
            slants = [order for order in slants if order.slant < lossless.slant] + [lossless]
        return [[order.slant, self._bits_along(order, x)] for order in slants]

    def _default_architecture(self, n: int) -> Architecture:
        network = "convolutions" if self.network == "auto" else self.network
        if self.kernel is not None and self.kernel % 2 == 0:
            raise QuestionError(f"The kernel is {self.kernel}; it must be odd, so that it has a middle.")
        shortest = min(self.variables_.size[:2])
        if self.n_sizes is not None and 2 ** (self.n_sizes - 1) > shortest:
            raise QuestionError(f"n_sizes is {self.n_sizes}; halved so often, nothing is left of {shortest} pixels.")
        n_channels = self.variables_.domain.n_channels
        if self.n_components == 0 and n_channels > 1:
            raise QuestionError("Pixels of several channels need a mixture; use n_components=10 or element='channel'.")
        has_masses = self.variables_.n_levels == 2 and n_channels == 1
        return replace(image_architecture_for(n, network), n_components=0 if has_masses else 10)

    def _settings(self, n: int) -> Settings:
        is_unet = self.architecture_.network == "unet"
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
        images = self.variables_.array(X)
        question = Question(*self.variables_.asked_and_given(len(images), query, given))
        protocols = self._orders(orders) if order is None else [self.workload_.told(order)] * orders
        self._warn_untrained(question, self._warned_along if order is None else [order])
        images = self.variables_.shown_alone(images, question.is_query | question.is_evidence)
        return self._log_prob(self.variables_.encode(images), question, protocols)

    def _log_prob(self, x: Tensor, question: Question, protocols: Sequence[Protocol]) -> np.ndarray:
        is_long = len(x) > 500 or not self._reads_paths
        with share_bar("scoring", self.verbose if is_long else False) as report:
            return log_prob(self.model_, x, question, protocols, self._generator(self.seed_), report).numpy()

    def _orders(self, n: int) -> list[Protocol]:
        if self.workload_.trains_canonical_order:
            return scan_orders(self.variables_.shape, n, self.seed_)
        return random_orders(len(self.domains), n, self.seed_ + 17)

    @property
    def _warned_along(self) -> list[Protocol]:
        """Raster order where it was trained; of other networks a look is judged, whatever order it begins."""
        return [Canonical()] if self.workload_.trains_canonical_order else []

    @property
    def _order_of_drawing(self) -> Protocol:
        return (
            raster_order(self.model_, self.variables_.shape) if self.workload_.trains_canonical_order else RandomOrder()
        )

    def _check_order(self, order) -> None:
        if not (order is None or isinstance(order, Protocol)):
            raise QuestionError(f"order is {order!r}; it must be a protocol, such as anygiven.lattice.RandomOrder().")
        n = len(self.domains)
        if isinstance(order, Canonical) and order.order is not None and sorted(order.order) != list(range(n)):
            raise QuestionError(f"The order must name each of the {n} variables once; it names {len(order.order)}.")
        if isinstance(order, SCANS) and tuple(order.shape) != self.variables_.shape:
            raise QuestionError(f"The order is for {order.shape} and the variables stand as {self.variables_.shape}.")

    def elbo(self, X, *, n: int = 1, random_state=None) -> np.ndarray:
        """The evidence lower bound of each image (Eq. 8): the mean of log p(x | order) over random orders.

        Estimated from `n` drawn steps of as many orders.
        """
        self._check_fitted()
        self._check_number("n", n)
        with share_bar("scoring", self.verbose) as report:
            return elbo(self.model_, self.variables_.encode(X), n, self._generator(random_state), report).numpy()

    def bits_per_dim(self, X, *, orders: int = 1) -> float:
        """Mean −log₂ p divided by height × width × channels."""
        return self._bits(self.log_prob(X, orders=orders))

    def _bits(self, nats: np.ndarray) -> float:
        return float(-nats.mean() / math.log(2) / math.prod(self.variables_.size))

    def score(self, X, y=None) -> float:
        """Mean log probability of an image, in nats: higher is better."""
        return float(self.log_prob(X).mean())

    # ------------------------------------------------------------------ draws

    def sample(self, n: int = 1, *, steps: int | str | None = None, temperature: float = 1.0, groups: str = "planned",
               order: Protocol | None = None, random_state=None) -> np.ndarray:  # fmt: skip
        """New images (n, height, width[, channels]); drawn as `inpaint` says."""
        self._check_fitted()
        self._check_number("n", n)
        nothing = torch.zeros(n, len(self.domains), 4)
        is_known = torch.zeros(nothing.shape[:2], dtype=torch.bool)
        drawn = self._draw(nothing, is_known, steps, temperature, groups, order, random_state)
        return self.variables_.decode(drawn.numpy())

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
        x, known = self._encode_known(image, given)
        drawn = self._draw(x.repeat(n, 1, 1), known.repeat(n, 1), steps, temperature, groups, order, random_state)
        return self.variables_.decode(drawn.numpy(), self.variables_.white_of(image, known))

    def expected(self, image, given) -> np.ndarray:
        """The mean of every pixel that is not known, given those that are (height, width[, channels]), as floats."""
        self._check_fitted()
        x, known = self._encode_known(image, given)
        self._warn_untrained(Question(~known, known))
        means = expected(self.model_, x, known)[0, :, : self.variables_.domain.n_channels].numpy()
        means = means.reshape(1, *self.variables_.size)
        return self.variables_.shown(means, self.variables_.white_of(image, known))[0]

    def _encode_known(self, image, given) -> tuple[Tensor, Tensor]:
        """(1, N, 4) of one image and (1, N) its mask; what is not known may hold anything."""
        array = self.variables_.one(image)
        known = self.variables_.mask(given, 1)
        return self.variables_.encode(self.variables_.shown_alone(array, known)), known

    def _draw(self, x: Tensor, is_known: Tensor, steps, temperature: float, groups: str, order: Protocol | None,
              random_state) -> Tensor:  # fmt: skip
        check_drawing(len(x), steps, temperature, groups)
        self._check_order(order)
        order = None if order is None else self.workload_.told(order)
        generator = self._generator(random_state)
        question = Question(~is_known, is_known)
        self._warn_untrained(question, self._warned_along if order is None else [order])
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
        bound, losses = MUTUAL_NATS if self.variables_.n_levels == 2 else None, self.report_["losses"]
        path, choose = drawing_path(question, steps, losses, bound, lambda _: order or RandomOrder(), generator, groups)
        return path, choose, True  # groups of any order are better looked at anew each step

    def _was_trained(self, order: Protocol) -> bool:
        """As whole paths, so that the memory of a path network is right for it."""
        in_raster_order = order in (Canonical(), raster_order(self.model_, self.variables_.shape))
        return in_raster_order or ("slants" in self.report_ and isinstance(order, SCANS))

    def _lines(self, question: Question, steps: int | str) -> Path | None:
        """The slanted lines that lose least in so many steps, if the network learnt any that are as few."""
        slants = self.report_.get("slants", [])
        paths = [(Slanted(self.variables_.shape, int(slant)).path(question), bits) for slant, bits in slants]
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

    # ------------------------------------------------------------------ what was learnt

    def _try_out(self) -> None:
        super()._try_out()
        check_losses(self.report_["losses"])

    def describe(self) -> str:
        """What was learnt, for a person."""
        self._check_fitted()
        r = self.report_
        bits = r.get("held_out_bits_per_dim")
        lines = f"{r['images']:,} images, {self.variables_.describe()}, {r['levels']} levels;\n"
        lines += f"{r['parameters']:,} parameters, {self._describe_training()}."
        return lines + (f"\nHeld-out bits per dimension: {bits:.4f}." if bits is not None else "")
