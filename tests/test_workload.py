"""A workload is resolved once and saved with the model: what was trained is known after loading, object or word."""

import numpy as np
import pandas as pd
import pytest
import torch

import anygiven as ag
from anygiven.errors import AnyGivenWarning, QuestionError
from anygiven.estimators.workload import TrainedWorkload, image_workload, table_workload, text_workload
from anygiven.lattice import (
    ARDM,
    BernoulliEvidence,
    Blend,
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
    Support,
    UniformEvidence,
    WholePath,
    mixture,
)
from anygiven.lattice.stored import Forgotten, from_json, laws, to_json
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


def test_supports():
    n = 4
    everything = frozenset(range(n))
    assert Joint().support(n) == Support(everything, False, False)
    assert CardMask().support(n) == Support(everything, False, True)
    assert UniformEvidence().support(n) == Support(everything, True, False)
    assert KnownAsked((0,), (2,)).support(n) == Support(frozenset({2}), True, True)
    assert KnownAsked((0,)).support(n) == Support(frozenset({1, 2, 3}), True, False)
    assert mixture([Joint(), KnownAsked((0,), (2,))]).support(n) == Support(everything, True, True)
    assert ARDM(Joint()).support(n) == Support(everything, True, False)
    with pytest.raises(ValueError, match="not among"):
        KnownAsked((9,)).support(n)


def test_questions_that_no_training_asked():
    nothing = torch.zeros(1, 3, dtype=torch.bool)
    first = torch.tensor([[True, False, False]])
    whole, some, given = Question(~nothing, nothing), Question(first, nothing), Question(~first, first)
    joint = TrainedWorkload("joint", WholePath(Joint()))
    assert joint.untrained(whole, True) == ([], [])
    assert joint.untrained(some, True) == ([], ["something left open"])
    assert joint.untrained(some, False) == ([], [])  # to a model that looks it is not yet revealed
    assert joint.untrained(given, True) == ([], ["something given"])
    assert TrainedWorkload("joint", WholePath(Joint()), has_gaps=True).untrained(some, True) == ([], [])
    assert TrainedWorkload("x", ARDM(KnownAsked((0,), (2,)))).untrained(given, True) == ([1], [])


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
    assert text_workload("any").support(8) == Support(frozenset(range(8)), True, True)
    for resolve in (lambda: table_workload("all", density.schema_, present), lambda: text_workload("gaps"),
                    lambda: image_workload(3, "unet", (4, 4))):  # fmt: skip
        with pytest.raises(QuestionError, match="is not a workload"):
            resolve()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: KnownAsked((9,)), "not among the 3"),
        (lambda: BernoulliEvidence(1), "below 1"),
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
