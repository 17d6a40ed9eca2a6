"""The whole queue protocol against a plain model of it, in sequences of calls that nobody would think of.

``LANNER_MODEL_EXAMPLES`` says how many sequences, other ones each time; by default they are few, and always the same.
``LANNER_MODEL_SHRINK=0`` ends with the first sequence that fails, and makes it no shorter.
"""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from queue_model.driver import Driver
from queue_model.operating import QueueMachine
from support.servers import Server

SHRINK = os.environ.get("LANNER_MODEL_SHRINK") != "0"
ASKED = int(os.environ.get("LANNER_MODEL_EXAMPLES", "0"))
SETTINGS = settings(
    max_examples=ASKED or 200,
    stateful_step_count=60,
    derandomize=not ASKED,
    database=None,
    deadline=None,
    print_blob=True,
    phases=[Phase.generate, *([Phase.shrink] if SHRINK else [])],
    report_multiple_bugs=SHRINK,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)


@pytest.mark.timeout(0 if ASKED else 300)  # who asks for many sequences has the time for them
def test_the_queue_does_what_its_model_does(server: Server, namespace_id: str) -> None:
    driver = Driver(server.url, f"lanner:{{{namespace_id}}}")

    class Machine(QueueMachine):
        def __init__(self) -> None:
            driver.wipe()
            super().__init__(driver)

    try:
        run_state_machine_as_test(Machine, settings=SETTINGS)
    finally:
        driver.wipe()
        driver.close()
