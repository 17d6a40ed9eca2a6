"""What ``tests/mutations.py`` takes out is there to be taken out, and so are the tests that are to notice."""

from pathlib import Path

import pytest

import lanner
from mutants.mutant import Mutation, mutated
from mutations import MUTATIONS

TESTS = Path(__file__).parent


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_what_is_taken_out_is_there(mutation: Mutation) -> None:
    package = Path(lanner.__file__).parent
    changed = [file for file, text in mutated(mutation, package).items() if text != file.read_text()]
    assert changed


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_the_tests_that_are_to_notice_are_there(mutation: Mutation) -> None:
    assert mutation.tests
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (TESTS / file).read_text() if name else (TESTS / file).is_file()


def test_each_thing_has_a_name_of_its_own() -> None:
    assert len({mutation.name for mutation in MUTATIONS}) == len(MUTATIONS)
