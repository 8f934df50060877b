"""What the commands do with a text model."""

from __future__ import annotations

import json
from pathlib import Path

from anygiven.errors import QuestionError
from anygiven.estimators import TextDensity
from anygiven.variables.tables import write_whole

BAR = 30  # characters of a full bar
MAX_SHOWN = 8  # blanks whose distributions are shown


def fit_text(text: Path, out: Path, minutes: float, length: int, alphabet: str | None, workload: str, network: str,
             seed: int, as_json: bool) -> None:  # fmt: skip
    density = TextDensity(
        length=length,
        alphabet=alphabet,
        workload=workload,
        network="path" if network == "auto" else network,
        max_minutes=minutes,
        checkpoint=str(out.with_name(f"{out.name}.checkpoint")),
        verbose=None if not as_json else False,
        random_state=seed,
    )
    density.fit(text)
    density.save(out)
    if as_json:
        print(json.dumps({"model": str(out), **density.report_}, ensure_ascii=False))
    else:
        print(density.describe())
        print(f'\nSaved to {out}. Ask it: anygiven ask {out} "the c_t s_t"')


def ask_text(density: TextDensity, text: str, as_json: bool) -> None:
    """The distribution of each blank given all that is there, and three ways to fill them all."""
    blanks = density.blanks(text)
    if not blanks:
        raise QuestionError("The text has no blank; write _ where a character is asked.")
    answers = {place: density.conditional(place, text).top(5) for place in blanks[:MAX_SHOWN]}
    filled = density.fill(text, 3)
    if as_json:
        top = {place: dict(pairs) for place, pairs in answers.items()}
        print(json.dumps({"text": text, "characters": top, "filled": filled}, ensure_ascii=False))
        return
    shown = [k for k, character in enumerate(text) if character == "_"]
    for at, (place, pairs) in zip(shown, answers.items(), strict=False):
        print(f"place {place}: {text[:at]}[_]{text[at + 1 :]}")
        for character, p in pairs:
            print(f"  {character!r:<5} {p:6.1%} {'█' * round(BAR * p)}")
    if len(blanks) > MAX_SHOWN:
        print(f"and {len(blanks) - MAX_SHOWN} more blanks")
    print("filled:", *(repr(one) for one in filled), sep="\n  ")


def sample_text(density: TextDensity, n: int, given: str, out: Path | None, steps: int | str | None, temperature: float,
                refine: int, seed: int) -> None:  # fmt: skip
    """Texts that begin with `given`, or fill its blanks."""
    if n < 1:
        raise QuestionError("Ask for at least one text.")
    options = {"steps": steps, "temperature": temperature, "random_state": seed}
    if "_" in given:
        drawn = density.fill(given, n, refine=refine, **options)
    else:
        drawn = density.sample(n, start=given, **options)
    if out is None:
        print("\n".join(drawn))
    else:
        write_whole(out, lambda path: path.write_text("\n".join(drawn) + "\n", encoding="utf-8"))
        print(f"{n} texts written to {out}.")


def score_text(density: TextDensity, text: Path, out: Path | None, as_json: bool) -> None:
    """Bits per character of a file, chunk by chunk."""
    scores = density.score_chunks(text)
    if out is not None:
        lines = "".join(f"{value}\n" for value in scores.log_prob)
        write_whole(out, lambda path: path.write_text("log_prob\n" + lines, encoding="utf-8"))
    bits, characters, chunks = scores.bits_per_character, int(scores.characters.sum()), len(scores.characters)
    if as_json:
        print(json.dumps({"bits_per_character": bits, "characters": characters, "chunks": chunks}))
    else:
        print(f"{bits:.4f} bits per character over {characters:,} characters in {chunks:,} chunks.")
        if out is not None:
            print(f"Log probabilities of the chunks written to {out}.")
