"""Runs environment files that were written for `atroposlib`, unedited.

`path/` holds a package named `atroposlib` whose modules show ours. It is on the module path only where
`module_path.enable` was called: in workers, in what `atropos-tui check` and `atropos-tui run` load, and in the
processes that these start.
"""
