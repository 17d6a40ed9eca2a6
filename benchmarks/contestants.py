"""Who is measured, and the process that each runs in."""

import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
PEERS = HERE / "peers"
# interpreters and Node packages of the peers; made once, again when their requirements change
ENVIRONMENTS = HERE / ".peers"
LINE_LIMIT = 1 << 26


@dataclass(frozen=True)
class Contestant:
    """A peer, Lanner itself, or the machine.

    Attributes:
        name: What it is called in the results.
        script: Its adapter.
        requirements: The file of what it needs; None: the runner's own environment has it.
        variant: What the adapter is told besides.
    """

    name: str
    script: str
    requirements: str | None = None
    variant: str = ""


LANNER = Contestant("lanner", "lanner_peer.py")
LANNER_WORKFLOW = Contestant("lanner workflow", "lanner_workflow_peer.py")
MACHINE = Contestant("limit", "machine_peer.py")
DBOS = Contestant("dbos", "dbos_peer.py", "dbos.txt")
PEERS_ON_REDIS = (
    Contestant("toro-queue", "toro_peer.py", "toro.txt"),
    Contestant("streaq", "streaq_peer.py", "streaq.txt"),
    Contestant("saq", "saq_peer.py", "saq.txt"),
    Contestant("arq", "arq_peer.py", "arq.txt"),
    Contestant("taskiq-redis", "taskiq_peer.py", "taskiq.txt"),
    Contestant("pydocket", "docket_peer.py", "docket.txt"),
    Contestant("bullmq (Python)", "bullmq_peer.py", "bullmq.txt"),
    Contestant("bullmq (Node)", "bullmq_peer.mjs", "package.json"),
    Contestant("groupmq (Node)", "groupmq_peer.mjs", "package.json"),
    Contestant("groupmq (Node), plain", "groupmq_peer.mjs", "package.json", "plain"),
)


class UnavailableError(Exception):
    """A contestant cannot be had, or has no such thing, or failed; the text says why."""


def prepare(contestants: Iterable[Contestant]) -> dict[str, str]:
    """Install what the contestants need; for those that cannot be installed, why."""
    needed = sorted({each.requirements for each in contestants if each.requirements})
    with ThreadPoolExecutor(2) as pool:
        failures = dict(zip(needed, pool.map(_install, needed), strict=True))
    return {each.name: why for each in contestants if each.requirements and (why := failures[each.requirements])}


def _install(requirements: str) -> str:
    """Make an environment; why it cannot be made, or nothing."""
    source = PEERS / requirements
    folder = ENVIRONMENTS / Path(requirements).stem
    stamp, wanted = folder / "made-from", hashlib.sha256(source.read_bytes()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if requirements == "package.json":
        if shutil.which("npm") is None:
            return "no npm on PATH"
        shutil.copy(source, folder)
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
        # adapters are found by Node next to the packages they import
        for module in PEERS.glob("*.mjs"):
            (folder / module.name).symlink_to(module)
    else:
        venv.create(folder, with_pip=True)
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--requirement", str(source)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - built above
    if ran.returncode:
        return (ran.stderr or ran.stdout).strip().splitlines()[-1][:300]
    stamp.write_text(wanted)
    return ""


class Player:
    """A contestant's process."""

    def __init__(self, contestant: Contestant, process: asyncio.subprocess.Process) -> None:
        self.contestant = contestant
        self._process = process

    @classmethod
    async def start(cls, contestant: Contestant, url: str) -> Self:
        """Start it.

        Raises:
            UnavailableError: It does not start.
        """
        folder = ENVIRONMENTS / Path(contestant.requirements or "").stem
        if contestant.script.endswith(".mjs"):
            # symbolic links are kept, so that packages are looked for beside the link
            command = ["node", "--preserve-symlinks", "--preserve-symlinks-main", str(folder / contestant.script), url]
            command += [contestant.variant] if contestant.variant else []
        else:
            python = str(folder / "bin" / "python") if contestant.requirements else sys.executable
            command = [python, str(PEERS / contestant.script), url]
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if os.environ.get("BENCH_STDERR") else asyncio.subprocess.DEVNULL,
            limit=LINE_LIMIT,
        )
        player = cls(contestant, process)
        await player.answer(30)
        return player

    async def call(self, what: str, within: float = 60, **options: Any) -> Any:
        """Have it do something.

        Raises:
            UnavailableError: It cannot, failed, or did not end in time.
        """
        self.send(what, **options)
        return await self.answer(within)

    def send(self, what: str, **options: Any) -> None:
        """Have it do something; ``answer`` gives what came of it."""
        if self._process.stdin is None:
            raise UnavailableError("it has no input")
        self._process.stdin.write(json.dumps({"call": what, **options}).encode() + b"\n")

    async def answer(self, within: float) -> Any:
        """What came of the last call."""
        if self._process.stdout is None:
            raise UnavailableError("it has no output")
        try:
            line = await asyncio.wait_for(self._process.stdout.readline(), within)
        except TimeoutError:
            raise UnavailableError(f"did not end within {within:g} s") from None
        if not line:
            raise UnavailableError("its process ended")
        answer = json.loads(line)
        if "ok" in answer:
            return answer["ok"]
        raise UnavailableError(answer.get("unsupported") or answer["error"])

    async def stop(self) -> None:
        """End the process."""
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
