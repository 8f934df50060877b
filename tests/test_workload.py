"""A workload is resolved once and saved with the model: what was trained is known after loading, object or word."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch

import anygiven as ag
from anygiven.errors import AnyGivenWarning, ModelFolderError, QuestionError
from anygiven.estimators.workload import TrainedWorkload, image_workload, table_workload, text_objective
from anygiven.lattice import (
    ARDM,
    BernoulliEvidence,
    Blend,
    Canonical,
    CardMask,
    GapPatterns,
    Glimpse,
    Joint,
    KnownAsked,
    LeftToRight,
    ModeMixture,
    Question,
    RegionMode,
    RightToLeft,
    Slanted,
    Support,
    UniformEvidence,
    WholePath,
    mixture,
)
from anygiven.lattice.question import NEVER, Path
from anygiven.lattice.stored import Forgotten, from_json, laws, to_json
from anygiven.lattice.support import Strange
from anygiven.lattice.workloads import Workload

FRAME = pd.DataFrame({"a": np.arange(60.0) % 7, "b": np.arange(60.0) ** 0.5, "c": ["x", "y", "z"] * 20})
QUICK = {"max_steps": 3, "max_minutes": None, "verbose": False, "width": 8, "depth": 1}
IMAGES = np.random.default_rng(0).integers(0, 2, (40, 4, 4)).astype(np.uint8)


def upper_half(n, shape, generator):
    region = torch.zeros(n, *shape, dtype=torch.bool)
    region[:, : shape[0] // 2] = True
    return region


def reloaded(density, tmp_path):
    density.save(tmp_path / "m")
    return ag.load(tmp_path / "m")


OBJECTS = {
    "uniform evidence": UniformEvidence(), "a coin": BernoulliEvidence(0.3), "known and asked": KnownAsked((0,), (2,)),
    "gaps": GapPatterns.of(torch.tensor([[True, False, True], [True, True, True], [True, False, True]])),
    "a mixture": mixture([Joint(), KnownAsked((1,))], [3, 1]), "glimpses": Glimpse(CardMask(), edges=True),
    "a blend": Blend((ARDM(), WholePath(CardMask())), (0.5, 0.5)), "a word": "marginals", "names": {"known": ["a"]},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::anygiven.errors.AnyGivenWarning")
@pytest.mark.parametrize("name", OBJECTS)
def test_every_workload_of_a_table_is_known_after_loading(name, tmp_path):
    density = ag.TabularDensity(workload=OBJECTS[name], **QUICK).fit(FRAME)
    again = reloaded(density, tmp_path)
    assert again.workload_ == density.workload_
    assert again.workload == density.workload
    np.testing.assert_array_equal(again.log_prob(FRAME), density.log_prob(FRAME))


def test_a_network_that_is_told_its_masking_mode_is_told_it_after_loading(tmp_path):
    """A U-Net of two modes scored −10.24 nats before saving and −11.00 after."""
    modes = ModeMixture((LeftToRight((4, 4)), RightToLeft((4, 4))))
    density = ag.ImageDensity(workload=modes, network="unet", **{**QUICK, "max_steps": 12}).fit(IMAGES)
    again, order = reloaded(density, tmp_path), RightToLeft((4, 4))
    assert density.workload_.told(order).number == 2
    np.testing.assert_array_equal(again.log_prob(IMAGES[:5], order=order), density.log_prob(IMAGES[:5], order=order))
    np.testing.assert_array_equal(again.log_prob(IMAGES[:5]), density.log_prob(IMAGES[:5]))


def test_what_was_never_asked_is_still_said_after_loading(tmp_path):
    density = ag.TabularDensity(workload=KnownAsked((0,), (2,)), **QUICK).fit(FRAME)
    for one in (density, reloaded(density, tmp_path)):
        with pytest.warns(AnyGivenWarning, match="b was never asked"):
            one.conditional("b", {"a": 1.0})
        one.conditional("c", {"a": 1.0})


def test_a_function_of_the_users_is_known_again_by_its_code(tmp_path):
    mode = RegionMode((4, 4), upper_half)
    density = ag.ImageDensity(workload=ModeMixture((LeftToRight((4, 4)), mode)), network="unet", **QUICK).fit(IMAGES)
    again = reloaded(density, tmp_path)
    assert again.workload_.told(mode).number == 2
    np.testing.assert_array_equal(again.log_prob(IMAGES[:3], order=mode), density.log_prob(IMAGES[:3], order=mode))
    forgotten = again.workload_.objective.masking_modes[1]
    with pytest.raises(QuestionError, match="not saved with a model"):
        forgotten.region(1, torch.Generator())
    assert mode != RegionMode((4, 4), lambda n, shape, generator: ~upper_half(n, shape, generator))


class Mine(Workload):
    def draw(self, is_present, generator):
        return Question(is_present, torch.zeros_like(is_present))


def test_a_class_of_the_users_is_remembered_by_its_name(tmp_path):
    density = ag.TabularDensity(workload=Mine(), **QUICK).fit(FRAME)
    again = reloaded(density, tmp_path)
    assert again.workload == Forgotten("Mine")
    np.testing.assert_array_equal(again.log_prob(FRAME), density.log_prob(FRAME))
    with pytest.raises(QuestionError, match="Mine is a class of your own"):
        again.workload.draw(torch.ones(1, 3, dtype=torch.bool), torch.Generator())


def test_laws_that_are_none_are_refused():
    assert {"Canonical", "ARDM", "GapPatterns", "Slanted", "Activations"} <= set(laws())
    for wrong in ({"law": "Evil"}, {"law": "ARDM", "workload": [0]}, {"law": "Budget", "protocol": 1, "steps": 2},
                  {"law": "BernoulliEvidence", "p": True}, {"law": "CardMask", "p": 1}):  # fmt: skip
        with pytest.raises(ValueError, match="law"):
            from_json(wrong)
    with pytest.raises(TypeError):
        to_json({"a": np.zeros(2)})


def pairs(support):
    """Who was known, and who unknown, where each was asked."""
    rows = zip(support.is_known.tolist(), support.is_unknown.tolist(), strict=True)
    return [tuple({j for j, seen in enumerate(row) if seen} for row in both) for both in rows]


def test_supports_are_those_of_the_laws():
    """Drawn, and by hand: (known, unknown) of each variable where it was asked; a variable is unknown to itself."""
    assert pairs(Support.of(WholePath(Joint()), 3)) == [(set(), {0, 1, 2}), ({0}, {1, 2}), ({0, 1}, {2})]
    marginals = pairs(Support.of(WholePath(CardMask()), 3))
    assert marginals == [(set(), {0, 1, 2}), ({0}, {0, 1, 2}), ({0, 1}, {0, 1, 2})]
    anything = Support.of(ARDM(Joint()), 3)
    assert pairs(anything) == [({0, 1, 2} - {i}, {0, 1, 2}) for i in range(3)]
    some = Support.of(ARDM(KnownAsked((0,), (2,))), 4)
    assert pairs(some) == [(set(), set()), (set(), set()), ({0}, {1, 2, 3}), (set(), set())]
    assert some.is_asked.tolist() == [False, False, True, False]
    assert some.is_given.tolist() == [True, False, False, False]
    with_gaps = Support.of(ARDM(KnownAsked((0,), (2,))), 4, [0])
    assert pairs(with_gaps)[2] == ({0}, {0, 1, 2, 3})
    assert Support.of(WholePath(CardMask()), 3).leaves_open
    assert not Support.of(WholePath(Joint()), 3).leaves_open
    assert Support.of(WholePath(Joint()), 3, [1]).leaves_open
    both = Support.of(WholePath(mixture([Joint(), KnownAsked((2,), (0,))])), 3)
    assert pairs(both)[0] == ({2}, {0, 1, 2})


@pytest.mark.parametrize("n", [1, 2, 40, 400])
def test_what_trains_everything_has_no_strange_edges(n):
    parts = torch.from_numpy(np.random.default_rng(0).integers(0, 3, (30, n)))
    question = Question(parts == 0, parts == 1)
    for objective in (ARDM(Joint()), text_objective("any")):
        support = Support.of(objective, n)
        assert support.is_asked.all()
        assert support.strange(Path.look(question.is_evidence, question.is_query)) is None
        assert support.strange(Canonical().path(question)) is None
    rows = torch.ones(1, n, dtype=torch.bool)
    assert Support.of(WholePath(Joint()), n).strange(Canonical().path(Question(rows, ~rows))) is None


def test_questions_that_no_training_asked():
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    first = torch.tensor([[True, False, False]])
    whole, some, given = Question(~nothing, nothing), Question(first, nothing), Question(~first, first)
    last = Question(first.flip(1), nothing)
    joint = TrainedWorkload("joint", WholePath(Joint()), 3)
    assert joint.never_asked(whole) == []
    assert joint.has_strange_shape(whole) == []
    assert joint.has_strange_shape(some) == ["nothing was ever left open"]
    assert joint.has_strange_shape(given) == ["nothing was ever given"]
    strange = joint.support.strange
    assert strange(Canonical().path(some)) is None  # to a model that looks it is not yet revealed
    assert strange(Canonical().path(last)) == Strange(2, None, 0)
    assert strange(Canonical().path(whole)) is None
    assert strange(Path.look(nothing, ~nothing)) == Strange(1, None, 0)
    assert strange(Canonical((1, 0, 2)).path(whole)) == Strange(0, 1, None)
    # Eq. 7 asks all that is not in the prefix: each pair was seen, and yet never 1 known while 0 was not
    glimpse = Support.of(Glimpse(Joint(), edges=True, cardinality=False), 3)
    found = glimpse.strange(Path(torch.tensor([[NEVER, -1, 0]])))
    assert found == Strange(2, 1, 0)
    assert found.said("abc".__getitem__) == "b was never given with a left open where c was asked"
    assert glimpse.strange(Path(torch.tensor([[-1, NEVER, 0]]))) is None
    assert TrainedWorkload("joint", WholePath(Joint()), 3, (1, 2)).has_strange_shape(some) == []
    assert TrainedWorkload("x", ARDM(KnownAsked((0,), (2,))), 3).never_asked(given) == [1]


CHAIN = np.random.default_rng(0).normal(size=(120, 1)) + 0.1 * np.random.default_rng(1).normal(size=(120, 3))
CHAINED = pd.DataFrame(CHAIN, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("workload", "query", "given", "says"),
    [
        ({"known": ["b"], "asked": ["a"]}, "a", {"c": 2.0}, "c was never given where a was asked"),
        ({"known": ["b"], "asked": ["a"]}, "a", {}, "b was never left open where a was asked"),
        ({"known": ["b"], "asked": ["a"]}, "a", {"b": 1.0}, None),
        ({"known": ["b"], "asked": ["a"]}, "c", {"b": 1.0}, "c was never asked"),
        ("gaps", "a", {}, "c was never left open where a was asked"),
        ("gaps", "b", {"a": 1.0, "c": 1.0}, None),
        (WholePath(Joint(), Canonical()), "c", {}, "a was never left open where c was asked"),
        ("joint", "a", {"b": 1.0}, "b was never given where a was asked"),
        ("joint", "c", {"b": 1.0}, "b was never given with a left open where c was asked"),
        ("joint", "c", {"a": 1.0}, None),
        ("marginals", "c", {"a": 1.0}, None),
        ("marginals", "a", {"c": 1.0}, "c was never given where a was asked"),
        ("any", "a", {"c": 1.0}, None),
    ],
)
def test_a_conditional_that_was_never_trained_says_so(workload, query, given, says, tmp_path):
    """Before saving and after loading; the same for a table that is filled."""
    frame = CHAINED.assign(b=CHAINED.b.mask(CHAINED.b > 1)) if workload == "gaps" else CHAINED
    density = ag.TabularDensity(workload=workload, **QUICK).fit(frame)
    density.save(tmp_path / "m")
    for one in (density, ag.load(tmp_path / "m")):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", AnyGivenWarning)
            one.conditional(query, given)
        assert [says in str(one.message) for one in said] == ([True] if says else [])


def test_drawing_and_scoring_go_along_what_was_trained_or_say_so():
    with_gaps = CHAINED.assign(b=CHAINED.b.mask(CHAINED.b > 1))
    gaps = ag.TabularDensity(workload="gaps", **QUICK).fit(with_gaps)
    for ask in (lambda: gaps.sample(5), lambda: gaps.log_prob(CHAINED), lambda: gaps.sample(300, given={"b": 1.0})):
        with pytest.warns(AnyGivenWarning, match="was never left open where"):
            ask()
    joint = ag.TabularDensity(workload="joint", **QUICK).fit(CHAINED)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AnyGivenWarning)
        joint.sample(300, random_state=0)  # along the one order that was trained
        joint.log_prob(CHAINED)
        gaps.log_prob(query=CHAINED[["b"]], given=CHAINED[["a", "c"]])


def test_filling_and_texts_and_expected_pixels_say_so_too():
    density = ag.TabularDensity(workload="joint", **QUICK).fit(CHAINED)
    with pytest.warns(AnyGivenWarning, match="b was never given where a was asked"):
        density.impute(CHAINED.head(3).assign(a=np.nan))
    text = ag.TextDensity(length=6, workload="joint", **QUICK).fit("abcabd" * 60)
    for ask in (lambda: text.conditional(query=1, given="a__b"), lambda: text.fill("ab__ab"),
                lambda: text.sample(given="ab"), lambda: text.bits_per_character("abca")):  # fmt: skip
        with pytest.warns(AnyGivenWarning, match="nothing was ever"):
            ask()
    pictures = np.random.default_rng(0).integers(0, 2, (60, 3, 3)).astype(np.uint8)
    images = ag.ImageDensity(workload="joint", **QUICK).fit(pictures)
    with pytest.warns(AnyGivenWarning, match="nothing was ever given"):
        images.expected(pictures[0], np.eye(3, dtype=bool))


def test_a_model_says_what_it_was_fitted_for():
    assert (
        "workload={'known': ['b'], 'asked': ['a']}"
        in ag.TabularDensity(workload={"known": ["b"], "asked": ["a"]}, **QUICK).fit(CHAINED).describe()
    )


def test_a_model_of_another_kind_is_not_called_damaged(tmp_path):
    ag.TabularDensity(**QUICK).fit(CHAINED).save(tmp_path / "m")
    for other in (ag.ImageDensity, ag.TextDensity):
        with pytest.raises(ModelFolderError, match=r"another kind of data \(table\); use anygiven.load"):
            other.load(tmp_path / "m")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"workload": {"known": ["a", "b", "c"]}}, "asks nothing"),
        ({"workload": {"known": None, "asked": ["c"]}}, "is not a workload"),
        ({"workload": {"known": "ab"}}, "is not a workload"),
        ({"workload": WholePath(Joint(), Canonical((0, 1)))}, "each of the 3 variables once"),
        ({"workload": WholePath(Joint(), Slanted((3, 3), 2))}, "are not 3 variables"),
        ({"n_components": 0}, "at least 1"),
        ({"device": "meta"}, "There is no device"),
        ({"schema": "x"}, "must be a dict"),
        ({"checkpoint": 3}, "path of a folder"),
        ({"batch_size": 10**6}, "batch_size"),
        ({"members": 1000}, "members"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(options, says):
    with pytest.raises(QuestionError, match=says):
        ag.TabularDensity(**{**QUICK, **options}).fit(CHAINED)


def test_variables_are_not_both_known_and_asked():
    with pytest.raises(QuestionError, match="both known and asked"):
        KnownAsked((0,), (0,))


def test_words_are_resolved_to_the_papers_laws():
    density = ag.TabularDensity(**QUICK).fit(FRAME)
    present = torch.ones(4, 3, dtype=torch.bool)
    assert table_workload("any", density.schema_, present).objective == ARDM(Joint())
    assert table_workload("marginals", density.schema_, present).objective == Glimpse(CardMask())
    assert table_workload("joint", density.schema_, present).trains_canonical_order_alone
    assert table_workload("bernoulli", density.schema_, present, "path").objective.workload == BernoulliEvidence()
    assert image_workload("any", "convolutions", (4, 4)).trains_slanted_lines
    assert not image_workload("any", "unet", (4, 4)).trains_canonical_order
    assert image_workload("joint", "unet", (4, 4)).trains_canonical_order
    assert len(image_workload("modes", "unet", (4, 4)).objective.masking_modes) == 7
    for resolve in (lambda: table_workload("all", density.schema_, present), lambda: text_objective("gaps"),
                    lambda: image_workload(3, "unet", (4, 4))):  # fmt: skip
        with pytest.raises(QuestionError, match="is not a workload"):
            resolve()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KnownAsked((9,)), "not among the 3"),
        (lambda: BernoulliEvidence(1), "below 1"),
        (lambda: BernoulliEvidence("x"), "below 1"),  # type: ignore[arg-type]
        (lambda: BernoulliEvidence(float("nan")), "below 1"),
        (lambda: mixture([]), "at least one workload"),
        (lambda: mixture([Joint(), CardMask()], [-1, 2]), "at least 0"),
        (lambda: mixture([Joint(), CardMask()], [0, 0]), "not all 0"),
        (lambda: mixture([Joint()], [1, 2]), "one weight for each"),
    ],
)
def test_workloads_that_cannot_be_are_one_sentence(make, says):
    with pytest.raises(QuestionError, match=says):
        ag.TabularDensity(workload=make(), **QUICK).fit(FRAME)


def test_fit_leaves_the_callers_random_state_and_threads(tmp_path):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), torch.get_num_threads()  # noqa: NPY002
    ag.TabularDensity(dropout=0.5, random_state=3, **QUICK).fit(FRAME).sample(5)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert torch.get_num_threads() == before[2]


def test_a_device_that_is_not_there_is_one_sentence():
    with pytest.raises(QuestionError, match="no device 'cuda:77' here"):
        ag.TabularDensity(device="cuda:77", **QUICK).fit(FRAME)
    assert ag.TabularDensity(device="cpu", **QUICK).fit(FRAME).model_.device == torch.device("cpu")
