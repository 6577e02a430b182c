"""`atroposlib.api.server`: the trajectory API as an ASGI application."""

from atropos_tui.trajectory_api.app import create_app

__all__ = ["app"]

app = create_app()
