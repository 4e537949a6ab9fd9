"""Alpamayo-R1: the network, its checkpoint and the way from a snapshot to a plan."""

from alpamayo_ros.model.alpamayo import AlpamayoR1, Answer
from alpamayo_ros.model.errors import ModelError, PlanCancelled
from alpamayo_ros.model.features import CameraFrame

__all__ = ["AlpamayoR1", "Answer", "CameraFrame", "ModelError", "PlanCancelled"]
