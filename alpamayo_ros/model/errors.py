"""What can go wrong with a model: one class for all that a user can mend, one for a stop."""

from __future__ import annotations

from alpamayo_ros.types import UserError


class ModelError(UserError):
    """Something a user can mend: a folder, a tensor, a device, an argument. One line of text."""


class PlanCancelled(Exception):
    """The plan in flight was given up because `should_stop` said so."""
