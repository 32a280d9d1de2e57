"""Can one see how training went: as a picture, and in TensorBoard?"""

import math
import random
import struct

import msgspec
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from upswing.train.child.curves import PANELS, draw_curves
from upswing.train.child.tensorboard import HOLDOUT_TAG, SCALAR_TAGS, open_tensorboard, write_events
from upswing.train.core.report import CheckpointSaved, StepReport


def stepped(step, **changes):
    dice = random.Random(step)
    told = StepReport(
        step=step,
        epoch=step // 10,
        loss=dice.gauss(0, 1),
        reward_mean=dice.random(),
        reward_std=dice.random() / 4,
        entropy=dice.random(),
        kl=dice.random() / 50,
        clipped=dice.random() / 9,
        grad_norm=dice.random(),
        learning_rate=3e-4,
        tokens=step * 1536,
        seconds=0.25,
    )
    return msgspec.structs.replace(told, **changes)


def picture(path):
    """(width, height) of a PNG."""
    body = path.read_bytes()
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    assert body.endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", body[16:24])


@pytest.mark.parametrize("steps", [0, 1, 2, 12, 31, 400])
def test_a_run_of_any_length_is_drawn(tmp_path, steps):
    draw_curves(
        [stepped(n) for n in range(1, steps + 1)], tmp_path / "a" / "curves.png", "job-1 · grpo"
    )
    assert picture(tmp_path / "a" / "curves.png") == (1440, 828)


def test_values_that_are_no_numbers_and_titles_of_any_kind_do_not_matter(tmp_path):
    odd = {
        "loss": math.nan,
        "kl": math.inf,
        "grad_norm": -math.inf,
        "entropy": 1e300,
        "clipped": 0.0,
    }
    curves = [stepped(1), stepped(2, **odd), stepped(3)]
    draw_curves(curves, tmp_path / "curves.png", "$x_1$ · 模型 · \x1b[2J\n")
    assert picture(tmp_path / "curves.png") == (1440, 828)
    every = dict.fromkeys(
        ("loss", "kl", "grad_norm", "entropy", "clipped", "reward_mean"), math.nan
    )
    draw_curves(
        [stepped(n, **every) for n in range(1, 40)], tmp_path / "none.png", "nothing to see"
    )
    assert picture(tmp_path / "none.png") == (1440, 828)


def test_of_a_step_that_was_taken_again_the_last_time_is_drawn(tmp_path):
    once = [stepped(n) for n in range(1, 9)]
    draw_curves(once, tmp_path / "once.png", "job")
    repeated = [stepped(n, loss=100.0) for n in range(5, 8)]
    draw_curves([*once[:4], *repeated, *once[4:]], tmp_path / "again.png", "job")
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "once.png").read_bytes()


def test_each_panel_shows_a_measure_of_its_own():
    told = StepReport(1, 2, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11, 12.0)
    assert [panel.value(told) for panel in PANELS] == [4.0, 3.0, 7.0, 6.0, 8.0, 9.0]


def read(folder):
    found = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return {tag: {e.step: e.value for e in found.Scalars(tag)} for tag in found.Tags()["scalars"]}


def test_tensorboard_reads_every_measure_of_every_step(tmp_path):
    steps = [stepped(n) for n in range(1, 21)]
    with open_tensorboard(tmp_path / "tensorboard") as written:
        for each in steps:
            written.write_step(each)
        written.write_checkpoint(
            CheckpointSaved(10, "checkpoints/step-000010", holdout=0.5, best=True)
        )
        written.write_checkpoint(
            CheckpointSaved(20, "checkpoints/step-000020", holdout=None, best=False)
        )
    told = read(tmp_path / "tensorboard")
    assert told.keys() == {*SCALAR_TAGS.values(), HOLDOUT_TAG}
    for field, tag in SCALAR_TAGS.items():
        wanted = {each.step: pytest.approx(getattr(each, field), rel=1e-6) for each in steps}
        assert told[tag] == wanted
    assert told[HOLDOUT_TAG] == {10: 0.5}


def test_an_attempt_that_goes_on_replaces_the_steps_it_takes_again(tmp_path):
    with open_tensorboard(tmp_path) as first:
        for n in range(1, 8):
            first.write_step(stepped(n, loss=1.0))
    with open_tensorboard(tmp_path, first_step=5) as second:
        second.flush()
        for n in range(5, 11):
            second.write_step(stepped(n, loss=2.0))
    assert read(tmp_path)["train/loss"] == {n: 1.0 if n < 5 else 2.0 for n in range(1, 11)}


def test_the_whole_log_can_be_written_at_once_and_again(tmp_path):
    write_events([stepped(n, loss=1.0) for n in range(1, 9)], tmp_path)
    write_events([stepped(n, loss=2.0) for n in range(1, 6)], tmp_path)
    assert read(tmp_path)["train/loss"] == dict.fromkeys(range(1, 6), 2.0)


def test_tensorflow_is_not_needed(tmp_path):
    import sys

    assert "tensorflow" not in sys.modules
