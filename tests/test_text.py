"""TextDensity as a user meets it."""

import gzip

import numpy as np
import pytest
import torch
from sklearn.base import clone

import anygiven as ag
from anygiven.errors import AnyGivenError, QuestionError, TextError
from anygiven.estimators.text import Chunks
from anygiven.lattice import ARDM, Canonical, CardMask, Glimpse, Joint, WholePath
from anygiven.networks.neighbours import GRAMS, Neighbours
from anygiven.variables.domains import CategoricalDomain, SharedDomain
from anygiven.variables.text import TEXT8, Alphabet, read_corpus

BOOK = "the cat sat on the mat. a dog sat on a log. the dog ran to the cat. " * 60


@pytest.fixture(scope="module")
def density():
    return ag.TextDensity(
        length=16, max_steps=300, batch_size=32, width=32, depth=2, verbose=False, max_minutes=None
    ).fit(BOOK)


def test_it_learns_the_text(density):
    bits = density.bits_per_character(BOOK[:2000])
    assert bits < 1.2  # the frequencies of the characters alone need more than three
    assert density.score(BOOK[:2000]) == pytest.approx(-bits * np.log(2))


def test_fill_changes_nothing_but_blanks(density):
    text = "the c_t s_t on"
    ways = [None, 1, 2, "auto"]
    for filled in [filled for steps in ways for filled in density.fill(text, n=5, steps=steps)]:
        assert len(filled) == len(text)
        assert all(a in ("_", b) for a, b in zip(text, filled, strict=True))
        assert "_" not in filled
    assert "the cat sat on" in density.fill(text, n=20, temperature=0.5, random_state=0)


def test_refining_makes_filled_texts_likelier(density):
    """Drawn all at once, blanks do not fit each other; refined they do."""
    text = "t__ c__ s__ o__ "
    plain, refined = (
        density.log_prob(density.fill(text, n=60, steps=1, refine=k, random_state=0)).mean() for k in (0, 8)
    )
    assert refined > plain + 1.0
    for filled in density.fill(text, n=3, refine=2):
        assert all(a in ("_", b) for a, b in zip(text, filled, strict=True))
    with pytest.raises(QuestionError, match="refine is -1"):
        density.fill(text, refine=-1)


def test_a_text_longer_than_a_window_is_filled(density):
    text = BOOK[:100].replace("a", "_")
    (filled,) = density.fill(text, temperature=0.3, random_state=0)
    assert len(filled) == 100
    assert "_" not in filled
    assert sum(a == b for a, b in zip(filled, BOOK[:100], strict=True)) > 90


def test_blanks_only_and_no_blanks(density):
    assert len(density.fill("_" * 16)[0]) == 16
    assert density.fill("the cat") == ["the cat"]


def test_conditional_has_the_likeliest_on_top(density):
    character = density.conditional(5, given="the c_t sat")
    (best, p), *_ = character.top(3)
    assert best == "a"
    assert p == max(character.probabilities.values())
    assert sum(character.probabilities.values()) == pytest.approx(1)


def test_log_prob_agrees_with_its_conditionals(density):
    """log p(ab | evidence) = log p(a | evidence) + log p(b | evidence, a), as far as a trained model keeps it."""
    asked = density.log_prob("the cat", given="the __t")[0]
    first = density.conditional(4, given="the __t").log_prob("c")
    then = density.conditional(5, given="the c_t").log_prob("a")
    assert asked == pytest.approx(first + then, abs=0.3)


def test_strings_may_be_short_but_not_long(density):
    short = density.log_prob(["the", "the cat"])
    assert short.shape == (2,)
    assert short[0] > short[1]
    with pytest.raises(QuestionError, match="length is 16"):
        density.log_prob("the cat sat on the mat")


def test_samples_begin_as_told_and_follow_the_seed(density):
    drawn = density.sample(3, given="a dog")
    assert all(text.startswith("a dog") and len(text) == 16 for text in drawn)
    assert density.sample(2, random_state=1) == density.sample(2, random_state=1)


def test_save_and_load_answer_alike(density, tmp_path):
    density.save(tmp_path / "book.model")
    loaded = ag.load(tmp_path / "book.model")
    assert isinstance(loaded, ag.TextDensity)
    np.testing.assert_array_equal(loaded.log_prob(["the cat"]), density.log_prob(["the cat"]))
    assert loaded.fill("the c_t", n=4, random_state=0) == density.fill("the c_t", n=4, random_state=0)


@pytest.fixture(scope="module")
def bytes_density():
    text = "größe und güte. süße äpfel für jörg. " * 60
    return ag.TextDensity(length=24, alphabet="bytes", max_steps=250, batch_size=32, width=32, depth=2, verbose=False,
                          max_minutes=None).fit(text)  # fmt: skip


