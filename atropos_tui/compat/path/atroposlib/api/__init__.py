"""`atroposlib.api`: the trajectory API as an ASGI application, `app`."""

from atropos_tui.compat.module_path import package_path

__path__ = package_path(__name__)

from .server import app

__all__ = ["app"]
