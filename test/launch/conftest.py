"""The fixtures of the node's own tests."""

from ..ros.conftest import context, domain_id  # noqa: F401