def test_bytes_are_asked_as_they_were_learnt(bytes_density):
    """With alphabet="bytes" a question is read as UTF-8, as the text was; one blank is one byte."""
    assert bytes_density.log_prob("größe und")[0] > bytes_density.log_prob("grünz und")[0] + 1
    assert bytes_density.bits_per_character("größe und güte. süße äpfel") < 2
    assert "größe und" in bytes_density.fill("gr__ße und", n=9, temperature=0.5, random_state=0)  # ö has two bytes
    assert bytes_density.sample(1, given="süße ä")[0].startswith("süße ä")
    with pytest.raises(QuestionError, match="length is 24"):
        bytes_density.log_prob("ä" * 13)
    assert bytes_density.log_prob("日本").shape == (1,)  # unlikely, and still bytes
    assert all(isinstance(text, str) for text in bytes_density.sample(5, temperature=5.0))  # broken UTF-8 is shown


def test_a_blank_sign_in_the_text_is_scored():
    """Only questions have blanks: an underscore of the text itself is a character like any other."""
    code = "a_b = c_d\n" * 200
    density = ag.TextDensity(length=10, max_steps=60, batch_size=32, width=16, depth=1, verbose=False).fit(code)
    scores = density.score_chunks(code[:100])
    asked = density.log_prob([code[:10]], blank="?")
    assert scores.log_prob[0] == pytest.approx(asked[0], abs=1e-4)
    assert scores.bits_per_character == pytest.approx(density.bits_per_character(code[:100]))
    assert density.fill("a?b", blank="?")[0][2] == "b"


def test_nothing_asked_is_certain(density):
    assert density.log_prob(["", "___"]).tolist() == [0.0, 0.0]


def test_many_short_documents_and_generators():
    documents = ["the cat sat on it. "] * 50 + [BOOK[:200]]
    density = ag.TextDensity(length=64, max_steps=4, width=16, depth=1, verbose=False)
    assert np.isfinite(density.fit(text for text in documents).report_["held_out_bits_per_character"])


def test_a_checkpoint_of_another_length_is_not_resumed(tmp_path):
    for length in (8, 16):
        density = ag.TextDensity(length=length, max_steps=3, width=16, depth=1, verbose=False)
        density.set_params(checkpoint=str(tmp_path / "c")).fit(BOOK)


def test_it_clones():
    assert clone(ag.TextDensity(length=9)).length == 9


@pytest.mark.parametrize("source", ["string", "path", "str path", "gz", "list"])
def test_sources_give_the_same_corpus(source, tmp_path):
    file = tmp_path / "book.txt"
    file.write_text(BOOK, encoding="utf-8")
    with gzip.open(tmp_path / "book.txt.gz", "wt") as zipped:
        zipped.write(BOOK)
    sources = {"string": BOOK, "path": file, "str path": str(file), "gz": tmp_path / "book.txt.gz", "list": [BOOK]}
    corpus = read_corpus(sources[source])
    assert corpus.alphabet.text(corpus.symbols) == BOOK
    assert corpus.ends.tolist() == [len(BOOK)]


def test_blocks_join_without_seams(tmp_path, monkeypatch):
    """A file is read in blocks, and kept on disk when it is long; characters of several bytes survive both."""
    monkeypatch.setattr("anygiven.variables.text.BLOCK", 7)
    monkeypatch.setattr("anygiven.variables.text.MAX_IN_MEMORY", 10)
    text = "das größte Glück über alles — ça va? " * 5
    file = tmp_path / "a.txt"
    file.write_text(text, encoding="utf-8")
    corpus = read_corpus(file)
    assert isinstance(corpus.symbols, np.memmap)
    assert corpus.alphabet.text(corpus.symbols) == text


def test_chunks_stay_inside_documents():
    corpus = read_corpus(["abcdef", "xy", "uvwxyz"])
    chunks = Chunks(corpus, 4)
    assert len(chunks) == 3 + 1 + 3
    data = chunks.rows(torch.arange(len(chunks)))
    texts = [
        corpus.alphabet.text(row[present].numpy()) for row, present in zip(data.x[..., 0], data.is_present, strict=True)
    ]
    assert texts == ["abcd", "bcde", "cdef", "xy", "uvwx", "vwxy", "wxyz"]


def test_alphabets():
    assert read_corpus("cab").alphabet.characters == "abc"
    assert read_corpus("cab", "text8").alphabet.characters == TEXT8
    assert len(read_corpus("größe", "bytes").alphabet.characters) == 256
    for alphabet, text in ((Alphabet.of("xyz"), "zxy"), (read_corpus("ab", "bytes").alphabet, "größe")):
        assert alphabet.text(alphabet.symbols(text)) == text


