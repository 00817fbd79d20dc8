"""Does the shipped policy leave AgentDojo's user tasks whole, and ask a person rarely? No model."""

from pathlib import Path

import pytest

from bench.agentdojo.__main__ import AIM_ASKED, AIM_KEPT
from bench.agentdojo.replay import SUITES, replay
from tests.requirements import requirement

pytestmark = pytest.mark.soak

TASKS = 97


@requirement("POL-3", "APR-8", "APR-9")
async def test_the_right_calls_of_every_task_go_through_with_few_questions(tmp_path: Path) -> None:
    found = await replay(tmp_path, SUITES)
    assert len(found.tasks) == TASKS
    lost = [(task.suite, task.id, task.why) for task in found.tasks if not task.kept]
    assert found.kept_tasks >= AIM_KEPT, lost
    assert found.kept_calls >= AIM_KEPT, lost
    assert found.asked_per_task <= AIM_ASKED
    assert sum(task.plans for task in found.tasks) > 0


@requirement("POL-3")
async def test_where_nobody_says_yes_no_money_moves(tmp_path: Path) -> None:
    found = await replay(tmp_path, ("banking",), answered=False)
    held = [task for task in found.tasks if task.asked]
    assert held
    assert all("held" in task.why[0] for task in held)
    assert all(task.kept for task in found.tasks if not task.asked)
