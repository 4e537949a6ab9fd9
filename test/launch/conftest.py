"""The fixtures of the node's own tests, and one for launch."""

import pytest

from ..ros.conftest import context, domain_id  # noqa: F401


@pytest.fixture
def domain(domain_id, tmp_path, monkeypatch):  # noqa: F811
    """The tests' ROS domain, and a folder for launch's logs."""
    monkeypatch.setenv("ROS_DOMAIN_ID", str(domain_id))
    monkeypatch.setenv("ROS_LOG_DIR", str(tmp_path))