@pytest.mark.parametrize(
    ("fit", "says"),
    [
        (lambda: ag.TextDensity(length=64).fit("short"), "has 5 characters and length is 64"),
        (lambda: ag.TextDensity().fit(""), "empty"),
        (lambda: ag.TextDensity().fit([]), "empty"),
        (lambda: ag.TextDensity(length=0).fit(BOOK), "at least 1"),
        (lambda: ag.TextDensity(alphabet="text8").fit(BOOK), r"'\.' at place 22"),
        (lambda: ag.TextDensity(workload="gaps").fit(BOOK), "not a workload for text"),
        (lambda: ag.TextDensity(network="mlp").fit(BOOK), "no network 'mlp' for texts"),
        (lambda: ag.TextDensity().fit([3]), "int is not one"),
        (lambda: ag.TextDensity().fit(None), "NoneType is none of them"),
        (lambda: ag.TextDensity().fit("no/such/novels_train.txt"), "There is no file"),
        (lambda: ag.TextDensity(length=64).fit(["short"] * 99), "The longest string has 5"),
        (lambda: ag.TextDensity(length=True).fit(BOOK), "whole number"),
        (lambda: ag.TextDensity(alphabet="").fit(BOOK), "the characters themselves"),
        (lambda: ag.TextDensity(alphabet=3).fit(BOOK), "the characters themselves"),
        (lambda: ag.TextDensity().fit("a\ud800b" * 99), "lone surrogate"),
    ],
)
def test_mistakes_are_one_sentence(fit, says):
    with pytest.raises(AnyGivenError, match=says):
        fit()


def test_wrong_files_and_questions(density, tmp_path):
    (tmp_path / "latin.txt").write_bytes("größe".encode("latin-1") * 99)
    with pytest.raises(TextError, match="not UTF-8"):
        ag.TextDensity().fit(tmp_path / "latin.txt")
    with pytest.raises(TextError, match="There is no file"):
        ag.TextDensity().fit(tmp_path / "none.txt")
    with pytest.raises(TextError, match="not in the model's alphabet"):
        density.log_prob("THE CAT")
    with pytest.raises(QuestionError, match="no place 99"):
        density.conditional(99)
    with pytest.raises(QuestionError, match="is 'h' in what is given"):
        density.conditional(1, given="the")
    with pytest.raises(QuestionError, match="nothing to fill"):
        density.fill("")


def test_odd_questions_get_one_sentence(density):
    wrong = [
        (lambda: density.log_prob("the dog", given="the cat"), "different characters at place 4"),
        (lambda: density.log_prob("the dog", order="backwards"), "is not an order"),
        (lambda: density.log_prob("the dog", order=Canonical((0, 1, 2))), "each of the 16 places"),
        (lambda: density.log_prob(3), "int is not one"),
        (lambda: density.log_prob("the c_T"), "'T' at place 6"),
        (lambda: density.conditional("5"), "no place '5'"),
        (lambda: density.conditional(5.0), "no place 5.0"),
        (lambda: density.conditional(5, ["the"]), "one string"),
        (lambda: density.fill("a_", blank=None), "must be one character"),
        (lambda: density.fill("a_", groups="any"), "groups is 'any'"),
        (lambda: density.sample(given=None), "given is a string"),
    ]
    for ask, says in wrong:
        with pytest.raises(AnyGivenError, match=says):
            ask()


@pytest.mark.parametrize("order", ["left-to-right", "strided", "bit-reversal"])
def test_orders_by_name(density, order):
    assert np.isfinite(density.log_prob(["the cat sat on", "a dog"], order=order)).all()


def test_windows_cover_a_long_text_and_look_ahead(density):
    """Every place is kept from a window that sees a quarter of its length on either side, where there is so much."""
    for n in (1, 16, 17, 20, 33, 100):
        kept, begin = np.full(n, -1), 0
        for window, until in density.variables_.windows(n):
            assert window.stop - window.start <= 16
            kept[begin:until] = window.start
            begin = max(begin, until)
        assert (kept >= 0).all()
        for place, start in enumerate(kept):
            assert start <= place < start + 16
            assert min(start + 16, n) - place >= min(4, n - place)
            assert place - start >= min(4, place)


def test_surest_first_fills_in_so_many_steps(density):
    text = "t__ c_t s__ on "
    for filled in density.fill(text, n=4, steps=3, groups="surest"):
        assert all(a in ("_", b) for a, b in zip(text, filled, strict=True))


def test_a_text_too_short_to_hold_out_says_so():
    density = ag.TextDensity(length=64, max_steps=2, width=16, depth=1, verbose=False).fit(BOOK[:100])
    assert "held_out_bits_per_character" not in density.report_
    assert "Too short" in density.describe()


def test_one_short_document_does_not_spoil_the_plan():
    density = ag.TextDensity(length=16, max_steps=2, width=16, depth=1, verbose=False).fit([BOOK[:64]] * 40 + ["a"])
    sizes, losses = density.report_["losses"]
    assert max(sizes) == 15
    assert len(losses) == len(sizes)


