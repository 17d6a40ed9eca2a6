"""``lanner demo``: an order survives the death of its worker."""

from .play import run_demo

__all__ = ["run_demo"]
