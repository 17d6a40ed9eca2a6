"""Finding what ``module:name`` stands for."""

import importlib
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeGuard

from ..errors import InvalidArgumentError
from ..queue.namespace import Namespace
from ..workflow.namespace import WorkflowNamespace
from ..workflow.workflow import Workflow
from .exits import MisuseError

PACKAGE: Final = Path(__file__).parent.parent
Target = WorkflowNamespace | Workflow[Any, Any]


def load_target(where: str) -> Target:
    """Import the module and take the namespace, or the workflow, from it. The current directory is looked in first.

    Raises:
        MisuseError: There is none there; the text says what is.
    """
    name, colon, path = where.partition(":")
    if not colon or not name or not path or "/" in name or name.startswith(".") or name.endswith(".py"):
        raise MisuseError(
            f"{where!r} does not say where the namespace is: give a module and a name in it, as in 'shop.workflows:ns'"
        )
    module = _import(name)
    found: Any = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise MisuseError(f"module {name!r} has no {path!r}{_what_it_has(module)}") from None
    if _is_target(found):
        return found
    kind = type(found).__name__
    raise MisuseError(f"{where!r} is no WorkflowNamespace or Workflow, but of type {kind}{_what_it_has(module)}")


def workflows_of(target: Target) -> Sequence[Workflow[Any, Any]]:
    """The workflows that it has, or is."""
    return target.workflows if isinstance(target, WorkflowNamespace) else (target,)


def queues_of(target: Target) -> Namespace:
    """The namespace of its queues."""
    return target.queues if isinstance(target, WorkflowNamespace) else target.queue.namespace


def _is_target(value: object) -> TypeGuard[Target]:
    return isinstance(value, (WorkflowNamespace, Workflow))


def _import(name: str) -> ModuleType:
    here = str(Path.cwd())
    # an installed command does not have it on its path, as `python -m` has
    if not {here, ""} & set(sys.path[:1]):
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            raise MisuseError(f"there is no module {error.name!r} in {here} or where Python looks") from None
        raise _broken(name, error) from error
    except InvalidArgumentError as error:
        # what is wrong says more than the way to it, and may be what stands in LANNER_REDIS_URL
        raise MisuseError(f"module {name!r} cannot be imported: {error}{_where(error)}") from error
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from error


def _where(error: Exception) -> str:
    """The last place of an error that is not in Lanner."""
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if not Path(frame.filename).is_relative_to(PACKAGE)][-1]
    return f' (file "{last.filename}", line {last.lineno})'


def _broken(name: str, error: BaseException) -> MisuseError:
    place = error.__traceback__
    # how it came to be imported is not what its author wants to read
    while place is not None and (
        "importlib" in place.tb_frame.f_code.co_filename or place.tb_frame.f_globals is globals()
    ):
        place = place.tb_next
    text = "".join(traceback.format_exception(type(error), error, place)).rstrip()
    return MisuseError(f"module {name!r} cannot be imported:\n\n{text}")


def _what_it_has(module: ModuleType) -> str:
    usable = [name for name, value in vars(module).items() if isinstance(value, WorkflowNamespace)]
    return "; it has " + ", ".join(f"'{module.__name__}:{name}'" for name in usable) if usable else ""
