"""A private server for development, demo and tests: a real Redis or Valkey process on a Unix socket.

All processes that name the same directory share one server. It is started by the first and stopped after the last,
however each of them ends; its data stays in the directory.
"""

from .binary import Server, find_server
from .handle import EmbeddedHandle, open_embedded, temporary_server

__all__ = ["EmbeddedHandle", "Server", "find_server", "open_embedded", "temporary_server"]
