"""A hidden node beside the lifecycle node, with a thread of its own.

rclpy builds its wait set anew for every message, from all entities of a node, and a
MultiThreadedExecutor submits a callback again and again until a thread gets the interpreter's lock:
with everything on one node 190 messages/s took a whole core and three times a decision's time. So
each kind of work that must not wait for another has a small node and a single thread.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from functools import partial

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks
from rclpy.executors import (
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
)
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, qos_policy_name_from_kind


class SideNode:
    """Subscriptions and services under the lifecycle node's names, served by one thread.

    Args:
        node: whose names and remappings are used.
        purpose: ends the hidden node's name, and names the thread.
    """

    def __init__(self, node: Node, purpose: str) -> None:
        self._names = node
        self._node = Node(
            f"_{node.get_name()}_{purpose}",  # the underscore hides it from `ros2 node list`
            namespace=node.get_namespace(),
            context=node.context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
            parameter_overrides=[Parameter("start_type_description_service", value=False)],
        )
        self._incompatible: dict[str, str] = {}  # topic to policy
        self._executor = SingleThreadedExecutor(context=node.context)
        self._executor.add_node(self._node)
        self._thread = threading.Thread(target=self._spin, name=purpose, daemon=True)

    def listen(
        self, kind: type, topic: str, callback: Callable, profile: QoSProfile, raw: bool = False
    ) -> str:
        """Subscribe to a topic by the name that it has on the lifecycle node; its full name.

        Args:
            raw: hand the message over as the bytes that it travels as.
        """
        name = self._names.resolve_topic_name(topic)
        events = SubscriptionEventCallbacks(
            incompatible_qos=partial(self._on_incompatible, name),
            use_default_callbacks=False,  # one more entity in the wait set for each topic
        )
        self._node.create_subscription(
            kind, name, callback, profile, raw=raw, event_callbacks=events
        )
        return name

    def listen_once(self, kind: type, topic: str, callback: Callable, profile: QoSProfile) -> None:
        """Subscribe to a topic as `listen` does, until a message has come."""
        name = self._names.resolve_topic_name(topic)

        def on_message(message: object) -> None:
            self._node.destroy_subscription(subscription)
            callback(message)

        subscription = self._node.create_subscription(kind, name, on_message, profile)

    def incompatible(self) -> dict[str, str]:
        """Topics that somebody offers with a quality of service that cannot be heard, and which."""
        return dict(self._incompatible)

    def serve(self, kind: type, service: str, callback: Callable) -> None:
        """Offer a service by the name that it has on the lifecycle node."""
        self._node.create_service(kind, self._names.resolve_service_name(service), callback)

    def start(self) -> None:
        """Begin to serve."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, then the node: afterwards nothing is called back any more."""
        self._executor.shutdown()
        self._thread.join()
        self._node.destroy_node()

    def _on_incompatible(self, topic: str, event: object) -> None:
        policy = qos_policy_name_from_kind(event.last_policy_kind)
        self._incompatible[topic] = policy
        self._names.get_logger().warning(
            f"a publisher of {topic} offers an incompatible {policy}: it is not heard"
        )

    def _spin(self) -> None:
        while self._spin_until_error():
            pass

    def _spin_until_error(self) -> bool:
        """Whether to go on: an error of one message must not end the service of the others."""
        try:
            self._executor.spin()
        except (ExternalShutdownException, ShutdownException):
            return False
        except Exception:
            self._names.get_logger().error(traceback.format_exc(), throttle_duration_sec=1.0)
            return True
        return False
