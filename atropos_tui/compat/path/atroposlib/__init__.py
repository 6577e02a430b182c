"""`atroposlib` 0.4.0, as atropos-tui provides it: the modules here show those of atropos_tui."""

from atropos_tui.compat.module_path import package_path

__path__ = package_path(__name__)
