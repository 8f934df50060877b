"""ImageDensity as a user meets it."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import anygiven as ag
from anygiven.errors import AnyGivenError, AnyGivenWarning, ImageError, QuestionError
from anygiven.estimators.drawing import few_groups
from anygiven.heads.levels import LevelMixture, PixelMixture
from anygiven.inference import raster_order
from anygiven.lattice import Canonical, LeftToRight, ModeMixture, Question, RandomOrder, RandomScan, RegionMode, Slanted
from anygiven.variables.images import MASKS, draw_mask, image_domains, read_images


def bars(n: int, seed: int = 0) -> np.ndarray:
    """(n, 6, 6) two-valued: one row and one column are white."""
    rng = np.random.default_rng(seed)
    images = np.zeros((n, 6, 6), dtype=np.uint8)
    images[np.arange(n), rng.integers(6, size=n)] = 1
    images[np.arange(n), :, rng.integers(6, size=n)] = 1
    return images


def colours(n: int) -> np.ndarray:
    """(n, 4, 4, 3): one colour each, with a little noise; green follows red."""
    rng = np.random.default_rng(1)
    base = rng.integers(40, 200, size=(n, 1, 1, 1)) + np.array([0, 20, -30])
    return np.clip(base + rng.integers(-4, 5, size=(n, 4, 4, 3)), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def density():
    options = {"width": 32, "depth": 4, "dropout": 0.0, "max_steps": 250, "batch_size": 32, "max_minutes": None}
    return ag.ImageDensity(verbose=False, **options).fit(bars(1000))


def test_it_learns_the_images(density):
    nats = -density.log_prob(bars(100, seed=5)).mean()
    assert nats < 6.0  # 36 images are 3.58 nats; pixels on their own would cost 22
    assert density.bits_per_dim(bars(100, seed=5)) == pytest.approx(nats / np.log(2) / 36)
    assert density.score(bars(100, seed=5)) == pytest.approx(-nats)


def test_parts_of_an_image_add_up(density):
    """log p(left) + log p(right | left) = log p(all) along one path that reveals the left first, nearly."""
    images, left = bars(50, seed=6), draw_mask("left", (6, 6))
    first = density.log_prob(images, query=left)
    then = density.log_prob(images, query=~left, given=left)
    assert (first + then).mean() == pytest.approx(density.log_prob(images).mean(), abs=1.0)


def test_inpainting_keeps_what_is_known(density):
    image, known = bars(1, seed=7)[0], draw_mask("top", (6, 6))
    for steps in (None, 3, "auto"):
        drawn = density.inpaint(image, known, n=5, steps=steps)
        assert drawn.shape == (5, 6, 6)
        assert (drawn[:, known] == image[known]).all()
        assert set(np.unique(drawn)) <= {0, 1}


def test_all_known_and_none_known(density):
    image = bars(1, seed=8)[0]
    everything, nothing = np.ones((6, 6), dtype=bool), np.zeros((6, 6), dtype=bool)
    assert (density.inpaint(image, everything, n=2) == image).all()
    assert density.inpaint(image, nothing).shape == (1, 6, 6)
    assert density.log_prob(image[None], given=everything)[0] == 0


def test_samples_follow_the_seed(density):
    assert density.sample(3).shape == (3, 6, 6)
    assert (density.sample(2, random_state=1) == density.sample(2, random_state=1)).all()
    assert (density.sample(2, steps=4, random_state=1) == density.sample(2, steps=4, random_state=1)).all()


def test_expected_pixels_are_between_black_and_white(density):
    image, known = bars(1, seed=9)[0], draw_mask("left", (6, 6))
    means = density.expected(image, known)
    assert (means[known] == image[known]).all()
    assert ((means >= 0) & (means <= 1)).all()


def test_several_orders_and_the_bound(density):
    """The log of the mean of p over orders is never below the mean of log p over the same."""
    images = bars(20, seed=10)
    assert density.log_prob(images, orders=4).shape == (20,)
    assert density.elbo(images, n=3, random_state=0).mean() < density.log_prob(images, orders=12).mean()


def test_save_and_load_answer_alike(density, tmp_path):
    density.save(tmp_path / "bars.model")
    loaded = ag.load(tmp_path / "bars.model")
    assert isinstance(loaded, ag.ImageDensity)
    np.testing.assert_array_equal(loaded.log_prob(bars(5)), density.log_prob(bars(5)))
    assert (loaded.sample(2, random_state=0) == density.sample(2, random_state=0)).all()


def test_it_clones():
    assert clone(ag.ImageDensity(width=9)).width == 9


@pytest.mark.parametrize("network", ["convolutions", "unet", "path", "transformer"])
@pytest.mark.parametrize("element", ["pixel", "channel"])
def test_every_network_takes_colours(network, element):
    density = ag.ImageDensity(element=element, network=network, width=16, depth=1, max_steps=2, batch_size=4,
                              n_components=2, verbose=False)  # fmt: skip
    density.fit(colours(40))
    assert np.isfinite(density.bits_per_dim(colours(2)))
    drawn = density.inpaint(colours(1)[0], draw_mask("top", (4, 4)), n=2, steps=2, temperature=0.8)
    assert drawn.shape == (2, 4, 4, 3)
    assert drawn.dtype == np.uint8


@pytest.mark.parametrize("workload", ["any", "joint", "marginals", "conditionals", "modes", "random"])
@pytest.mark.parametrize("network", ["convolutions", "unet"])
def test_every_workload_trains(workload, network):
    density = ag.ImageDensity(workload=workload, network=network, width=16, depth=1, max_steps=2, verbose=False)
    density.fit(bars(40))
    assert np.isfinite(density.elbo(bars(3), n=2)).all()


def test_tied_channels_learn_that_green_follows_red():
    """Given red, green costs less than on its own."""
    density = ag.ImageDensity(width=32, depth=2, max_steps=300, batch_size=32, max_minutes=None, dropout=0.0,
                              verbose=False).fit(colours(800))  # fmt: skip
    assert density.bits_per_dim(colours(50)) < 5.0  # eight bits without a model, 3.2 is the noise alone


# ------------------------------------------------------------------ reading


def test_sources_give_the_same_images(tmp_path):
    from PIL import Image

    grey = np.random.default_rng(0).integers(0, 256, size=(3, 5, 4)).astype(np.uint8)
    np.savez(tmp_path / "a.npz", images=grey)
    (tmp_path / "folder").mkdir()
    for k, image in enumerate(grey):
        Image.fromarray(image).save(tmp_path / "folder" / f"{k}.png")
    for source in (grey, grey[..., None], torch.from_numpy(grey), tmp_path / "a.npz", str(tmp_path / "folder"),
                   grey.astype(float)):  # fmt: skip
        images = read_images(source)
        assert (images.levels[..., 0] == grey).all()
        assert images.n_levels == 256


def test_pictures_of_sixteen_bits_keep_their_upper_eight(tmp_path):
    from PIL import Image

    Image.fromarray(np.array([[300, 30000], [65535, 0]], dtype=np.uint16)).save(tmp_path / "deep.png")
    assert read_images(tmp_path / "deep.png").levels[0, ..., 0].tolist() == [[1, 117], [255, 0]]


def test_hidden_pixels_may_hold_anything(density):
    image, known = bars(1, seed=7)[0].astype(float), draw_mask("top", (6, 6))
    image[~known] = np.nan
    assert (density.inpaint(image, known)[0][known] == image[known]).all()


def test_black_and_white_comes_back_as_it_was_given(tmp_path):
    density = ag.ImageDensity(max_steps=1, width=16, depth=1, verbose=False).fit(255 * bars(30))
    density.save(tmp_path / "m")
    assert set(np.unique(ag.load(tmp_path / "m").sample(2))) <= {0, 255}


def test_a_checkpoint_of_another_element_is_not_resumed(tmp_path):
    options = {"max_steps": 2, "width": 16, "depth": 1, "verbose": False, "n_components": 2}
    for element in ("pixel", "channel"):
        kept = ag.ImageDensity(element=element, checkpoint=str(tmp_path / "c"), **options)
        kept.fit(np.asfortranarray(colours(30)))  # any layout in memory


def test_black_and_white_is_found():
    assert read_images(bars(3)).n_levels == 2
    assert read_images(bars(3) * 255).n_levels == 2
    assert read_images(bars(3).astype(bool)).levels.max() == 1


def test_elements():
    images = read_images(colours(2))
    assert len(image_domains(images, "pixel")) == 16
    assert image_domains(images, "channel").shape == (4, 4, 3)


@pytest.mark.parametrize("kind", MASKS)
def test_masks_hide_something_and_know_something(kind):
    mask = draw_mask(kind, (28, 28), random_state=3)
    assert mask.shape == (28, 28)
    assert mask.any()
    assert not mask.all()
    assert (mask == draw_mask(kind, (28, 28), random_state=3)).all()


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (np.full((3, 4, 4), 0.3), "multiply by 255"),
        (np.full((3, 4, 4), 300), "between 0 and 255"),
        (np.full((3, 4, 4), -1), "between 0 and"),
        (np.full((3, 4, 4), np.nan), "not numbers"),
        (np.zeros((3, 4)), "shape"),
        (np.zeros((3, 4, 4, 7), dtype=np.uint8), "1 to 4 channels"),
        (np.zeros((0, 4, 4), dtype=np.uint8), "no image"),
        ([np.zeros((4, 4)), np.zeros((5, 4))], "different sizes"),
        (np.array([[["a"]]]), "whole numbers"),
        ("nowhere", "There is no file"),
    ],
)
def test_wrong_images_get_one_sentence(source, says):
    with pytest.raises(ImageError, match=says):
        read_images(source)


def test_wrong_folders(tmp_path):
    from PIL import Image

    with pytest.raises(ImageError, match="no picture"):
        read_images(tmp_path)
    Image.fromarray(np.zeros((4, 4), dtype=np.uint8)).save(tmp_path / "a.png")
    Image.fromarray(np.zeros((4, 5), dtype=np.uint8)).save(tmp_path / "b.png")
    with pytest.raises(ImageError, match=r"b\.png is 5 by 4 in grey and a\.png is 4 by 4"):
        read_images(tmp_path)
    np.savez(tmp_path / "two.npz", a=bars(2), b=bars(2))
    with pytest.raises(ImageError, match=r"^[^.]*two\.npz has the arrays a, b; name one: "):
        read_images(tmp_path / "two.npz")
    whole = (tmp_path / "two.npz").read_bytes()
    for broken in (b"nothing", whole[:-30], whole[:50]):
        (tmp_path / "broken.npz").write_bytes(broken)
        with pytest.raises(ImageError, match="could not be read"):
            read_images(tmp_path / "broken.npz")


def test_one_image_is_as_good_as_a_batch_of_one(density):
    image = bars(3)[2]
    assert np.allclose(density.log_prob(image), density.log_prob(image[None]))
    assert density.sample(1, steps=np.int64(3)).shape == (1, 6, 6)
    twice = [density.sample(2, random_state=np.random.default_rng(1)) for _ in range(2)]
    assert (twice[0] == twice[1]).all()


def test_what_is_neither_asked_nor_given_need_not_be_a_number(density):
    images = bars(2).astype(float)
    where, given = np.zeros((6, 6), dtype=bool), np.zeros((6, 6), dtype=bool)
    where[:2], given[4:] = True, True
    whole = density.log_prob(images, query=where, given=given)
    images[:, 3] = np.nan
    assert np.array_equal(density.log_prob(images, query=where, given=given), whole)
    with pytest.raises(ImageError, match="not numbers"):
        density.log_prob(images)


def test_one_channel_given_the_others():
    images = colours(24)
    model = ag.ImageDensity(element="channel", max_steps=2, n_components=2, width=16, depth=1, verbose=False).fit(
        images
    )
    given = np.zeros(images.shape[1:], dtype=bool)
    given[..., :2] = True
    log_p = model.log_prob(images[:3], given=given)
    assert (log_p > model.log_prob(images[:3])).all()  # a third of the dimensions
    filled = model.inpaint(images[0], given, n=2)
    assert (filled[..., :2] == images[0][..., :2]).all()


def test_a_handful_of_images_has_no_held_out_figure():
    few = ag.ImageDensity(max_steps=2, width=16, depth=1, verbose=False).fit(bars(15))
    assert "held_out_bits_per_dim" not in few.report_
    assert "Held-out" not in few.describe()


def test_a_mode_of_your_own_is_a_workload():
    diagonal = RegionMode((6, 6), lambda n, size, generator: np.tri(*size, dtype=bool)[None].repeat(n, 0))
    for network in ("convolutions", "unet"):
        model = ag.ImageDensity(workload=diagonal, network=network, max_steps=2, width=16, depth=1, verbose=False)
        assert np.isfinite(model.fit(bars(24)).log_prob(bars(2), given=np.tri(6, 6, dtype=bool))).all()
    generator = torch.Generator().manual_seed(0)
    with pytest.raises(QuestionError, match="for their grid"):
        diagonal.stages(torch.Size((2, 35)), generator)
    wrong = RegionMode((6, 6), lambda n, size, generator: np.zeros((n, 5, 6), dtype=bool))
    with pytest.raises(QuestionError, match="must be bool of shape"):
        wrong.stages(torch.Size((2, 36)), generator)
    with pytest.raises(QuestionError, match="2 modes and 1 weights"):
        ModeMixture((diagonal, wrong), (1.0,))


def test_sixteen_bits_are_read_alike_in_all_pictures(tmp_path):
    from PIL import Image

    for name, value in (("a", 200), ("b", 300), ("c", 60000)):
        Image.fromarray(np.full((4, 4), value, dtype=np.uint16)).save(tmp_path / f"{name}.png")
    assert read_images(tmp_path, 256).levels[:, 0, 0, 0].tolist() == [0, 1, 60000 >> 8]


def test_expected_levels_are_the_means_of_the_masses():
    """Also where there are few levels, so that most of the mass lies beyond the borders."""
    torch.manual_seed(0)

    def mixture(n_levels: int, n_channels: int) -> PixelMixture:
        shape = (7, 3, n_channels)
        return PixelMixture(torch.randn(7, 3), torch.randn(shape), torch.rand(shape) / 5,
                            torch.zeros(7, 3, n_channels - 1), n_levels)  # fmt: skip

    for n_levels in (2, 5, 256):
        one = mixture(n_levels, 1)
        assert torch.allclose(one.mean.squeeze(-1), LevelMixture(one).table.mean, rtol=1e-4, atol=1e-3)
    two, levels = mixture(2, 2), torch.cartesian_prod(torch.arange(2.0), torch.arange(2.0))
    found = sum(two.log_prob(level.expand(7, 2)).exp()[:, None] * level for level in levels)
    assert torch.allclose(two.mean, found, atol=1e-4)


def test_planned_groups_lose_little():
    falling = [4.0 / (1 + t) + 1.0 for t in range(100)]
    sizes = few_groups(falling)
    assert sum(sizes) == 100
    assert 1 < len(sizes) < 100
    starts = np.cumsum([0, *sizes[:-1]])
    assert sum(size * falling[start] for size, start in zip(sizes, starts, strict=True)) <= 1.02 * sum(falling)
    assert few_groups([1.0] * 10) == (10,)  # independent: all at once


def test_wrong_questions_get_one_sentence(density):
    image, known = bars(1)[0], draw_mask("top", (6, 6))
    wrong = [
        (lambda: density.inpaint(image, known[:5]), "mask has shape"),
        (lambda: density.inpaint(image, known * 3), "True and False"),
        (lambda: density.inpaint(image[:5], known), "cut or scale"),
        (lambda: density.inpaint(image * 7, known), "between 0 and 1"),
        (lambda: density.log_prob(bars(3), given=np.ones((2, 6, 6), dtype=bool)), "3 images and 2 masks"),
        (lambda: density.log_prob(bars(1), query=known, given=known), "both asked and given"),
        (lambda: density.sample(0), "n is 0; it must be a whole number of at least 1"),
        (lambda: density.log_prob(bars(1), orders=-1), "orders is -1"),
        (lambda: density.elbo(bars(1), n=0), "n is 0"),
        (lambda: density.inpaint(image, np.stack([known, known])), "one image has one mask"),
        (lambda: ag.ImageDensity(kernel=4).fit(bars(30)), "must be odd"),
        (lambda: ag.ImageDensity(network="unet", width=20).fit(bars(30)), "multiple of 8"),
        (lambda: ag.ImageDensity(network="path", width=10).fit(bars(30)), "multiple of 8"),
        (lambda: ag.ImageDensity(batch_size=0).fit(bars(30)), "batch_size is 0; it must be a whole number of at least"),
        (lambda: ag.ImageDensity(max_steps=0).fit(bars(30)), "max_steps is 0"),
        (lambda: ag.ImageDensity(depth=0).fit(bars(30)), "depth is 0"),
        (lambda: ag.ImageDensity(kernel=2.5).fit(bars(30)), "kernel is 2.5"),
        (lambda: ag.ImageDensity(n_strides=9).fit(bars(30)), "n_strides is 9"),
        (lambda: ag.ImageDensity(dropout=2).fit(bars(30)), "at least 0 and below 1"),
        (lambda: ag.ImageDensity(n_components="a").fit(bars(30)), "n_components is 'a'"),
        (lambda: ag.ImageDensity(random_state="a").fit(bars(30)), "random_state is 'a'"),
        (lambda: ag.ImageDensity(workload=["modes"]).fit(bars(30)), "not a workload for images"),
        (lambda: density.sample(1, temperature="hot"), "greater than zero"),
        (lambda: density.sample(1, random_state="a"), "random_state is 'a'"),
        (lambda: density.log_prob(np.zeros((2, 6, 6, 3), dtype=np.uint8)), "make them grey"),
        (lambda: density.inpaint(bars(2), known), "inpaint takes one"),
        (lambda: density.inpaint(image, 255 * known.astype(int)), "mask > 127"),
        (lambda: draw_mask("noise", (6, 6), share=2), "between 0 and 1"),
        (lambda: draw_mask("box", (6, 6), share=0.5), "has no option share"),
        (lambda: density.sample(1, steps=0), "at least 1"),
        (lambda: density.sample(1, temperature=0), "greater than zero"),
        (lambda: ag.ImageDensity(network="mlp").fit(bars(30)), "no network 'mlp' for images"),
        (lambda: ag.ImageDensity(workload="gaps").fit(bars(30)), "not a workload for images"),
        (lambda: ag.ImageDensity(element="row").fit(bars(30)), "no element"),
        (lambda: ag.ImageDensity(n_components=0).fit(colours(30)), "need a mixture"),
        (lambda: draw_mask("heart", (6, 6)), "no mask"),
        (lambda: density.inpaint(np.zeros((10, 10, 1), dtype=np.uint8), known), "cut or scale"),
        (lambda: density.inpaint(np.zeros((6, 6, 3), dtype=np.uint8), known), "make them grey"),
        (lambda: density.sample(1, order="raster"), "must be a protocol"),
        (lambda: density.sample(1, steps=3, groups="some"), "groups is 'some'"),
        (
            lambda: ag.ImageDensity(workload=LeftToRight((9, 4))).fit(bars(30)),
            r"for \(9, 4\) and the images are \(6, 6\)",
        ),
        (lambda: ModeMixture(()), "at least one mode"),
        (lambda: ModeMixture((LeftToRight((6, 6)),), (-1.0,)), "not all 0"),
    ]
    for ask, says in wrong:
        with pytest.raises((ImageError, QuestionError), match=says) as error:
            ask()
        assert isinstance(error.value, AnyGivenError)


def test_draws_do_not_depend_on_their_batch(density):
    """A look asks all that is unknown, however few images are drawn at once: in groups one is as good as many."""
    at_once = density.sample(64, steps=6, random_state=0)
    one_by_one = np.concatenate([density.sample(1, steps=6, random_state=k) for k in range(64)])
    nats = [-density.log_prob(images) for images in (at_once, one_by_one)]
    spread = (nats[0].var() / 64 + nats[1].var() / 64) ** 0.5
    assert abs(nats[0].mean() - nats[1].mean()) < 4 * spread


def test_the_surest_pixels_first_and_orders_of_your_own(density):
    ways = ({}, {"steps": 36}, {"order": LeftToRight((6, 6))}, {"steps": 6})
    raster, all_steps, by_mode, planned = (
        -density.log_prob(density.sample(60, random_state=0, **o)).mean() for o in ways
    )
    with pytest.warns(AnyGivenWarning, match="Nothing is known"):
        surest = -density.log_prob(density.sample(60, steps=6, groups="surest", random_state=0)).mean()
    assert raster == all_steps < 6
    assert raster < min(surest, by_mode) < max(surest, by_mode) < planned
    images = bars(20, seed=3)
    assert density.log_prob(images, order=RandomOrder()).shape == (20,)
    assert density.inpaint(images[0], draw_mask("left", (6, 6)), steps=6, groups="surest").shape == (1, 6, 6)


def test_lines_that_cannot_see_each_other_are_drawn_at_once(density):
    """Slanted lines of path convolutions: the probabilities of raster order in fewer steps, to the last digits."""
    images, order = bars(20, seed=4), raster_order(density.model_, (6, 6))
    assert isinstance(order, Slanted)
    np.testing.assert_allclose(density.log_prob(images, order=order), density.log_prob(images), atol=1e-4)
    steeper = density.log_prob(images, order=Slanted((6, 6), order.slant - 1))
    assert not np.allclose(steeper, density.log_prob(images), atol=1e-2)
    box = draw_mask("box", (6, 6))
    given = {"query": ~box, "given": box}
    np.testing.assert_allclose(
        density.log_prob(images, order=order, **given), density.log_prob(images, **given), atol=1e-4
    )


def test_plans_are_lines_where_there_are_steps_enough(density, monkeypatch):
    assert [slant for slant, _ in density.report_["slants"]] == [1, 2, 3]
    bits = [bits for _, bits in density.report_["slants"]]
    assert bits[2] == pytest.approx(density.report_["held_out_bits_per_dim"], abs=1e-4)
    whole = Question(torch.ones(1, 36, dtype=torch.bool), torch.zeros(1, 36, dtype=torch.bool))
    monkeypatch.setitem(density.report_, "slants", [[1, 0.2], [2, 0.101], [3, 0.1]])
    monkeypatch.setitem(density.report_, "held_out_bits_per_dim", 0.1)

    def path(steps):
        found, choose, looks_again = density._path_of_drawing(whole, steps, "planned", None, torch.Generator())
        assert choose is None
        return found.n_steps, looks_again

    assert path(None) == path(35) == (6 + 3 * 5, False)
    assert path(20) == (6 + 2 * 5, False)
    assert path(11) == (6 + 5, False)
    assert path(10) == (10, True)  # planned groups of a random order
    assert path("auto") == (6 + 2 * 5, False)  # loses a hundredth


def test_orders_of_another_grid_get_one_sentence(density):
    for order in (Slanted((9, 4)), RandomScan((6, 5)), Slanted((6, 6, 1))):
        with pytest.raises(QuestionError, match=r"\(6, 6\)"):
            density.sample(1, order=order)
    with pytest.raises(QuestionError, match="slant"):
        Slanted((6, 6), 0)


def test_orders_that_were_not_trained_are_looked_at(density):
    whole = Question(torch.ones(1, 36, dtype=torch.bool), torch.zeros(1, 36, dtype=torch.bool))
    joint = ag.ImageDensity(workload="joint", width=8, depth=1, max_steps=2, verbose=False).fit(bars(40))
    for order, by_joint, by_any in ((Slanted((6, 6), 1), True, False), (RandomScan((6, 6)), True, False),
                                    (Slanted((6, 6), 3), False, False), (Canonical(), False, False),
                                    (RandomOrder(), True, True)):  # fmt: skip
        for one, expected in ((joint, by_joint), (density, by_any)):
            assert one._path_of_drawing(whole, None, "planned", order, torch.Generator())[2] == expected


def test_a_network_that_looks_is_asked_in_orders_that_it_learnt():
    density = ag.ImageDensity(network="unet", width=8, depth=1, max_steps=3, verbose=False).fit(bars(40))
    raster = Canonical()
    images = bars(3, seed=2)
    assert not np.allclose(density.log_prob(images), density.log_prob(images, order=raster))
    np.testing.assert_array_equal(density.log_prob(images), density.log_prob(images))
    density = ag.ImageDensity("pixel", workload="joint", network="unet", width=8, depth=1, max_steps=3, verbose=False)
    density.fit(bars(40))
    np.testing.assert_allclose(density.log_prob(images), density.log_prob(images, order=raster))


def test_known_pixels_keep_their_scale(density):
    image, known = bars(1, seed=7)[0], draw_mask("top", (6, 6))
    assert density.inpaint(255 * image, known).max() == 255
    assert density.inpaint(image, known).max() == 1


def test_black_and_white_in_three_channels_is_learnt():
    images = np.repeat(bars(30)[..., None], 3, axis=-1)
    density = ag.ImageDensity(max_steps=2, width=16, depth=1, verbose=False).fit(images)
    assert density.inpaint(images[0], draw_mask("top", (6, 6))).shape == (1, 6, 6, 3)


def test_verbose_is_not_kept_in_the_folder(density, tmp_path):
    density.save(tmp_path / "m.model")
    assert ag.load(tmp_path / "m.model").verbose is None


def test_an_array_of_an_npz_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=bars(5), x_test=bars(2))
    assert len(read_images(f"{tmp_path}/a.npz:x_test")) == 2
    assert len(read_images(f"{tmp_path}/a.npz")) == 5
    with pytest.raises(ImageError, match="has the arrays x_train, x_test"):
        read_images(f"{tmp_path}/a.npz:y")


def test_command_line(density, tmp_path):
    """fit, sample, inpaint, score, describe; commands for tables are refused in one sentence."""
    import json

    from PIL import Image
    from typer.testing import CliRunner

    from anygiven.cli.main import app

    def run(*words):
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output
        return done.stdout

    np.savez(tmp_path / "bars.npz", images=bars(60))
    model = tmp_path / "bars.model"
    fitted = json.loads(run("fit", tmp_path / "bars.npz", "--out", model, "--minutes", 0.05, "--json"))
    assert fitted["size"] == [6, 6, 1]
    density.save(model)
    run("sample", model, "--rows", 5, "--steps", 4, "--out", tmp_path / "drawn.png")
    picture = np.asarray(Image.open(tmp_path / "drawn.png"))
    assert picture.shape == (2 * 96 + 2, 3 * 96 + 4)
    run("sample", model, "--rows", 5, "--out", tmp_path / "drawn.npz")
    assert np.load(tmp_path / "drawn.npz")["images"].shape == (5, 6, 6)
    Image.fromarray(255 * draw_mask("top", (6, 6)).astype(np.uint8)).save(tmp_path / "mask.png")
    for mask in ("left", tmp_path / "mask.png"):
        run(
            "inpaint", model, tmp_path / "bars.npz", "--index", 3, "--mask", mask, "--n", 2, "--out", tmp_path / "f.png"
        )
        assert np.asarray(Image.open(tmp_path / "f.png")).shape == (96, 4 * 96 + 6)
    scored = json.loads(run("score", model, tmp_path / "bars.npz", "--out", tmp_path / "s.csv", "--json"))
    assert scored["images"] == 60
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 61
    assert "bits per dimension" in run("describe", model)
    part = json.loads(run("score", model, tmp_path / "bars.npz", "--query", "right", "--given", "left", "--json"))
    assert part["nats"] < scored["nats"]
    run("inpaint", model, tmp_path / "bars.npz", "--mask", "left", "--n", 2, "--out", tmp_path / "f.npz")
    assert np.load(tmp_path / "f.npz")["images"].shape == (2, 6, 6)
    Image.fromarray(draw_mask("top", (6, 6)).astype(np.uint8)).save(tmp_path / "dark.png")
    for words in (["ask", model, "x"], ["impute", model, tmp_path / "s.csv", "--out", tmp_path / "x.csv"],
                  ["inpaint", model, tmp_path / "bars.npz", "--mask", "heart", "--out", tmp_path / "x.png"],
                  ["inpaint", model, tmp_path / "bars.npz", "--index", 99, "--out", tmp_path / "x.png"],
                  ["inpaint", model, tmp_path / "bars.npz", "--mask", tmp_path / "dark.png", "--out", "x.png"],
                  ["sample", model, "--refine", "2", "--out", tmp_path / "x.png"],
                  ["sample", model, "--out", tmp_path / "nowhere" / "x.png"],
                  ["sample", model]):  # fmt: skip
        refused = CliRunner().invoke(app, [str(word) for word in words])
        assert isinstance(refused.exception, AnyGivenError)
    assert not (tmp_path / "x.png").exists()


def test_what_is_transparent_is_white(tmp_path):
    """Not whatever colour lies under it."""
    from PIL import Image

    colour = np.zeros((2, 2, 4), dtype=np.uint8)
    colour[..., 0] = 200
    colour[0, :, 3] = 255  # the upper row can be seen
    Image.fromarray(colour).save(tmp_path / "colour.png")
    seen = read_images(tmp_path / "colour.png").levels[0]
    assert (seen[0] == (200, 0, 0)).all()
    assert (seen[1] == 255).all()
    Image.fromarray(np.dstack([colour[..., 0], colour[..., 3]])).save(tmp_path / "grey.png")
    grey = read_images(tmp_path / "grey.png")
    assert grey.size == (2, 2, 1)
    assert grey.levels[0, :, 0, 0].tolist() == [200, 255]


def test_black_and_white_images_for_a_model_of_grey_ones():
    """A one is nearly black there: the user is told."""
    with pytest.warns(AnyGivenWarning, match="multiply by 255"):
        read_images(bars(3), n_levels=256)
    read_images(255 * bars(3), n_levels=256)
    read_images(np.zeros((3, 6, 6)), n_levels=256)


def test_several_random_orders_are_averaged(density):
    """SFARM's Eq. 14 with uniform orders: the log of the mean of p, drawn anew for each order."""
    images = bars(20, seed=10)
    one, many = (density.log_prob(images, order=RandomOrder(), orders=n) for n in (1, 16))
    assert many.mean() > one.mean()
    with pytest.raises(QuestionError, match="the same each time"):
        density.log_prob(images, order=Canonical(), orders=2)
    with pytest.raises(QuestionError, match="each of the 36"):
        density.log_prob(images, order=Canonical((0, 1, 2)))


