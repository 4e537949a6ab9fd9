"""The Python part, for pip. colcon builds the messages and the programs from CMakeLists.txt."""

from __future__ import annotations

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent


def lines(name: str) -> list[str]:
    """Lines of a requirements file or list, less comments, options and empty ones."""
    stripped = (line.split("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return [line for line in stripped if line and not line.startswith("-")]


setup(
    name="alpamayo_ros",
    version="0.1.0",
    description="Driving plans from four cameras and odometry with Alpamayo-R1, as a ROS 2 node",
    license="Apache-2.0",
    python_requires=">=3.10",
    packages=find_packages(include=["alpamayo_ros", "alpamayo_ros.*"]),
    package_data={
        "alpamayo_ros": ["**/*.json", "**/*.html", "**/*.npz", "**/*.safetensors", "**/*.md"]
    },
    # As colcon installs them: the evaluation writes its bags with these definitions.
    data_files=[
        ("share/alpamayo_ros/msg", [f"msg/{p.name}" for p in (ROOT / "msg").glob("*.msg")])
    ],
    install_requires=lines("requirements.txt"),
    extras_require={
        "npu": lines("requirements-npu.txt"),
        "ray": ["ray>=2.40"],
        "clips": ["pyarrow>=14"],
    },
    entry_points={"console_scripts": lines("resource/executables.txt")},
)
