"""Shows that the tests of the queue can fail: takes one thing at a time out of a copy of the package, and runs them.

``python tests/mutations.py`` runs all, ``python tests/mutations.py "a word"`` those whose name has it. It ends with 1
if a test passes all the same, or if there is nothing any more at the place that is to be taken out.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from mutants.claims import CLAIMS
from mutants.limits import LIMITS
from mutants.lives import LIVES
from mutants.marks import MARKS
from mutants.mutant import Mutation, mutated
from mutants.order import ORDER
from mutants.short_cuts import SHORT_CUTS_TAKEN
from mutants.wakes import WAKES

ROOT: Final = Path(__file__).parent.parent
TOO_LONG: Final = "60"  # what waits for ever without the thing that was taken out has failed by then
# other ones each time: the few that are always the same need not hold one for each thing
SEQUENCES: Final = {"LANNER_MODEL_EXAMPLES": "1500", "LANNER_MODEL_SHRINK": "0"}

MUTATIONS: Final = (*LIMITS, *CLAIMS, *ORDER, *WAKES, *LIVES, *MARKS, *SHORT_CUTS_TAKEN)


def run(package: Path, test: str) -> subprocess.CompletedProcess[str]:
    """Run a test with the copy in the package's place; a sequence that fails is enough, be it long."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", TOO_LONG]
    paths = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(ROOT / "tests" / test)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **SEQUENCES},
        capture_output=True,
        text=True,
        check=False,
    )


def judge(mutation: Mutation) -> list[str]:
    """What is wrong with a mutation: each of its tests has to fail, and for want of what was taken out."""
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / "lanner"
        shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("__pycache__"))
        try:
            texts = mutated(mutation, package)
        except LookupError as error:
            return [str(error)]
        for file, text in texts.items():
            file.write_text(text)
        wrongs: list[str] = []
        for test in mutation.tests:
            ended = run(package, test)
            if ended.returncode == 0:
                wrongs.append(f"{test} passes all the same")
            elif ended.returncode != 1 or "ScriptError" in ended.stdout:
                wrongs.append(f"{test} did not fail, but break:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return wrongs


def main(word: str) -> int:
    """Run the mutations whose name has the word, side by side. 1 if a test did not notice one, or there is none."""
    chosen = [mutation for mutation in MUTATIONS if word in mutation.name]
    unnoticed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutation, wrongs in zip(chosen, pool.map(judge, chosen), strict=True):
            unnoticed += bool(wrongs)
            files = ", ".join(test.partition("::")[0] for test in mutation.tests)
            lines = [f"{'UNNOTICED' if wrongs else 'noticed'}: {mutation.name} ({files})", *wrongs]
            sys.stdout.write("\n  ".join(lines) + "\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - unnoticed} of {len(chosen)} noticed\n")
    return int(unnoticed > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
