"""output.autoware on a machine without Autoware's messages."""

from __future__ import annotations

import os

import pytest

from .conftest import parameters


@pytest.mark.process
@pytest.mark.timeout(200)
def test_without_autowares_messages_configure_fails_with_one_line(start_node, tmp_path):
    """Where they are installed, a package that cannot be imported hides them."""
    package = tmp_path / "autoware_planning_msgs"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('not here')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    bench = start_node(
        *parameters(model__path="demo", output__autoware=True), environment={"PYTHONPATH": path}
    )
    bench.wait(lambda: bench.ear.status and bench.ear.status.last_error, "an error")
    assert bench.ear.status.last_error == (
        "output.autoware is true and autoware_planning_msgs cannot be imported: source the "
        "Autoware workspace before the node starts, or set output.autoware to false"
    )
    assert bench.get_state() == "unconfigured"
    assert bench.process.alive()
