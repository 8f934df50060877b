"""What the command line does with one kind of data: the same verbs for each, found through anygiven.kinds."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from anygiven.cli.outputs import tell
from anygiven.errors import QuestionError
from anygiven.kinds import KINDS

Options = dict[str, Any]  # of the command line, by name; None or "" where they were not given


class Commands(ABC):
    """The verbs. What a kind does not answer to is refused in one sentence, and so is an option it would ignore."""

    noun: ClassVar[str]  # "tables"
    takes: ClassVar[dict[str, tuple[str, ...]]]  # verb → those options of the verb that not every kind takes
    instead: ClassVar[dict[str, str]] = {}  # verb → what to do instead, with {model}

    def check(self, verb: str, options: Options) -> None:
        """An option that would be ignored is a mistake."""
        for name, value in options.items():
            if not (value is None or value == "") and name not in self.takes.get(verb, ()):
                raise QuestionError(f"{name} is for {_takers(verb, name)} alone; leave it out.")

    kind: str  # the name in KINDS that they were found by

    @abstractmethod
    def own(self, options: Options) -> dict[str, Any]:
        """What the options of this kind say of a density that is to be fitted; None leaves it to the density."""

    def new(self, common: Options, options: Options) -> Any:
        """A density that is to be fitted: as a method of a paper has it, or by default."""
        own = {name: value for name, value in self.own(options).items() if value is not None}
        given, method = {**common, **own}, common["method"]
        del given["method"]
        if method is None:
            return KINDS[self.kind].density_class()(**given)
        from anygiven.methods import METHODS

        if method not in METHODS:
            raise QuestionError(f"There is no method {method!r}; use one of {', '.join(METHODS)}.")
        return METHODS[method](self.kind, **given)

    def read(self, source: Path, options: Options) -> Any:
        """What is fitted."""
        return source

    @abstractmethod
    def hint(self, density: Any, out: Path) -> str:
        """What to do with a model that was just fitted."""

    def fit(self, source: Path, out: Path, common: Options, options: Options, as_json: bool) -> None:
        density = self.new({**common, "verbose": False if as_json else None}, options)
        density.fit(self.read(source, options))
        density.save(out)
        if as_json:
            print(json.dumps({"model": str(out), **density.report_}, default=str, ensure_ascii=False))
        else:
            print(f"{density.describe()}\n\nSaved to {out}. {self.hint(density, out)}")

    def facts(self, density: Any) -> dict[str, Any]:
        """What describe tells programs."""
        return density.report_

    def ask(self, density: Any, model: Path, question: str, options: Options, as_json: bool) -> None:
        raise self._refusal("ask", model)

    def score(self, density: Any, source: Path, out: Path | None, options: Options, as_json: bool) -> None:
        raise self._refusal("score", source)

    def sample(self, density: Any, n: int, given: str, out: Path | None, options: Options, as_json: bool) -> None:
        raise self._refusal("sample", Path("MODEL"))

    def impute(self, density: Any, model: Path, source: Path, out: Path, options: Options, as_json: bool) -> None:
        raise self._refusal("impute", model)

    def inpaint(self, density: Any, model: Path, source: Path, out: Path, options: Options) -> None:
        raise self._refusal("inpaint", model)

    def _refusal(self, verb: str, model: Path) -> QuestionError:
        instead = self.instead.get(verb, "anygiven --help lists what there is.").format(model=model)
        return QuestionError(f"{model} is a model of {self.noun}; {instead}")


def _takers(verb: str, option: str) -> str:
    """The kinds that take an option."""
    every = [kind.make_commands() for kind in KINDS.values()]
    return " and ".join(kind.noun for kind in every if option in kind.takes.get(verb, ()))


def commands_for(kind: str) -> Commands:
    if kind not in KINDS:
        raise QuestionError(f"There is no kind {kind!r}; use one of {', '.join(KINDS)}.")
    commands = KINDS[kind].make_commands()
    commands.kind = kind
    return commands


def whole_number(text: str | None) -> int | None:
    if text is not None and not (text.isdecimal() and text.isascii()):
        raise QuestionError(f"--steps {text!r} is not a whole number.")
    return None if text is None else int(text)


def drawing_options(options: Options) -> dict[str, Any]:
    """How texts and images are drawn: in steps that are counted or found."""
    steps = options["--steps"]
    return {
        "steps": steps if steps == "auto" else whole_number(steps),
        "temperature": options["--temperature"],
        "groups": options["--groups"] or "planned",
        "random_state": options["--seed"],
    }


def listed(text: str | None) -> list[str]:
    """ "a, b" → its names."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def tell_figures(out: Path | None, figures: dict[str, Any], sentence: str, as_json: bool) -> None:
    tell(out, json.dumps(figures) if as_json else sentence)
