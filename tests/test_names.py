"""Ids and nonces are nobody else's, whoever draws them."""

import os
from concurrent.futures import ThreadPoolExecutor

from lanner.queue.names import new_names

DRAWS = 1_000


def draw(count: int = DRAWS) -> list[tuple[str, str]]:
    return [new_names() for _ in range(count)]


def test_names_have_the_letters_that_ids_may_have_and_none_comes_twice() -> None:
    drawn = draw()
    assert {(len(job_id), len(nonce)) for job_id, nonce in drawn} == {(16, 8)}
    assert all((job_id + nonce).replace("-", "").replace("_", "").isalnum() for job_id, nonce in drawn)
    assert len({job_id for job_id, _ in drawn}) == DRAWS


def test_threads_draw_different_names() -> None:
    with ThreadPoolExecutor(8) as pool:
        drawn = [job_id for each in pool.map(draw, [DRAWS] * 8) for job_id, _ in each]
    assert len(set(drawn)) == 8 * DRAWS


def test_a_forked_child_draws_other_names_than_its_parent() -> None:
    draw(1)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, "\n".join(job_id for job_id, _ in draw(200)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        of_the_child = said.read().split("\n")
    os.waitpid(child, 0)
    assert len(of_the_child) == 200
    assert not set(of_the_child) & {job_id for job_id, _ in draw(200)}
