"""A tool that does what it is told, when it is told: a test can stand between any two of its steps."""

import asyncio
from collections import Counter
from typing import Any

from holdfast import Effect, Invocation, NoEffect, tool
from holdfast.model.function import FunctionTool
from tests.faults.machine import Life
from tests.faults.tools import PROBE, WRITE
from tests.soak.effects import name_of

TOOLS = ("plain", "probed")


class Scene:
    """One attempt under way inside the tool."""

    def __init__(self, name: str, life: Life) -> None:
        self.name = name
        self.life = life
        self.acted = False
        self.orders: asyncio.Queue[str] = asyncio.Queue()

    @property
    def listens(self) -> bool:
        return not self.life.dead and self.life.going_on.is_set()


class Stage:
    """All attempts under way, and what has really happened."""

    def __init__(self) -> None:
        self.effects: Counter[str] = Counter()
        self.scenes: list[Scene] = []
        self._entered = asyncio.Event()

    def tools(self, life: Life) -> list[FunctionTool[..., Any]]:
        return [self._write("plain", life), self._write("probed", life), self._effect_seen()]

    async def waiting(self) -> Scene:
        """The first attempt that waits for an order, now or as soon as there is one."""
        while True:
            self._entered.clear()
            for scene in self.scenes:
                if scene.listens:
                    return scene
            await self._entered.wait()

    def may_still_act(self, name: str) -> bool:
        return any(scene.name == name and not scene.life.dead for scene in self.scenes)

    def _write(self, kind: str, life: Life) -> FunctionTool[..., Any]:
        declared = {**WRITE, "probe": PROBE} if kind == "probed" else WRITE

        @tool(effect=Effect.LOW_RISK_INTERNAL, name=kind, **declared)
        async def write(invocation: Invocation) -> dict[str, int]:
            """Add one line to the register."""
            scene = Scene(name_of(invocation.key), life)
            self.scenes.append(scene)
            self._entered.set()
            try:
                return await self._play(scene)
            finally:
                self.scenes.remove(scene)

        return write

    async def _play(self, scene: Scene) -> dict[str, int]:
        while True:
            try:
                order = await scene.orders.get()
            except asyncio.CancelledError:
                if scene.life.going_on.is_set():
                    raise
                # Stopped in the middle: once woken it acts first and notices afterwards that its time is up.
                await scene.life.living()
                self._act(scene)
                raise
            match order:
                case "act":
                    self._act(scene)
                case "answer":
                    self._act(scene)
                    return {"line": 1}
                case "prove that nothing happened" if not scene.acted:
                    raise NoEffect("nothing was done")
                case _:
                    raise RuntimeError("broke off")

    def _act(self, scene: Scene) -> None:
        """At most once per attempt; a second attempt would act again."""
        if not scene.acted:
            scene.acted = True
            self.effects[scene.name] += 1

    def _effect_seen(self) -> FunctionTool[..., Any]:
        @tool(effect=Effect.READ_ONLY)
        async def effect_seen(name: str) -> dict[str, list[int]]:
            """Look up how often an effect of this name happened."""
            return {"lines": [1] * self.effects[name_of(name)]}

        return effect_seen