def test_the_bound_is_of_the_orders_that_are_scored():
    """Of a network that reads paths too: with rough weights looks and paths differ, and the bound is of paths."""
    rough = ag.ImageDensity(width=8, depth=2, dropout=0.0, max_steps=1, verbose=False).fit(bars(30))
    with torch.no_grad():
        for k, p in enumerate(rough.model_.network.parameters()):
            p.add_(0.5 * torch.randn(p.shape, generator=torch.Generator().manual_seed(k)))
    images, rng = bars(3, seed=2), np.random.default_rng(0)
    orders = [Canonical(tuple(rng.permutation(36).tolist())) for _ in range(300)]
    scored = np.stack([rough.log_prob(images, order=order) for order in orders])
    spread = scored.std(0) / len(orders) ** 0.5
    assert (np.abs(rough.elbo(images, n=300) - scored.mean(0)) < 5 * spread).all()


def test_a_mode_of_ones_own_need_not_know_empty_batches():
    def one_by_one(n, shape, generator):
        return torch.stack([torch.rand(shape, generator=generator) < 0.5 for _ in range(n)])

    modes = ModeMixture((RegionMode((6, 6), one_by_one), LeftToRight((6, 6))))
    for network in ("convolutions", "unet"):
        ag.ImageDensity(
            network=network, width=8, depth=1, workload=modes, max_steps=4, batch_size=2, verbose=False
        ).fit(bars(30))


