"""The quality of service of every topic, by what it carries."""

from rclpy.qos import QoSDurabilityPolicy, QoSHistoryPolicy, QoSProfile, QoSReliabilityPolicy


def _profile(depth: int, reliable: bool, latched: bool) -> QoSProfile:
    return QoSProfile(
        history=QoSHistoryPolicy.KEEP_LAST,
        depth=depth,
        reliability=(
            QoSReliabilityPolicy.RELIABLE if reliable else QoSReliabilityPolicy.BEST_EFFORT
        ),
        durability=(
            QoSDurabilityPolicy.TRANSIENT_LOCAL if latched else QoSDurabilityPolicy.VOLATILE
        ),
    )


IMAGES = _profile(depth=5, reliable=False, latched=False)  # of a driver that loses some, the newest
ODOMETRY = _profile(depth=100, reliable=False, latched=False)  # 0.5 s at 200 Hz
NAVIGATION = _profile(depth=1, reliable=True, latched=False)
LATCHED = _profile(depth=1, reliable=True, latched=True)  # late joiners get the newest
PICTURES = _profile(depth=1, reliable=True, latched=False)  # for RViz, which asks for reliable
PLANS = _profile(depth=10, reliable=True, latched=False)
DIAGNOSTICS = _profile(depth=10, reliable=True, latched=False)
CLOCK = _profile(depth=1, reliable=True, latched=False)
