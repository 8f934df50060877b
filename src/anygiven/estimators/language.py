"""The question language: "price, area | rooms=3, city='New York'".

`column=?` is the word for unknown: after the bar as if the column were not there, before it as if it had no value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from anygiven.errors import QuestionError

UNKNOWN = "?"
EXAMPLE = "\"price, area | rooms=3, city='New York'\""


class Unknown:
    """What `?` stands for."""


@dataclass(frozen=True)
class ParsedQuestion:
    """Columns asked (with a value where one was given) and what is given."""

    query: dict[str, str | float | None]
    given: dict[str, str | float]


def parse_question(text: str) -> ParsedQuestion:
    """Columns before the bar are asked, `column=value` after it is known; quotes keep commas, bars and spaces.

    Also as others write it: P(price | rooms=3), and "price given rooms=3".
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        raise QuestionError("The question is not UTF-8 text; type it again.") from None
    asked, bar, known = _cut(_plainly(text), "|")
    if bar and "|" in _outside_quotes(known):
        raise QuestionError(f"The question has more than one '|'; write it like {EXAMPLE}.")
    query: dict[str, str | float | None] = {}
    for item in _items(asked):
        name, value = _pair(item)
        _once(name, query, "asked")
        query[name] = value if isinstance(value, (str, float)) else None
    if not query:
        raise QuestionError(f"The question asks for nothing; write it like {EXAMPLE}.")
    given = parse_given(known)
    overlap = [name for name in query if name in given]
    if overlap:
        raise QuestionError(f"Column {overlap[0]!r} is both asked and given; it can be only one.")
    return ParsedQuestion(query, given)


def parse_given(text: str) -> dict[str, str | float]:
    """ "age=51, city='New York'" → a dict."""
    known: dict[str, str | float | type[Unknown]] = {}
    for item in _items(text):
        name, value = _pair(item)
        if value is None:
            raise QuestionError(f"{item.strip()!r} after the bar has no value; write {name}=value.")
        _once(name, known, "given")
        known[name] = value
    return {name: value for name, value in known.items() if isinstance(value, (str, float))}


def _plainly(text: str) -> str:
    """Without P(…) around it, and with a bar for the word given."""
    inner = re.fullmatch(r"\s*[Pp]\((.*)\)\s*", text, re.DOTALL)
    text = inner[1] if inner else text
    blanked = _outside_quotes(text)
    word = re.search(r"\sgiven\s", blanked)
    return text if "|" in blanked or not word else f"{text[: word.start()]}|{text[word.end() :]}"


def _once(name: str, seen: dict, verb: str) -> None:
    if name in seen:
        raise QuestionError(f"Column {name!r} is {verb} twice.")


def _outside_quotes(text: str) -> str:
    """The text with everything inside quotes blanked, same length."""
    if _has_open_quote(text):
        raise QuestionError(f"A quote is not closed in {text.strip()!r}.")
    return re.sub(r"'[^']*'|\"[^\"]*\"", lambda m: "\0" * len(m[0]), text)


def _has_open_quote(text: str) -> bool:
    rest = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
    # An apostrophe inside a word (O'Brien) opens nothing.
    return bool(re.search(r"(^|[\s,=|])['\"]", rest))


def _cut(text: str, sign: str) -> tuple[str, str, str]:
    place = _outside_quotes(text).find(sign)
    return (text, "", "") if place < 0 else (text[:place], sign, text[place + 1 :])


def _items(text: str) -> list[str]:
    blanked, items, start = _outside_quotes(text), [], 0
    for place in [i for i, c in enumerate(blanked) if c == ","] + [len(text)]:
        items.append(text[start:place])
        start = place + 1
    if len(items) > 1 and any(not item.strip() for item in items):
        raise QuestionError(f"There is an empty place between commas in {text.strip()!r}.")
    return [item for item in items if item.strip()]


def _pair(item: str) -> tuple[str, str | float | type[Unknown] | None]:
    name, sign, value = _cut(item, "=")
    blanked = _outside_quotes(name)
    if sign and blanked.rstrip()[-1:] in ("<", ">", "!"):
        raise QuestionError(f"{item.strip()!r}: only '=' is understood; write column=value.")
    if not sign and re.search(r"[<>≤≥]", blanked):
        raise QuestionError(f"{item.strip()!r}: only '=' is understood; write column=value.")
    if not _unquoted(name):
        raise QuestionError(f"{item.strip()!r} names no column; write column=value.")
    value = value.removeprefix("=")  # == is = to programmers
    if sign and not _unquoted(value):
        raise QuestionError(f"{item.strip()!r} has no value after '='; if it is unknown, write {_unquoted(name)}=?.")
    return _unquoted(name), (_value(item, value) if sign else None)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


def _value(item: str, text: str) -> str | float | type[Unknown]:
    """A number if it reads as one and is not quoted; text otherwise."""
    stripped = text.strip()
    plain = _unquoted(stripped)
    if plain != stripped:
        return plain
    if plain == UNKNOWN:
        return Unknown
    if "_" in plain or re.fullmatch(r"0\d+", plain):  # Python's 4_0 is nobody else's 40, and 01067 is a code
        return plain
    try:
        number = float(plain)
    except ValueError:
        return plain
    if math.isnan(number):
        raise QuestionError(f"{item.strip()!r} is no value; if it is unknown, write ? instead of {plain}.")
    return number
