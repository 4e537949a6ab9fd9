"""Alpamayo-R1: the network, its checkpoint and the way from a snapshot to a plan."""

from alpamayo_ros.model.alpamayo import AlpamayoR1
from alpamayo_ros.model.errors import ModelError, PlanCancelled

__all__ = ["AlpamayoR1", "ModelError", "PlanCancelled"]