@pytest.mark.parametrize("n_symbols", [27, 62, 94, 126])
def test_hashed_n_grams_tell_all_their_characters_apart(n_symbols):
    """Whatever the size of the alphabet, changing one character of an n-gram moves it to another row."""
    domains = SharedDomain(CategoricalDomain(tuple(map(str, range(n_symbols))), (1,) * n_symbols), (9,))
    torch.manual_seed(0)
    neighbours, generator = Neighbours(domains, 64), torch.Generator().manual_seed(0)
    cells = torch.zeros(200, 9, 4)
    cells[..., 0] = torch.randint(n_symbols, (200, 9), generator=generator).float()
    shown, place = torch.ones(200, 9, dtype=torch.bool), torch.full((200, 1), 4)

    def rows(cells):
        found = []
        handle = neighbours.grams.register_forward_hook(lambda _, given, out: found.append(given[0]))
        neighbours(cells, torch.zeros(200, 9, dtype=torch.int64), shown, place, torch.ones(200, 1, dtype=torch.int64))
        handle.remove()
        return found[0][:, 0]  # (200, grams)

    before = rows(cells)
    for g, gram in enumerate(GRAMS):
        for offset in gram:
            changed = cells.clone()
            changed[:, 4 + offset, 0] = (cells[:, 4 + offset, 0] + 1) % n_symbols
            assert (rows(changed)[:, g] != before[:, g]).float().mean() > 0.98


@pytest.mark.parametrize("network", ["path", "transformer"])
@pytest.mark.parametrize("objective", [WholePath(CardMask()), Glimpse(CardMask()), ARDM(Joint())],
                         ids=lambda o: type(o).__name__)  # fmt: skip
def test_every_objective_trains_every_network(network, objective):
    density = ag.TextDensity(length=8, network=network, workload=objective, max_steps=2, width=16, depth=1,
                             verbose=False)  # fmt: skip
    assert np.isfinite(density.fit(BOOK).bits_per_character(BOOK[:80]))


def test_command_line(density, tmp_path):
    """fit, ask, sample, score, describe; a table's command on a text model is refused in one sentence."""
    import json

    from typer.testing import CliRunner

    from anygiven.cli.main import app

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.stdout

    book, model = tmp_path / "book.txt", tmp_path / "book.model"
    book.write_text(BOOK, encoding="utf-8")
    fitted = json.loads(run("fit", book, "--out", model, "--length", 8, "--minutes", 0.05, "--json"))
    assert fitted["length"] == 8
    density.save(tmp_path / "good.model")
    answer = json.loads(run("ask", tmp_path / "good.model", "the c_t", "--json"))
    assert max(answer["characters"]["5"], key=lambda c: answer["characters"]["5"][c]) == "a"
    assert "[_]" in run("ask", tmp_path / "good.model", "the c_t")
    assert (
        run("sample", tmp_path / "good.model", "--rows", 2, "--given", "the d", "--steps", "auto").count("the d") == 2
    )
    scored = json.loads(run("score", tmp_path / "good.model", book, "--out", tmp_path / "scores.csv", "--json"))
    assert scored["characters"] == len(BOOK)
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == scored["chunks"] + 1
    assert "bits per character" in run("describe", tmp_path / "good.model")
    drawn = json.loads(
        run("sample", tmp_path / "good.model", "--rows", 2, "--given", "the c?t", "--blank", "?", "--json")
    )
    assert [len(text) for text in drawn] == [7, 7]
    run("score", tmp_path / "good.model", book, "--out", tmp_path / "scores.parquet")
    assert len(ag.variables.tables.read_file(tmp_path / "scores.parquet")) == scored["chunks"]
    for words, says in [
        (["fit", book, "--kind", "series", "--out", model], "no kind 'series'; use one of table, text, image"),
        (["fit", book, "--column", "a=count", "--out", model], "--column is for tables"),
        (["fit", book, "--kind", "table", "--length", "8", "--out", model], "--length is for texts"),
        (["sample", tmp_path / "good.model", "--refine", "2", "--given", "the"], "--refine is for blanks"),
        (["sample", tmp_path / "good.model", "--steps", "²"], "not a whole number"),
        (["score", tmp_path / "good.model", book, "--query", "a"], "--query is for tables and images"),
        (["ask", tmp_path / "good.model", "the c_t", "--plot", "x.png"], "--plot is for tables"),
        (["ask", tmp_path / "good.model", "the c_t sat on the mat"], "anygiven sample"),
    ]:
        refused = CliRunner().invoke(app, [str(word) for word in words])
        assert says in str(refused.exception)
    refused = CliRunner().invoke(app, ["impute", str(model), str(book), "--out", str(tmp_path / "x.csv")])
    assert "is a model of texts" in str(refused.exception)
