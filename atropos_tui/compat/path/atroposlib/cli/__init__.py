"""`atroposlib.cli`."""

from atropos_tui.compat.module_path import package_path

__path__ = package_path(__name__)
