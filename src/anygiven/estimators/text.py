"""TextDensity: fit a text once, then ask any of its characters given any others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import NotRequired

from anygiven.errors import QuestionError, TextError
from anygiven.estimators.answers import Answer
from anygiven.estimators.defaults import Architecture, text_architecture_for
from anygiven.estimators.density import Density, HowMany, Report
from anygiven.estimators.drawing import check_drawing, check_losses, drawing_path
from anygiven.estimators.fitting import Recipe, fingerprint_of, fit_models
from anygiven.estimators.options import COUNT, COUNT_OR_NONE
from anygiven.estimators.progress import share_bar
from anygiven.estimators.workload import text_objective_of
from anygiven.inference import distribution_of, draw, log_prob, losses_by_evidence, refine
from anygiven.lattice import BitReversal, Canonical, Protocol, Question, Strided
from anygiven.networks import networks_for
from anygiven.training import Data, Settings
from anygiven.variables.domains import SYMBOL, SharedDomain
from anygiven.variables.schema import Variable
from anygiven.variables.stored import Stored, StoredCategorical
from anygiven.variables.tables import Storage
from anygiven.variables.text import Alphabet, Corpus, cells_of, read_corpus

BLANK = "_"
SCORED = 4096  # chunks scored at a time
MUTUAL_NATS = 0.1  # what characters revealed together may know of each other, with steps="auto"
CLOSING = 14  # validations' time, for what is measured after the training
N_VALID = 200  # chunks that the validation questions are about, at least
VALID_CHARACTERS = 12_800  # and so many characters: short chunks judge coarsely


class Chunks:
    """Pieces of `length` characters at every place of a corpus, made when they are asked for."""

    stride = 1

    def __init__(self, corpus: Corpus, length: int):
        self.corpus, self.length = corpus, length
        self.places = self._count(corpus.ends - corpus.starts).cumsum()  # running number of places to start at

    def _count(self, sizes: np.ndarray) -> np.ndarray:
        """How many chunks documents of these sizes have."""
        return np.maximum(sizes - self.length + 1, 1)

    def __len__(self) -> int:
        return int(self.places[-1])

    def rows(self, index: Tensor) -> Data:
        """A document shorter than `length` has gaps at its end."""
        wanted = index.numpy()
        document = np.searchsorted(self.places, wanted, side="right")
        number = wanted - np.concatenate([[0], self.places])[document]
        start = self.corpus.starts[document] + self.stride * number
        at = start[:, None] + np.arange(self.length)  # (B, length)
        is_present = at < self.corpus.ends[document][:, None]
        symbols = self.corpus.symbols[np.where(is_present, at, 0)]
        return Data(torch.from_numpy(cells_of(symbols)), torch.from_numpy(is_present))


class Tiles(Chunks):
    """Pieces that follow each other, the last of a document perhaps shorter."""

    def __init__(self, corpus: Corpus, length: int):
        self.stride = length
        super().__init__(corpus, length)

    def _count(self, sizes: np.ndarray) -> np.ndarray:
        return -(-sizes // self.length)


@dataclass(frozen=True)
class ChunkScores:
    """What each chunk of a text costs."""

    log_prob: np.ndarray  # (n,) nats
    characters: np.ndarray  # (n,) how many it has

    @property
    def bits_per_character(self) -> float:
        return float(-self.log_prob.sum() / math.log(2) / self.characters.sum())


@dataclass(frozen=True)
class _Drawing:
    """How blanks are drawn."""

    steps: int | str | None
    temperature: float
    groups: str
    rounds: int  # of refining


class StoredText(Stored):
    """What is modelled, as schema.json keeps it."""

    alphabet: StoredCategorical

    def __post_init__(self):
        if any(not isinstance(value, str) or len(value) != 1 for value in self.alphabet.values):
            raise ValueError("an alphabet is of single characters")


class TextReport(Report):
    characters: HowMany
    length: HowMany
    alphabet: str
    losses: tuple[list[HowMany], list[float | None]]
    held_out_bits_per_character: NotRequired[float | None]


class TextDensity(Density):
    """The distribution of pieces of text, and every conditional of it.

    Parameters
    ----------
    length : int
        How many characters are modelled at a time.
    alphabet : str, optional
        "text8" (a–z and space), "bytes" (of UTF-8; lengths and places then count bytes), or the characters
        themselves; by default those that occur.
    workload : str or Objective
        Which questions will be asked: "any" (default: scoring and filling alike), "joint", "marginals" or
        "conditionals".
    network : "path" or "transformer"
        The path Transformer scores and trains a whole path in one pass; the masked Transformer looks once a step.
    max_minutes : float
        fit returns by then at the latest.
    max_steps, width, depth, dropout, learning_rate, weight_decay, batch_size : optional
    checkpoint : path, optional
        A folder where training saves its state every 20 seconds; fitting the same text again resumes there. It is kept
        until the model is saved.
    verbose : bool, optional
        Progress on standard error; by default only in a terminal.
    random_state : int
    """

    kind = "text"
    stored_type = StoredText
    report_type = TextReport

    def __init__(
        self,
        length=64,
        alphabet=None,
        workload="any",
        network="path",
        max_minutes=10.0,
        max_steps=None,
        width=None,
        depth=None,
        dropout=None,
        learning_rate=6e-3,
        weight_decay=0.02,
        batch_size=64,
        checkpoint=None,
        verbose=None,
        random_state=0,
    ):
        self.length = length
        self.alphabet = alphabet
        self.workload = workload
        self.network = network
        self.max_minutes = max_minutes
        self.max_steps = max_steps
        self.width = width
        self.depth = depth
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(self, X, y=None) -> TextDensity:
        """Learn from a string, a file (a path; .gz too) or a list of strings."""
        self._begin()
        if not COUNT.allows(self.length):
            raise TextError(f"The length is {self.length!r}; it must be a whole number of characters, at least 1.")
        with share_bar("reading", self.verbose) as report:
            corpus = read_corpus(X, self.alphabet, report)
        longest = int((corpus.ends - corpus.starts).max())
        if longest < self.length:
            which = "The text has" if len(corpus.ends) == 1 else "The longest string has"
            raise TextError(
                f"{which} {longest} characters and length is {self.length}; give more text or a smaller length."
            )
        self.alphabet_ = corpus.alphabet
        self.architecture_ = self._architecture(len(corpus))
        objective = text_objective_of(self.workload, self.network)
        recipe = Recipe(self.domains, self.architecture_, objective, self._settings())
        learn, held, is_held_out = _split(corpus, self.length)
        fingerprint = ""
        if self.checkpoint:
            fingerprint = fingerprint_of(recipe, str(self.workload), np.asarray(corpus.symbols[: 1 << 24]), corpus.ends)
        self.model_, outcomes = fit_models(
            recipe, lambda _: (learn, held), 1, self.checkpoint, fingerprint, self.verbose, self._began, CLOSING
        )
        outcome = outcomes[0]
        self.report_ = {
            "characters": len(corpus), "length": self.length, "alphabet": self.alphabet_.characters,
            "parameters": self.model_.n_parameters, "steps": outcome.steps, "best_step": outcome.best_step,
            "training_seconds": round(outcome.seconds, 1), "stopped": outcome.stopped, "curve": outcome.curve,
            "is_cut_short": outcome.is_cut_short,
        }  # fmt: skip
        self.report_["losses"] = losses_by_evidence(self.model_, held)
        if is_held_out:
            self.report_["held_out_bits_per_character"] = self._score(held).bits_per_character
        self.report_["seconds"] = self._seconds()
        return self

    def _architecture(self, n_characters: int) -> Architecture:
        networks = networks_for("text")
        if self.network not in networks:
            raise QuestionError(f"There is no network {self.network!r} for text; use one of {', '.join(networks)}.")
        chosen = text_architecture_for(n_characters, self.network)
        given = {name: getattr(self, name) for name in ("width", "depth", "dropout") if getattr(self, name) is not None}
        return replace(chosen, **given)

    def _settings(self) -> Settings:
        return Settings(
            max_steps=self.max_steps or 200_000,
            max_minutes=self.max_minutes,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            batch_size=self.batch_size,
            muon=True,
            ema=0.998,
            validation_rows=N_VALID,
            patience=15,
            seed=self.seed_,
        )

    # ------------------------------------------------------------------ how likely

    def log_prob(self, X, *, given=None, order: Protocol | str = "left-to-right", blank: str = BLANK) -> np.ndarray:
        """Log probability in nats of each string, from left to right.

        A string may be shorter than `length`: what follows it is left open. With `given` (one string for all or
        one for each, blanks where nothing is known): log p(string | given), over its blanks. A blank
        in the string is not asked. `order` is "left-to-right", "strided", "bit-reversal" or a protocol.
        """
        self._check_fitted()
        protocol = _order(order, self.length)
        x, is_query = self._encode(_as_list(X), blank)
        is_evidence = torch.zeros_like(is_query)
        if given is not None:
            known = _as_list(given)
            x_known, is_evidence = self._encode(known * len(x) if len(known) == 1 else known, blank)
            if len(x_known) != len(x):
                raise QuestionError(f"There are {len(x)} strings and {len(x_known)} given; they must match.")
            differs = is_query & is_evidence & (x != x_known).any(-1)
            if bool(differs.any()):
                row, place = differs.nonzero()[0].tolist()
                raise QuestionError(
                    f"String {row} and what is given have different characters at place {place}; put {blank!r} there "
                    "in one of them."
                )
            x = torch.where(is_evidence.unsqueeze(-1), x_known, x)
        question = Question(is_query & ~is_evidence, is_evidence)
        with share_bar("scoring", self.verbose if len(x) > 2000 else False) as report:
            return log_prob(self.model_, x, question, [protocol], report=report).numpy()

    def score_chunks(self, X) -> ChunkScores:
        """A text (a string, a file or a list of strings) in pieces of `length` that know nothing of each other.

        The rest of a document, shorter than `length`, is scored too.
        """
        self._check_fitted()
        tiles = Tiles(read_corpus(X, self.alphabet_.characters), self.length)
        found = []
        with share_bar("scoring", self.verbose if len(tiles) > 2000 else False) as report:
            for rows in torch.arange(len(tiles)).split(SCORED):
                found.append(self._score(tiles.rows(rows)))
                if report:
                    report((int(rows[-1]) + 1) / len(tiles))
        log_probs, characters = zip(*((one.log_prob, one.characters) for one in found), strict=True)
        return ChunkScores(np.concatenate(log_probs), np.concatenate(characters))

    def _score(self, data: Data) -> ChunkScores:
        question = Question(data.is_present, torch.zeros_like(data.is_present))
        return ChunkScores(log_prob(self.model_, data.x, question).numpy(), data.is_present.sum(1).numpy())

    def bits_per_character(self, X) -> float:
        """Of a text of any length, cut into chunks of `length` that know nothing of each other."""
        return self.score_chunks(X).bits_per_character

    def score(self, X, y=None) -> float:
        """Mean log probability per character, in nats: higher is better."""
        return -self.bits_per_character(X) * math.log(2)

    def _read(self, text: str, blank: str) -> tuple[np.ndarray, np.ndarray]:
        """(n,) symbols of a question and (n,) where they are given; a blank is one symbol."""
        if not isinstance(blank, str) or len(blank) != 1:
            raise QuestionError(f"The blank sign is {blank!r}; it must be one character.")
        nothing, pieces, before = np.zeros(1, dtype=np.int64), [], 0
        for piece in text.split(blank):
            pieces.append(self.alphabet_.symbols(piece, before))
            before += len(piece) + 1
        symbols = np.concatenate([part for piece in pieces for part in (piece, nothing)][:-1])
        ends = np.cumsum([len(piece) + 1 for piece in pieces])[:-1]
        is_given = np.ones(len(symbols), dtype=bool)
        is_given[ends - 1] = False
        return symbols, is_given

    def blanks(self, text: str, blank: str = BLANK) -> list[int]:
        """The places (counted from 0) that are blank, as `conditional` takes them."""
        return np.flatnonzero(~self._read(text, blank)[1]).tolist()

    def _encode(self, texts: Sequence[str], blank: str = BLANK) -> tuple[Tensor, Tensor]:
        """Cells (n, length, 4) and where a character is given: blanks and the open end are not."""
        symbols = np.zeros((len(texts), self.length), dtype=np.int64)
        is_given = np.zeros(symbols.shape, dtype=bool)
        for row, text in enumerate(texts):
            read, given = self._read(text, blank)
            if len(read) > self.length:
                raise QuestionError(
                    f"The string {text[:20]!r}… has {len(read)} {self._units} and the model's length is {self.length}; "
                    "cut it, or use bits_per_character or fill, which take longer texts."
                )
            symbols[row, : len(read)], is_given[row, : len(read)] = read, given
        return torch.from_numpy(cells_of(symbols)), torch.from_numpy(is_given)

    @property
    def _units(self) -> str:
        return "bytes" if self.alphabet_.is_bytes else "characters"

    # ------------------------------------------------------------------ one character

    def conditional(self, place: int, given: str = "", *, blank: str = BLANK) -> Answer:
        """The distribution of the character at a place (counted from 0) given the others."""
        self._check_fitted()
        if not COUNT_OR_NONE.allows(place) or place >= self.length:
            raise QuestionError(f"There is no place {place!r}; places are the whole numbers 0 to {self.length - 1}.")
        if not isinstance(given, str):
            raise QuestionError(f"What is given is one string with blanks; {type(given).__name__} is not one.")
        x, is_evidence = self._encode([given], blank)
        if is_evidence[0, place]:
            held = self.alphabet_.domain.values[int(x[0, place, SYMBOL])]
            raise QuestionError(f"Place {place} is {held!r} in what is given; put {blank!r} there to ask it.")
        with torch.no_grad():
            look = self.model_.look(x, is_evidence, torch.tensor([place]))
        variable = Variable(f"character {place}", self.alphabet_.domain, Storage("string", "str"))
        return Answer(variable, distribution_of(variable.domain, look.of(place)), {"text": given})

    # ------------------------------------------------------------------ draws

    def sample(self, n: int = 1, *, given: str = "", steps: int | str | None = None, temperature: float = 1.0,
               groups: str = "planned", random_state=None) -> list[str]:  # fmt: skip
        """New pieces of text, all beginning with what is `given`."""
        self._check_fitted()
        if not isinstance(given, str):
            raise QuestionError(f"What is given is a string; {type(given).__name__} is not one.")
        start = self.alphabet_.symbols(given)
        if len(start) > self.length:
            raise QuestionError(
                f"What is given has {len(start)} {self._units} and the model's length is {self.length}; shorten it."
            )
        symbols = np.concatenate([start, np.zeros(self.length - len(start), dtype=np.int64)])
        how = _Drawing(steps, temperature, groups, 0)
        return self._fill(symbols, np.arange(self.length) < len(start), n, how, random_state)

    def fill(self, text: str, n: int = 1, *, steps: int | str | None = None, temperature: float = 1.0, refine: int = 0,
             groups: str = "planned", blank: str = BLANK, random_state=None) -> list[str]:  # fmt: skip
        """n texts with every blank drawn given all that is there, and nothing else changed.

        By default one character a network call, from left to right. With a number of `steps`, in groups: "planned" by
        what each step is known to lose, or each the "surest" of all that are left; with "auto", what is nearly
        independent is revealed together. `refine` says how often each blank is then drawn again, and kept or not by
        what the whole text is worth from left to right: slower, and much better where many characters are blank. A text
        longer than `length` is filled window by window, each half a window beyond the last, so that what is drawn has
        at least a quarter of a window on either side.
        """
        self._check_fitted()
        if not isinstance(text, str) or not text:
            raise QuestionError("There is nothing to fill: give a string with blanks.")
        if not COUNT_OR_NONE.allows(refine):
            raise QuestionError(f"refine is {refine!r}; it must be {COUNT_OR_NONE}.")
        how = _Drawing(steps, temperature, groups, int(refine))
        return self._fill(*self._read(text, blank), n, how, random_state)

    def _fill(self, symbols: np.ndarray, is_given: np.ndarray, n: int, how: _Drawing, random_state) -> list[str]:
        check_drawing(n, how.steps, how.temperature, how.groups)
        generator = self._generator(random_state)
        drawn, is_known = symbols[None].repeat(n, axis=0), is_given.copy()  # (n, L), (L,)
        for window, until in self._windows(len(symbols)):
            is_asked = ~is_known[window]
            if is_asked[: until - window.start].any():
                filled = self._fill_window(drawn[:, window], ~is_asked, how, generator)
                drawn[:, window.start : until] = filled[:, : until - window.start]
                is_known[window.start : until] = True
        return [self.alphabet_.text(row) for row in drawn]

    def _windows(self, n: int) -> list[tuple[slice, int]]:
        """Pieces of at most `length`, each half a window beyond the last, the last at the very end; and up to where
        each is kept: what lies in its last quarter is drawn again by the next, which sees more of what follows."""
        half = max(1, self.length // 2)
        begins = [*range(0, max(0, n - self.length), half), max(0, n - self.length)]
        windows = [slice(begin, min(n, begin + self.length)) for begin in begins]
        return [(w, n if k + 1 == len(windows) else w.stop - self.length // 4) for k, w in enumerate(windows)]

    def _fill_window(self, symbols: np.ndarray, is_known: np.ndarray, how: _Drawing, generator) -> np.ndarray:
        """(n, L) symbols with what is not known drawn; L is at most `length`."""
        n, size = symbols.shape
        x = torch.from_numpy(cells_of(np.pad(symbols, ((0, 0), (0, self.length - size)))))
        is_evidence = torch.zeros(n, self.length, dtype=torch.bool)
        is_evidence[:, :size] = torch.from_numpy(is_known)
        is_query = ~is_evidence & (torch.arange(self.length) < size)
        question, losses = Question(is_query, is_evidence), self.report_["losses"]
        path, choose = drawing_path(question, how.steps, losses, MUTUAL_NATS, Strided, generator, how.groups)
        with share_bar("drawing", self.verbose if n * self.length > 5000 else False) as report:
            drawn = draw(self.model_, x, path, generator, how.temperature, report, choose)
        with share_bar("refining", self.verbose if how.rounds else False) as report:
            drawn = refine(self.model_, drawn, question, how.rounds, generator, how.temperature, report)
        return drawn[:, :size, SYMBOL].numpy()

    # ------------------------------------------------------------------ saving

    @property
    def domains(self) -> SharedDomain:
        return SharedDomain(self.alphabet_.domain, (self.length,))

    def _variables_to_json(self) -> dict[str, Any]:
        return {"alphabet": self.alphabet_.domain.to_json()}

    def _variables_from_stored(self, stored: StoredText) -> None:
        if not COUNT.allows(self.length):
            raise ValueError("the length is not a number of characters")
        self.alphabet_ = Alphabet(stored.alphabet.read())

    def _try_out(self) -> None:
        super()._try_out()
        text_objective_of(self.workload, self.architecture_.network)
        check_losses(self.report_["losses"])

    def describe(self) -> str:
        """What was learnt, for a person."""
        self._check_fitted()
        r = self.report_
        bits = r.get("held_out_bits_per_character")
        held_out = "Too short for a part to be held out" if bits is None else f"Held-out bits per character: {bits:.3f}"
        return (
            f"{r['characters']:,} characters in pieces of {r['length']}, {len(r['alphabet'])} symbols "
            f"{r['alphabet'][:60]!r};\n{r['parameters']:,} parameters, {self._describe_training()}.\n{held_out}."
        )


def _as_list(X) -> list[str]:
    if not isinstance(X, Iterable):
        raise QuestionError(f"Strings are asked for; {type(X).__name__} is not one.")
    texts = [X] if isinstance(X, str) else list(X)
    wrong = [text for text in texts if not isinstance(text, str)]
    if wrong:
        raise QuestionError(f"Strings are asked for; {type(wrong[0]).__name__} is not one.")
    return texts


def _order(order: Protocol | str, length: int) -> Protocol:
    """A protocol by its name, or as it is."""
    named = {
        "left-to-right": Canonical(),
        "strided": Strided(max(2, round(length**0.5))),
        "bit-reversal": BitReversal(),
    }
    if isinstance(order, str) and order in named:
        return named[order]
    if not isinstance(order, Protocol):
        raise QuestionError(f"{order!r} is not an order: use one of {', '.join(named)}, or a protocol.")
    if isinstance(order, Canonical) and order.order is not None and sorted(order.order) != list(range(length)):
        raise QuestionError(f"The order must name each of the {length} places once.")
    return order


def _split(corpus: Corpus, length: int) -> tuple[Chunks, Data, bool]:
    """All but the last twentieth (at most 200,000 characters) to learn from; chunks of the rest to validate on; and
    whether they are held out: a text shorter than two chunks is learnt whole."""
    n = len(corpus)
    cut = max(min(n // 20, 200_000), length)
    is_held_out = n - cut >= length
    learn = corpus.part(0, n - cut) if is_held_out else corpus
    held = Chunks(corpus.part(n - cut, n), length)
    places = torch.linspace(0, len(held) - 1, min(max(N_VALID, VALID_CHARACTERS // length), len(held))).long()
    return Chunks(learn, length), held.rows(places), is_held_out
