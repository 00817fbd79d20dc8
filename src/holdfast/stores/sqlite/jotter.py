"""How do calls that want nothing but records get them, without a transaction?

All that come at the same time are kept with one write. Who waited together goes on together: the same few
lines of code for many calls in a row cost far less than one call after another.
"""

import asyncio
from collections.abc import Callable

from holdfast.model.errors import StoreError
from holdfast.stores.sql.claim import claim
from holdfast.stores.sql.outcome import note_outcome
from holdfast.stores.sqlite.job import Answer, Job, all_failed, deliver
from holdfast.stores.sqlite.plain import ALONE, MISSED
from holdfast.stores.sqlite.spool import Spool

MOST = 256
"""Jobs kept with one write."""
GATHERING = 3
"""Turns of the loop for which a batch that still grows is waited for, where the last one was of several."""


class Jotter:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, spool: Spool, otherwise: Callable[[Job], None]
    ) -> None:
        """`otherwise` takes what needs a transaction after all."""
        self._loop, self._spool, self._otherwise = loop, spool, otherwise
        self._jobs: list[Job] = []
        self._gathering = 0
        self._written = False  # in this turn of the loop

    @property
    def idle(self) -> bool:
        return not self._jobs

    def add(self, job: Job) -> None:
        """One that comes alone need not wait for others."""
        if not self._gathering and not self._written and not self._jobs:
            self._written = True
            self._loop.call_soon(self._turned)
            self._write([job])
            return
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self._loop.call_soon(self._turn, 0, self._gathering)

    def finish(self) -> None:
        """Whatever waits, now."""
        jobs, self._jobs = self._jobs, []
        if jobs:
            self._write(jobs)

    def _turned(self) -> None:
        self._written = False

    def _turn(self, seen: int, patience: int) -> None:
        jobs = self._jobs
        if patience and seen < len(jobs) < MOST:
            self._loop.call_soon(self._turn, len(jobs), patience - 1)
            return
        self._gathering = GATHERING if len(jobs) > 1 else 0
        self.finish()

    def _write(self, jobs: list[Job]) -> None:
        spool, answers, missed = self._spool, list[Answer](), list[Job]()
        if not spool.begin():
            missed = jobs
        else:
            try:
                for job in jobs:
                    answer = ALONE[job.run](spool, *job.arguments)
                    if answer is MISSED:
                        missed.append(job)
                    else:
                        answers.append((job.future, answer, None))
                spool.keep()
            except StoreError as error:
                spool.drop()
                deliver(all_failed(jobs, error))
                return
            except Exception:  # one of them is not what it should be; which, the ordinary way finds out
                spool.drop()
                answers, missed = [], jobs
        deliver(answers)
        spool.recent.call()
        for job in missed:
            self._pass_on(job)

    def _pass_on(self, job: Job) -> None:
        if job.run is claim and job.future.cancelled():
            return  # what it might have taken was given back already
        try:
            if job.run is note_outcome and job.arguments[1] == "outcome":
                self._spool.sync()  # its intent may be here: no power cut must part them
            self._otherwise(job)
        except StoreError as error:
            deliver(all_failed([job], error))
