"""The examples in the docstrings of the serializer and of codecs run as they are shown."""

import doctest
from types import ModuleType

import pytest

from lanner.workflow import codec, serializer
from lanner.workflow.serializer import foreign, registry


@pytest.mark.parametrize("module", [serializer, registry, foreign, codec], ids=lambda module: module.__name__)
def test_the_examples_of_a_module_run(module: ModuleType) -> None:
    names = {name: getattr(serializer, name) for name in serializer.__all__}
    ran = doctest.testmod(module, extraglobs=names)
    assert ran.attempted > 0
    assert ran.failed == 0
