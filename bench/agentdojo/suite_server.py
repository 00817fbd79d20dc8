"""One suite of AgentDojo as an MCP server: its own tools on its own environment.

    python suite_server.py SUITE PORT

Run with the Python that AgentDojo is installed for. Who replays tasks says at `/control` which one begins,
and asks there afterwards whether the environment ended as it does without a gateway; no tool can do that.
"""

import json
import sys
import warnings

warnings.filterwarnings("ignore")

import uvicorn  # noqa: E402
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline  # noqa: E402
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str  # noqa: E402
from agentdojo.functions_runtime import FunctionsRuntime  # noqa: E402
from agentdojo.task_suite.load_suites import get_suites  # noqa: E402
from agentdojo.task_suite.task_suite import functions_stack_trace_from_messages  # noqa: E402
from agentdojo.types import text_content_block_from_string  # noqa: E402
from mcp import types  # noqa: E402
from mcp.server.lowlevel import Server  # noqa: E402
from starlette.responses import Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

VERSION = "v1.2.2"


class World:
    """The environment that the tools act on now."""

    def __init__(self, suite):
        self.suite = suite
        self.runtime = FunctionsRuntime(suite.tools)
        self.task = None
        self.environment = suite.load_and_inject_default_environment({})

    def tasks(self):
        return [self._told(task) for _, task in sorted(self.suite.user_tasks.items())]

    def begin(self, name):
        self.task, self.environment = self.suite.user_tasks[name], self._fresh(self.suite.user_tasks[name])
        return {}

    def judge(self):
        """What a run without a gateway would have left, and what this one did.

        Two runs without one differ by the time of day in some places: those are not compared.
        """
        (alone, trace), (again, _) = self._alone(), self._alone()
        there, here = leaves(alone), leaves(self.environment)
        unsteady = differing(there, leaves(again))
        return {
            "differs": sorted(differing(there, here) - unsteady),
            "unsteady": sorted(unsteady),
            "utility": self._useful(self.environment, trace),
            "utility_alone": self._useful(alone, trace),
        }

    def _alone(self):
        runtime, environment = FunctionsRuntime(self.suite.tools), self._fresh(self.task)
        ran = GroundTruthPipeline(self.task).query(self.task.PROMPT, runtime, environment)
        return ran[2], functions_stack_trace_from_messages(ran[3])

    def _useful(self, environment, trace):
        output = [text_content_block_from_string(self.task.GROUND_TRUTH_OUTPUT)]
        before = self._fresh(self.task)
        return bool(self.suite._check_user_task_utility(self.task, output, before, environment, trace))

    def _fresh(self, task):
        return task.init_environment(self.suite.load_and_inject_default_environment({})).model_copy(deep=True)

    def _told(self, task):
        calls = task.ground_truth(self._fresh(task))
        return {
            "id": task.ID,
            "prompt": task.PROMPT,
            "calls": [{"tool": call.function, "arguments": dict(call.args)} for call in calls],
        }


def leaves(environment):
    """Every value of an environment by its place."""
    found, left = {}, [("", environment.model_dump(mode="json"))]
    while left:
        place, value = left.pop()
        if isinstance(value, dict) and value:
            left += [(f"{place}/{name}", inner) for name, inner in value.items()]
        elif isinstance(value, list) and value:
            left += [(f"{place}/{number}", inner) for number, inner in enumerate(value)]
        else:
            found[place] = value
    return found


def differing(one, other):
    missing = object()
    return {
        place for place in one.keys() | other.keys() if one.get(place, missing) != other.get(place, missing)
    }


def served(world):
    async def listed(_, __):
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=one.name,
                    description=one.description,
                    input_schema=one.parameters.model_json_schema(),
                )
                for one in world.suite.tools
            ]
        )

    async def called(_, request):
        result, error = world.runtime.run_function(world.environment, request.name, request.arguments or {})
        text = error if error is not None else tool_result_to_str(result)
        content = [types.TextContent(type="text", text=text)]
        return types.CallToolResult(content=content, is_error=error is not None)

    return Server(f"agentdojo-{world.suite.name}", version=VERSION, on_list_tools=listed, on_call_tool=called)


def control(world):
    async def talk(request):
        said = await request.json()
        answer = getattr(world, said.pop("do"))(**said)
        return Response(json.dumps(answer, default=str), media_type="application/json")

    return talk


def main(suite, port):
    world = World(get_suites(VERSION)[suite])
    routes = [Route("/control", control(world), methods=["POST"])]
    app = served(world).streamable_http_app(json_response=True, custom_starlette_routes=routes)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