def test_a_network_that_is_told_modes_is_told_them_when_asked():
    density = ag.ImageDensity(network="unet", width=8, depth=1, max_steps=2, verbose=False).fit(bars(30))
    images, order = bars(2, seed=3), LeftToRight((6, 6))
    before, plain = density.log_prob(images, order=order), density.log_prob(images)
    with torch.no_grad():
        density.model_.network.net.class_embedding.weight[2] += 3.0  # left to right is the second of the seven
    assert not np.allclose(before, density.log_prob(images, order=order))
    np.testing.assert_allclose(plain, density.log_prob(images), atol=1e-4)


def test_questions_that_were_never_trained_are_answered_with_a_warning():
    density = ag.ImageDensity(width=8, depth=1, workload="joint", max_steps=2, verbose=False).fit(bars(30))
    image, left = bars(1)[0], draw_mask("left", (6, 6))
    with pytest.warns(AnyGivenWarning, match="workload='any'"):
        density.inpaint(image, left)
    with pytest.warns(AnyGivenWarning, match="workload='any'"):
        density.log_prob(bars(2), query=left)
    density.log_prob(bars(2))


def test_an_image_of_another_size_is_not_blamed_on_the_mask(density):
    with pytest.raises(ImageError, match="images are 10 by 10"):
        density.inpaint(np.zeros((10, 10), dtype=np.uint8), np.ones((10, 10), dtype=bool))


def test_no_image_at_all(density):
    with pytest.raises(ImageError, match="There is no image"):
        density.log_prob(bars(3)[:0])


def test_a_checkpoint_is_of_one_region_function(tmp_path):
    """Another region is another training, though both are called the same."""
    shapes = [
        RegionMode((6, 6), f) for f in (lambda n, s, g: torch.zeros(n, *s) == 0, lambda n, s, g: torch.ones(n, *s) == 0)
    ]
    assert repr(shapes[0]) != repr(shapes[1])
    assert repr(shapes[0]) == repr(RegionMode((6, 6), shapes[0].function))
