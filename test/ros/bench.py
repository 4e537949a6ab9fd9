"""A node process on the bench: its services called, its topics heard."""

from __future__ import annotations

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from nav_msgs.msg import Path
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from std_msgs.msg import String
from std_srvs.srv import Trigger

from alpamayo_ros.ros import qos
from alpamayo_ros.ros.bag_run import Listener, Spinner
from alpamayo_ros.ros.node_process import NodeProcess, wait_until

DEADLINE_S = 60.0  # for anything that two busy cores may delay
TRANSITIONS = {
    "configure": Transition.TRANSITION_CONFIGURE,
    "activate": Transition.TRANSITION_ACTIVATE,
    "deactivate": Transition.TRANSITION_DEACTIVATE,
    "cleanup": Transition.TRANSITION_CLEANUP,
}


class Ear(Listener):
    """Hears everything that a node says, from its start on."""

    def __init__(self, context, target: str) -> None:
        super().__init__(context, target)
        self.paths: list[Path] = []
        self.paths_ego: list[Path] = []
        self.reasonings: list[str] = []
        output = f"{target}/output"
        self.create_subscription(Path, f"{output}/path", self.paths.append, qos.LATCHED)
        self.create_subscription(Path, f"{output}/path_ego", self.paths_ego.append, qos.LATCHED)
        self.create_subscription(
            String, f"{output}/reasoning", lambda m: self.reasonings.append(m.data), qos.LATCHED
        )


class Bench:
    """A started node, ended when the block is left."""

    def __init__(self, process: NodeProcess, context, target: str = "/alpamayo") -> None:
        self.process = process
        self.ear = Ear(context, target)
        self._target = target
        self._spinner = Spinner(context, self.ear)

    def __enter__(self):
        self._spinner.__enter__()
        self.process.__enter__()
        return self

    def __exit__(self, *exception):
        self.process.__exit__(*exception)
        self._spinner.__exit__(*exception)
        self.ear.destroy_node()

    def wait(self, condition, what: str) -> None:
        """Wait until a condition holds, and say what did not happen when it does not."""
        held = wait_until(condition, DEADLINE_S)
        status = self.ear.status
        assert held, f"{what} did not happen; status {status}; log:\n{self.process.output()}"

    def wait_for_state(self, state: str) -> None:
        self.wait(lambda: self.ear.state == state, f"state {state}")

    def wait_for_plans(self, count: int) -> int:
        """Wait for so many more plans; how many there were before."""
        seen = len(self.ear.plans)
        self.wait(lambda: len(self.ear.plans) >= seen + count, f"{count} plans")
        return seen

    def call(self, kind, name: str, request):
        """Call a service of the node."""
        client = self.ear.create_client(kind, f"{self._target}/{name}")
        try:
            self.wait(client.service_is_ready, f"service {name}")
            future = client.call_async(request)
            self.wait(future.done, f"answer of {name}")
            return future.result()
        finally:
            self.ear.destroy_client(client)

    def change_state(self, transition: str) -> bool:
        """Ask for a lifecycle transition; whether it succeeded."""
        request = ChangeState.Request(transition=Transition(id=TRANSITIONS[transition]))
        return self.call(ChangeState, "change_state", request).success

    def get_state(self) -> str:
        return self.call(GetState, "get_state", GetState.Request()).current_state.label

    def trigger(self, name: str) -> Trigger.Response:
        return self.call(Trigger, name, Trigger.Request())

    def set_parameter(self, name: str, value):
        """Set a parameter of the running node; rclpy's result."""
        message: ParameterMessage = Parameter(name, value=value).to_parameter_msg()
        request = SetParameters.Request(parameters=[message])
        return self.call(SetParameters, "set_parameters", request).results[0]
