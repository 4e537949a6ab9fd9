"""Plans in pictures: they lie where they should, and no plan is too strange to be drawn."""

import numpy as np
import pytest

from alpamayo_ros.demo.cameras import default_rig
from alpamayo_ros.demo.pictures import (
    PLAN,
    REJECTED,
    TRUTH,
    Surroundings,
    draw_from_above,
    draw_plan_in_front,
    speed_colour,
)

CAMERA = default_rig()[1]
GREY = np.full((320, 576, 3), 90, np.uint8)
TIMES_S = np.arange(1, 65) / 10
STRAIGHT = np.column_stack([8.0 * TIMES_S, 0 * TIMES_S, 0 * TIMES_S])
LEFT = np.column_stack([8.0 * TIMES_S, 0.5 * TIMES_S**2, np.arctan(TIMES_S / 8.0)])
HISTORY = np.column_stack([np.linspace(-12, 0, 16), np.zeros(16)])


def changed(waypoints: np.ndarray, **options) -> np.ndarray:
    """Pixels (H, W) that the plan touched."""
    return (draw_plan_in_front(GREY, CAMERA, waypoints, **options) != GREY).any(axis=-1)


def from_above(waypoints: np.ndarray, **options) -> np.ndarray:
    return draw_from_above(waypoints, waypoints[None], HISTORY, **options)


def of_colour(image: np.ndarray, colour) -> tuple[np.ndarray, np.ndarray]:
    return np.nonzero((np.abs(image.astype(int) - colour) < 12).all(axis=-1))


def test_a_straight_plan_starts_at_the_bottom_and_runs_up_the_middle():
    touched = changed(STRAIGHT)
    rows, columns = np.nonzero(touched)
    assert columns.mean() == pytest.approx(287.5, abs=1)
    assert touched[-1].any()
    assert rows.min() > 159, "the ground ends at the horizon"
    assert rows.min() < 170
    # 1.9 m wide, at the depth that the bottom row sees: height * focal / (319 - 159.5) metres.
    depth_m = 1.5 * CAMERA.focal_px / (319 - 159.5)
    assert touched[-1].sum() == pytest.approx(1.9 / depth_m * CAMERA.focal_px, abs=6)


def test_a_plan_to_the_left_runs_to_the_left():
    touched = changed(LEFT)
    far_rows = touched[165:175]
    assert np.nonzero(far_rows)[1].mean() < 270
    assert np.nonzero(touched[-1])[0].mean() == pytest.approx(287, abs=12)


def test_the_picture_given_is_not_changed():
    image = GREY.copy()
    draw_plan_in_front(image, CAMERA, STRAIGHT)
    assert (image == GREY).all()


def test_a_rejected_plan_is_red_and_an_accepted_one_is_not():
    def tint(accepted: bool) -> np.ndarray:
        picture = draw_plan_in_front(GREY, CAMERA, STRAIGHT, accepted=accepted)
        return picture[300, 288].astype(int)

    assert tint(False)[0] > tint(False)[1:].max() + 40
    assert tint(True)[0] < tint(True)[1:].max()


def test_speed_colours_go_from_blue_to_green_and_stay_there():
    assert np.argmax(speed_colour(0.0)) == 2
    assert np.argmax(speed_colour(20.0)) == 1
    assert speed_colour(300.0) == speed_colour(20.0)


STRANGE = {
    "all NaN": np.full((64, 3), np.nan),
    "NaN in between": np.where(np.arange(64)[:, None] == 20, np.nan, STRAIGHT),
    "infinite": np.full((64, 3), np.inf),
    "huge": STRAIGHT * 1e30,
    "float32 huge": (STRAIGHT * 1e30).astype(np.float32),
    "behind": STRAIGHT * -1,
    "at rest": np.zeros((64, 3)),
    "through the camera": np.tile([[3.0, 0.0, 0.0], [-3.0, 1.0, 3.0]], (32, 1)),
    "empty": np.zeros((0, 3)),
    "noise": np.random.default_rng(3).normal(0, 50, (64, 3)),
}


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("accepted", [True, False])
def test_no_plan_is_too_strange_to_be_drawn(name, accepted):
    waypoints = STRANGE[name]
    front = draw_plan_in_front(GREY, CAMERA, waypoints, accepted=accepted)
    assert (front.shape, front.dtype) == ((320, 576, 3), np.uint8)
    above = from_above(waypoints, surroundings=Surroundings(truth=waypoints), accepted=accepted)
    assert (above.shape, above.dtype) == ((640, 400, 3), np.uint8)


@pytest.mark.parametrize("name", ["all NaN", "infinite", "huge", "behind", "at rest", "empty"])
def test_what_cannot_be_seen_leaves_the_front_picture_as_it_is(name):
    assert not changed(STRANGE[name]).any()


def test_a_gap_in_a_plan_is_a_gap_and_not_a_bridge():
    whole, broken = changed(STRAIGHT), changed(STRANGE["NaN in between"])
    assert whole.sum() > broken.sum() > 0.5 * whole.sum()


def test_from_above_a_straight_plan_goes_up_from_the_ego():
    rows, columns = of_colour(from_above(STRAIGHT)[:560], PLAN)
    assert columns.mean() == pytest.approx(199.5, abs=1)
    # 51.2 m long and 6 m of margin above it, 14 m below the ego, over 640 rows.
    px_per_m = 640 / (51.2 + 6 + 14)
    assert rows.min() == pytest.approx(6 * px_per_m, abs=0.8 * px_per_m)


def test_from_above_left_is_left_and_truth_is_apart_from_the_plan():
    picture = from_above(LEFT, surroundings=Surroundings(truth=STRAIGHT))[:560]
    assert of_colour(picture, PLAN)[1].mean() < 190
    assert of_colour(picture, TRUTH)[1].mean() == pytest.approx(199.5, abs=2)


def test_from_above_a_rejected_plan_is_red():
    picture = from_above(STRAIGHT, accepted=False)
    assert len(of_colour(picture, REJECTED)[0]) > 500
    assert not len(of_colour(picture, PLAN)[0])


def test_from_above_other_vehicles_are_where_they_are():
    box = np.array([[22, 4], [18, 4], [18, 2], [22, 2]], float)
    with_box = from_above(STRAIGHT, surroundings=Surroundings(outlines=(box,)))
    rows, columns = np.nonzero((with_box != from_above(STRAIGHT)).any(axis=-1))
    px_per_m = 640 / (51.2 + 6 + 14)
    assert rows.mean() == pytest.approx(640 - (14 + 20) * px_per_m, abs=1.5)
    assert columns.mean() == pytest.approx(200 - 3 * px_per_m, abs=1.5)
