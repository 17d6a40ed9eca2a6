import json

from lanner.queue.scripts.loader import load
from lanner.queue.spec import Spec
from support.servers import Server


def test_scripts_and_workers_agree_on_what_an_option_is_when_it_is_not_written(server: Server) -> None:
    source = load("cancel_job").text
    table = source[source.index("local RESULT_TTL") : source.index("local function readSpec")]
    with server.client() as client:
        answer = client("EVAL", f"{table}\nreturn cjson.encode(SPEC_DEFAULTS.__index)", 0)
    in_scripts = json.loads(answer)
    in_scripts["keep_failed"] = tuple(in_scripts["keep_failed"])
    assert in_scripts == {field: getattr(Spec(run=""), field) for field in in_scripts}
