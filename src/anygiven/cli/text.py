"""What the commands do with a text model."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from anygiven.cli.commands import Commands, Options, drawing_options
from anygiven.cli.outputs import tell
from anygiven.disk import check_file_place, write_text
from anygiven.errors import QuestionError
from anygiven.estimators import TextDensity
from anygiven.variables.characters import BLANK
from anygiven.variables.tables import check_writable, write_table

BAR = 30  # characters of a full bar
MAX_SHOWN = 8  # blanks whose distributions are shown


class TextCommands(Commands):
    noun = "texts"
    takes: ClassVar = {
        "fit": ("--length", "--alphabet"),
        "ask": ("--blank",),
        "sample": ("--groups", "--refine", "--blank", "--json"),
    }
    instead: ClassVar = {
        "impute": 'fill blanks with anygiven sample {model} --given "the c_t".',
        "inpaint": "make one of images with anygiven fit FOLDER --kind image --out MODEL.",
    }

    def own(self, options: Options) -> dict[str, Any]:
        return {"length": options["--length"], "alphabet": options["--alphabet"]}

    def hint(self, density: TextDensity, out: Path) -> str:
        return f"Ask it: anygiven ask {out} {shlex.quote(_example(density))}"

    def ask(self, density: TextDensity, model: Path, question: str, options: Options, as_json: bool) -> None:
        ask_text(density, model, question, options["--blank"] or BLANK, as_json)

    def score(self, density: TextDensity, source: Path, out: Path | None, options: Options, as_json: bool) -> None:
        score_text(density, source, out, as_json)

    def sample(
        self, density: TextDensity, n: int, given: str, out: Path | None, options: Options, as_json: bool
    ) -> None:
        how = drawing_options(options)
        sample_text(density, n, given, out, options["--refine"] or 0, options["--blank"] or BLANK, as_json, how)


def _example(density: TextDensity) -> str:
    """A drawn text with every fourth character blank."""
    drawn = density.sample(1, random_state=0)[0][:16]
    return "".join(BLANK if k % 4 == 2 else character for k, character in enumerate(drawn))


def ask_text(density: TextDensity, model: Path, text: str, blank: str, as_json: bool) -> None:
    """The distribution of each blank given all that is there, and three ways to fill them all."""
    blanks = density.blanks(text, blank)
    if not blanks:
        raise QuestionError(f"The text has no blank; write {blank} where a character is asked.")
    if len(text) > density.length:
        raise QuestionError(
            f"The text has {len(text)} characters and the model's length is {density.length}; cut it, or fill it: "
            f"anygiven sample {model} --given TEXT."
        )
    answers = {place: density.conditional(place, text, blank=blank).top(5) for place in blanks[:MAX_SHOWN]}
    filled = density.fill(text, 3, blank=blank, random_state=0)
    if as_json:
        top = {place: dict(pairs) for place, pairs in answers.items()}
        print(json.dumps({"text": text, "characters": top, "filled": filled}, ensure_ascii=False))
        return
    shown = [k for k, character in enumerate(text) if character == blank]
    for at, (place, pairs) in zip(shown, answers.items(), strict=False):
        print(f"place {place}: {text[:at]}[{blank}]{text[at + 1 :]}")
        for character, p in pairs:
            print(f"  {character!r:<5} {p:6.1%} {'█' * round(BAR * p)}")
    if len(blanks) > MAX_SHOWN:
        print(f"and {len(blanks) - MAX_SHOWN} more blanks")
    print("filled:", *(repr(one) for one in filled), sep="\n  ")


def sample_text(density: TextDensity, n: int, given: str, out: Path | None, refine: int, blank: str, as_json: bool,
                options: dict) -> None:  # fmt: skip
    """Texts that begin with `given`, or fill its blanks; one a line, with line ends inside written as \\n."""
    if n < 1:
        raise QuestionError("Ask for at least one text.")
    if out is not None:
        check_file_place(out)
    if blank in given:
        drawn = density.fill(given, n, refine=refine, blank=blank, **options)
    elif refine:
        raise QuestionError(f"--refine is for blanks; write {blank} in --given where a character is asked.")
    else:
        drawn = density.sample(n, given=given, **options)
    lines = json.dumps(drawn, ensure_ascii=False) if as_json else "\n".join(map(_in_one_line, drawn))
    if out is None:
        print(lines)
    else:
        write_text(out, lines + "\n")
        tell(out, f"{n} texts written to {out}.")


def _in_one_line(text: str) -> str:
    return text.replace("\r", "\\r").replace("\n", "\\n")


def score_text(density: TextDensity, text: Path, out: Path | None, as_json: bool) -> None:
    """Bits per character of a file, chunk by chunk."""
    if out is not None:
        check_writable(out)
    scores = density.score_chunks(text)
    if out is not None:
        write_table(pd.DataFrame({"log_prob": scores.log_prob, "characters": scores.characters}), out)
    bits, characters, chunks = scores.bits_per_character, int(scores.characters.sum()), len(scores.characters)
    if as_json:
        tell(out, json.dumps({"bits_per_character": bits, "characters": characters, "chunks": chunks}))
    else:
        tell(out, f"{bits:.4f} bits per character over {characters:,} characters in {chunks:,} chunks.")
        if out is not None:
            tell(out, f"Log probabilities of the chunks written to {out}.")
