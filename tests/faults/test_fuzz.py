"""What people type and bring: an answer or one sentence, and never another file than the one asked for."""

import numpy as np
import pytest
from fuzz import answer, files, fill, questions, texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import anygiven as ag
from conftest import mixed_table

FEW = settings(max_examples=300, deadline=None, derandomize=True, database=None,
               suppress_health_check=list(HealthCheck))  # fmt: skip
TABLE = mixed_table()


@pytest.fixture(scope="session")
def text_model():
    book = "the cat sat on the mat and the dog lay by the door " * 4
    return ag.TextDensity(length=8, max_steps=2, width=8, depth=1, verbose=False).fit(book)


@FEW
@given(question=questions(TABLE))
def test_questions(density, question):
    answer(density, question)


@settings(FEW, max_examples=60)
@given(question=texts("the cat sonmdlybr"))
def test_questions_of_texts(text_model, question):
    answer(text_model, question)


@settings(FEW, max_examples=150)
@given(file=files(TABLE))
def test_tables(density, tmp_path_factory, file):
    fill(density, tmp_path_factory.mktemp("fuzz"), *file)


@settings(FEW, max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_most_questions_are_answered_or_refused_as_they_deserve(density, seed):
    """The fuzzer itself: plain questions are answered, so it does not only try what is refused."""
    rng = np.random.default_rng(seed)
    asked, known = rng.choice(["weight", "visits", "spent"], 2, replace=False)
    assert answer(density, f"{asked} | {known}=1") == "answered"
    assert answer(density, f"{asked} | {known}=nan") == "refused"
