"""Tests of workflows: in a simulation without a server, or on a real one.

``simulate`` and ``Simulation`` run workflows in the test's own process, on a clock that skips waits. For tests on a
real server, name ``lanner.testing.pytest_plugin`` in ``pytest_plugins``.
"""

from .crash import CrashPoint, crash_points
from .entry import Attempt
from .job import SimulatedJob
from .server import RealServer
from .simulate import simulate
from .simulation import SimulatedOptions, Simulation

__all__ = [
    "Attempt",
    "CrashPoint",
    "RealServer",
    "SimulatedJob",
    "SimulatedOptions",
    "Simulation",
    "crash_points",
    "simulate",
]
