"""How the tests of the documents read and run them."""

from pathlib import Path

import pytest

from support.documents import anchors_of, blocks_of, links_of, programs_of

DOCUMENT = """\
# A title: with `code`, and more!

See [there](other.md#part), [here](<#a-title>), and [that].

```python
x = await one()
```

```python
import asyncio
asyncio.run(main())
```

````text
```python
not = python
```
[no](link)
# no heading
````

```python
y = x
```

[that]: docs/that.md
## A title
"""

AWAITS = """
```python
import asyncio, os
async def twice(x): return 2 * x
```
and then
```python
print(os.environ["LANNER_REDIS_URL"], await twice(1))
```
"""

SAYS = """
```python
import asyncio, os

async def main():
    print(os.environ["LANNER_REDIS_URL"], 2)

asyncio.run(main())
```
"""


def test_blocks_carry_the_number_of_their_first_line() -> None:
    assert [(block.line, block.info) for block in blocks_of(DOCUMENT)] == [
        (6, "python"),
        (10, "python"),
        (15, "text"),
        (23, "python"),
    ]


def test_a_block_with_asyncio_run_is_a_program_and_the_others_are_one(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(DOCUMENT)
    alone, together = programs_of(document)
    assert alone.text == "\n" * 9 + "import asyncio\nasyncio.run(main())\n"
    assert together.text == "\n" * 5 + "x = await one()\n" + "\n" * 16 + "y = x\n"


def test_links_and_anchors_are_those_outside_of_blocks() -> None:
    assert list(links_of(DOCUMENT)) == ["other.md#part", "#a-title", "docs/that.md"]
    assert anchors_of(DOCUMENT) == {"a-title-with-code-and-more", "a-title"}


@pytest.mark.parametrize("document", [AWAITS, SAYS], ids=["await outside of a function", "a program"])
def test_python_runs_with_the_server_as_its_default(tmp_path: Path, document: str) -> None:
    path = tmp_path / "document.md"
    path.write_text(document)
    assert [program.run(tmp_path, "redis://here") for program in programs_of(path)] == ["redis://here 2\n"]


def test_an_error_names_the_document_s_line(tmp_path: Path) -> None:
    path = tmp_path / "document.md"
    path.write_text("# Wrong\n\n```python\nx = 1\n```\nand\n```python\nx.append(1)\n```\n")
    (program,) = programs_of(path)
    with pytest.raises(AssertionError, match=r'document.md", line 8, in <module>\n    x.append'):
        program.run(tmp_path, "redis://here")
