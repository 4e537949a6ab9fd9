"""How fast a view of the synthetic drive is rendered: one core, median and spread.

    python benchmarks/render.py [--views 200] [--size 576x320]

The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import time

import cv2
import numpy as np

from alpamayo_ros.demo.cameras import Camera, default_rig
from alpamayo_ros.demo.drive import Drive
from alpamayo_ros.demo.render import render
from alpamayo_ros.demo.scene import Scene

WARM_UP_VIEWS = 8


def main() -> None:
    """Render the views of each camera along a drive and print their times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--views", type=int, default=200, help="of each camera, along 20 s")
    parser.add_argument("--size", default="576x320", help="width x height in pixels")
    arguments = parser.parse_args()
    width, height = (int(part) for part in arguments.size.split("x"))
    cv2.setNumThreads(1)
    drive = Drive(0)
    scenes = [drive.scene_at(t_s) for t_s in np.linspace(0, 20, arguments.views).tolist()]
    times_ms = {camera.role: timed_ms(camera, scenes) for camera in default_rig(width, height)}
    print(f"{width} x {height}, {arguments.views} views of each camera, milliseconds a view")
    for role, durations in times_ms.items():
        low, median, high = np.percentile(durations, [10, 50, 90])
        print(f"  {role:12} median {median:6.2f}   p10 {low:6.2f}   p90 {high:6.2f}")
    every = np.concatenate(list(times_ms.values()))
    low, median, high = np.percentile(every, [10, 50, 90])
    print(f"  {1e3 / median:.0f} views a second")
    numbers = {"median_ms": median, "p10_ms": low, "p90_ms": high, "views_a_second": 1e3 / median}
    print(json.dumps({name: round(float(value), 3) for name, value in numbers.items()}))


def timed_ms(camera: Camera, scenes: list[Scene]) -> list[float]:
    """Milliseconds of each view, after a warm-up."""
    for scene in scenes[:WARM_UP_VIEWS]:
        render(camera, scene)
    durations = []
    for scene in scenes:
        start_ns = time.perf_counter_ns()
        render(camera, scene)
        durations.append((time.perf_counter_ns() - start_ns) / 1e6)
    return durations


if __name__ == "__main__":
    main()
