"""The question language."""

import pytest

from anygiven.errors import QuestionError
from anygiven.estimators.language import parse_given, parse_question


def test_the_example():
    parsed = parse_question("price, area | rooms=3, city='New York'")
    assert parsed.query == {"price": None, "area": None}
    assert parsed.given == {"rooms": 3.0, "city": "New York"}


@pytest.mark.parametrize(
    ("text", "query", "evidence"),
    [
        ("age", {"age": None}, {}),
        ("diabetes='yes' | age=51", {"diabetes": "yes"}, {"age": 51.0}),
        ("capital-gain | hours-per-week=40", {"capital-gain": None}, {"hours-per-week": 40.0}),
        ("'a, b' | \"x|y\"='1'", {"a, b": None}, {"x|y": "1"}),
        ("y | name=O'Brien", {"y": None}, {"name": "O'Brien"}),
        ("y | when=2020-01-31", {"y": None}, {"when": "2020-01-31"}),
        ("y | t=-3.5e2", {"y": None}, {"t": -350.0}),
        ("y | city=New York, n == 3", {"y": None}, {"city": "New York", "n": 3.0}),
        ("pm2.5 | TEMP=1", {"pm2.5": None}, {"TEMP": 1.0}),
        ("y | a=?, b=2", {"y": None}, {"b": 2.0}),  # ? is the word for unknown
        ("y=?, z=3 | a = ?", {"y": None, "z": 3.0}, {}),
        ("y | a='?'", {"y": None}, {"a": "?"}),  # and in quotes a value
        ("y | a='nan'", {"y": None}, {"a": "nan"}),
        ("y | plz=01067, n=4_0, z=0, w=0.5", {"y": None}, {"plz": "01067", "n": "4_0", "z": 0.0, "w": 0.5}),
    ],
)
def test_what_is_understood(text, query, evidence):
    parsed = parse_question(text)
    assert (parsed.query, parsed.given) == (query, evidence)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "asks for nothing"),
        ("| a=1", "asks for nothing"),
        ("a | b", "no value"),
        ("a | b=", "no value after"),
        ("a | b=1 | c=2", "more than one"),
        ("a, a", "twice"),
        ("a | b=1, b=2", "twice"),
        ("a | a=1", "both asked and given"),
        ("a | b>3", "only '=' is understood"),
        ("a | b>=3", "only '='"),
        ("a,, b", "empty place"),
        ("a | b='x", "not closed"),
        ("a | =3", "names no column"),
        ("a | b=nan", "write \\? instead of nan"),
        ("a | b=-NaN", "write \\? instead of -NaN"),
        ("a=nan", "write \\? instead of nan"),
        ("a | b==", "no value after"),
        ("a | b=''", "write b=\\?"),
        ('a | b=""', "no value after"),
        ("a | b=\ud800", "not UTF-8"),
    ],
)
def test_what_is_refused_in_one_sentence(text, message):
    with pytest.raises(QuestionError, match=message):
        parse_question(text)


def test_evidence_alone():
    assert parse_given("a=1, b='x y'") == {"a": 1.0, "b": "x y"}
    assert parse_given("") == {}


@pytest.mark.parametrize(
    "text", ["P(price | rooms=3)", "p( price|rooms=3 )", "price given rooms=3", "P(price given rooms=3)"]
)
def test_questions_as_others_write_them(text):
    parsed = parse_question(text)
    assert (parsed.query, parsed.given) == ({"price": None}, {"rooms": 3.0})


def test_given_inside_quotes_is_a_name():
    assert parse_question("'money given away' | a=1").query == {"money given away": None}


def test_comparisons_get_one_sentence():
    with pytest.raises(QuestionError, match="only '=' is understood"):
        parse_question("rooms>2 | price=3")
