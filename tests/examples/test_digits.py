"""The digits example: it learns, its gradients are right, and it says what did not run."""

import sys
from pathlib import Path

import numpy as np
import pytest
import steps_backends

EXAMPLES = Path(__file__).parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

pytest.importorskip("sklearn")

import digits  # noqa: E402
import digits_network  # noqa: E402
import digits_training  # noqa: E402


@pytest.fixture(scope="module")
def data():
    return digits_training.load()


@pytest.fixture(scope="module")
def reference(data):
    return digits_training.train(steps_backends.get("numpy"), data)


def test_the_backward_pass_agrees_with_finite_differences():
    random = np.random.default_rng(3)
    weights = {
        name: {part: leaf + 0.01 * random.standard_normal(leaf.shape) for part, leaf in layer.items()}
        for name, layer in digits_network.initial_weights(5).items()
    }
    images, targets = random.random((7, digits_network.PIXELS)), np.eye(digits_network.DIGITS)[:7]
    loss, gradients = digits_network.loss_and_gradients(weights, images, targets)
    for name, layer in weights.items():
        for part, leaf in layer.items():
            place = tuple(random.integers(size) for size in leaf.shape)
            kept, width = leaf[place], 1e-6
            leaf[place] = kept + width
            above, _ = digits_network.loss_and_gradients(weights, images, targets)
            leaf[place] = kept - width
            below, _ = digits_network.loss_and_gradients(weights, images, targets)
            leaf[place] = kept

            assert gradients[name][part][place] == pytest.approx(
                (above - below) / (2 * width), rel=1e-5, abs=1e-9
            )
    assert loss > 0


def test_the_images_are_split_once_and_each_epoch_shows_an_image_once(data):
    assert len(data.images) + len(data.test_images) == 1797
    assert data.batches.shape[1] == digits_training.BATCH
    epoch = data.batches[: len(data.batches) // digits_training.EPOCHS]

    assert len(np.unique(epoch)) == epoch.size


@pytest.mark.parametrize("name", digits.BACKENDS)
def test_a_backend_learns_what_numpy_learns(name, data, reference):
    backend = steps_backends.get(name)
    probe = backend.probe()
    if not probe.runs:
        pytest.skip(str(probe.reason))
    training = digits_training.train(backend, data)
    share, _ = digits.difference(training.weights, reference.weights)

    assert training.accuracy >= digits.WANTED_ACCURACY
    assert training.loss == pytest.approx(reference.loss, rel=1e-3)
    assert share < 1e-2
    assert max(training.norms) > digits_training.THRESHOLD > min(training.norms)


def test_the_difference_is_counted_in_units_of_the_weight():
    expected = {"layer": {"weights": np.asarray([1.0, 4.0], np.float32)}}
    moved = {"layer": {"weights": np.asarray([1.0 + 2**-22, 4.0], np.float32)}}

    assert digits.difference(expected, expected) == (0.0, 0.0)
    assert digits.difference(moved, expected) == (2**-24, 2.0)


def test_a_backend_that_learns_too_little_ends_in_an_error(capsys, monkeypatch):
    monkeypatch.setattr(digits, "WANTED_ACCURACY", 1.01)

    _, code = digits.run(["numpy"], asked=False)

    assert code == 1
    assert "below the accuracy of 1.01: numpy" in capsys.readouterr().out


def test_a_backend_that_cannot_run_is_a_row_with_its_reason(capsys, monkeypatch):
    absent = [name for name in ("torch-cuda", "cupy") if not steps_backends.get(name).probe().runs]
    if not absent:
        pytest.skip("both backends of CUDA run here")

    _, by_default = digits.run(["numpy", absent[0]], asked=False)
    _, by_name = digits.run(["numpy", absent[0]], asked=True)

    assert (by_default, by_name) == (0, 2)
    assert f"{absent[0]:<17} not run: " in capsys.readouterr().out


def test_the_picture_is_drawn(tmp_path, reference):
    pytest.importorskip("matplotlib")
    from digits_plot import draw

    draw({"numpy": reference, "again": reference}, tmp_path / "digits.png")

    assert (tmp_path / "digits.png").read_bytes().startswith(b"\x89PNG")
