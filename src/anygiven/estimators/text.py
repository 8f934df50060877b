"""TextDensity: fit a text once, then ask any of its characters given any others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from typing_extensions import NotRequired

from anygiven.errors import QuestionError, TextError
from anygiven.estimators.answers import Answer
from anygiven.estimators.defaults import Architecture, text_architecture_for
from anygiven.estimators.density import Density, HowMany, Report
from anygiven.estimators.drawing import check_drawing, check_losses, drawing_path
from anygiven.estimators.options import COUNT, COUNT_OR_NONE
from anygiven.estimators.progress import share_bar
from anygiven.estimators.workload import text_workload
from anygiven.inference import distribution_at, draw, log_prob, losses_by_evidence, refine
from anygiven.lattice import BitReversal, Canonical, Protocol, Question, Strided
from anygiven.training import Settings
from anygiven.variables.characters import BLANK, Characters, Chunks, Tiles, as_strings
from anygiven.variables.domains import SYMBOL
from anygiven.variables.rows import Data
from anygiven.variables.schema import Variable
from anygiven.variables.tables import Storage
from anygiven.variables.text import Corpus, cells_of, read_corpus

SCORED = 4096  # chunks scored at a time
MUTUAL_NATS = 0.1  # what characters revealed together may know of each other, with steps="auto"
CLOSING = 14  # validations' time, for what is measured after the training
N_VALID = 200  # chunks that the validation questions are about, at least
VALID_CHARACTERS = 12_800  # and so many characters: short chunks judge coarsely


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
    network : "auto", "path" or "transformer"
        The path Transformer scores and trains a whole path in one pass; the masked Transformer looks once a step.
    max_minutes : float
        fit returns by then at the latest.
    max_steps, width, depth, dropout, learning_rate, weight_decay, batch_size : optional
    training : dict, optional
        Other settings of the training loop (anygiven.training.Settings): {"schedule": "linear", "noise": 0.01, …}.
    device : "auto", "cpu", "cuda" or "mps"
        Where it is trained and answers.
    checkpoint : path, optional
        A folder where training saves its state every 20 seconds; fitting the same text again resumes there. It is kept
        until the model is saved.
    verbose : bool, optional
        Progress on standard error; by default only in a terminal.
    random_state : int
    """

    kind = "text"
    variables_type = Characters
    report_type = TextReport
    variables_: Characters

    def __init__(
        self,
        length=64,
        alphabet=None,
        workload="any",
        network="auto",
        max_minutes=10.0,
        max_steps=None,
        width=None,
        depth=None,
        dropout=None,
        learning_rate=6e-3,
        weight_decay=0.02,
        batch_size=64,
        training=None,
        device="auto",
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
        self.training = training
        self.device = device
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
        self.variables_ = Characters(corpus.alphabet, self.length)
        self.architecture_ = self._choose_architecture(len(corpus))
        self.workload_ = text_workload(self.workload, self.length, self.architecture_.network)
        learn, held, is_held_out = _split(corpus, self.length)
        told_by = (np.asarray(corpus.symbols[: 1 << 24]), corpus.ends) if self.checkpoint else ()
        outcomes = self._learn(lambda _: (learn, held), len(corpus), told_by, CLOSING)
        self.report_ = {
            "characters": len(corpus),
            "length": self.length,
            "alphabet": corpus.alphabet.characters,
            **self._report_of(outcomes),
        }
        self.report_["losses"] = losses_by_evidence(self.model_, held)
        if is_held_out:
            self.report_["held_out_bits_per_character"] = self._score(held).bits_per_character
        self.report_["seconds"] = self._seconds()
        return self

    def _default_architecture(self, n: int) -> Architecture:
        return text_architecture_for(n, "path" if self.network == "auto" else self.network)

    def _settings(self, n: int) -> Settings:
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
        x, is_query = self.variables_.encode(as_strings(X), blank)
        is_evidence = torch.zeros_like(is_query)
        if given is not None:
            known = as_strings(given)
            x_known, is_evidence = self.variables_.encode(known * len(x) if len(known) == 1 else known, blank)
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
        self._warn_untrained(question, [protocol])
        with share_bar("scoring", self.verbose if len(x) > 2000 else False) as report:
            return log_prob(self.model_, x, question, [protocol], report=report).numpy()

    def score_chunks(self, X) -> ChunkScores:
        """A text (a string, a file or a list of strings) in pieces of `length` that know nothing of each other.

        The rest of a document, shorter than `length`, is scored too.
        """
        self._check_fitted()
        tiles = Tiles(read_corpus(X, self.variables_.alphabet.characters), self.length)
        some = tiles.rows(torch.arange(len(tiles))[-SCORED:]).is_present
        self._warn_untrained(Question(some, torch.zeros_like(some)), [Canonical()])
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

    def blanks(self, text: str, blank: str = BLANK) -> list[int]:
        """The places (counted from 0) that are blank, as `conditional` takes them."""
        return np.flatnonzero(~self.variables_.read(text, blank)[1]).tolist()

    # ------------------------------------------------------------------ one character

    def conditional(self, query: int, given: str = "", *, blank: str = BLANK) -> Answer:
        """The distribution of the character at a place, `query` (counted from 0), given the others."""
        self._check_fitted()
        if not COUNT_OR_NONE.allows(query) or query >= self.length:
            raise QuestionError(f"There is no place {query!r}; places are the whole numbers 0 to {self.length - 1}.")
        if not isinstance(given, str):
            raise QuestionError(f"What is given is one string with blanks; {type(given).__name__} is not one.")
        x, is_evidence = self.variables_.encode([given], blank)
        if is_evidence[0, query]:
            held = self.variables_.alphabet.domain.values[int(x[0, query, SYMBOL])]
            raise QuestionError(f"Place {query} is {held!r} in what is given; put {blank!r} there to ask it.")
        variable = Variable(self.variables_.name_of(query), self.variables_.alphabet.domain, Storage("string", "str"))
        is_query = torch.zeros_like(is_evidence).index_fill(1, torch.tensor([query]), True)
        self._warn_untrained(Question(is_query, is_evidence))
        distribution = distribution_at(self.model_, self.domains, x, is_evidence, query)
        return Answer(variable, distribution, {"text": given})

    # ------------------------------------------------------------------ draws

    def sample(self, n: int = 1, *, given: str = "", steps: int | str | None = None, temperature: float = 1.0,
               groups: str = "planned", random_state=None) -> list[str]:  # fmt: skip
        """New pieces of text, all beginning with what is `given`."""
        self._check_fitted()
        if not isinstance(given, str):
            raise QuestionError(f"What is given is a string; {type(given).__name__} is not one.")
        start = self.variables_.alphabet.symbols(given)
        if len(start) > self.length:
            raise QuestionError(
                f"What is given has {len(start)} {self.variables_.units} and the model's length is {self.length}; "
                "shorten it."
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
        return self._fill(*self.variables_.read(text, blank), n, how, random_state)

    def _fill(self, symbols: np.ndarray, is_given: np.ndarray, n: int, how: _Drawing, random_state) -> list[str]:
        check_drawing(n, how.steps, how.temperature, how.groups)
        generator = self._generator(random_state)
        drawn, is_known = symbols[None].repeat(n, axis=0), is_given.copy()  # (n, L), (L,)
        for window, until in self.variables_.windows(len(symbols)):
            is_asked = ~is_known[window]
            if is_asked[: until - window.start].any():
                filled = self._fill_window(drawn[:, window], ~is_asked, how, generator)
                drawn[:, window.start : until] = filled[:, : until - window.start]
                is_known[window.start : until] = True
        return [self.variables_.alphabet.text(row) for row in drawn]

    def _fill_window(self, symbols: np.ndarray, is_known: np.ndarray, how: _Drawing, generator) -> np.ndarray:
        """(n, L) symbols with what is not known drawn; L is at most `length`."""
        n, size = symbols.shape
        x = torch.from_numpy(cells_of(np.pad(symbols, ((0, 0), (0, self.length - size)))))
        is_evidence = torch.zeros(n, self.length, dtype=torch.bool)
        is_evidence[:, :size] = torch.from_numpy(is_known)
        is_query = ~is_evidence & (torch.arange(self.length) < size)
        question, losses = Question(is_query, is_evidence), self.report_["losses"]
        self._warn_untrained(question, [Canonical()])
        path, choose = drawing_path(question, how.steps, losses, MUTUAL_NATS, Strided, generator, how.groups)
        with share_bar("drawing", self.verbose if n * self.length > 5000 else False) as report:
            drawn = draw(self.model_, x, path, generator, how.temperature, report, choose)
        with share_bar("refining", self.verbose if how.rounds else False) as report:
            drawn = refine(self.model_, drawn, question, how.rounds, generator, how.temperature, report)
        return drawn[:, :size, SYMBOL].numpy()

    # ------------------------------------------------------------------ what was learnt

    def _try_out(self) -> None:
        super()._try_out()
        if self.length != len(self.domains):
            raise ValueError("the length is another than the variables'")
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
