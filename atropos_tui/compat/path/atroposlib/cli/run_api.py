"""`python -m atroposlib.cli.run_api`, or `run-api`: the trajectory API."""

import argparse
import sys

from atropos_tui.trajectory_api.command import main as serve


def main() -> None:
    """Serve until a signal comes. `--reload` is taken and has no effect."""
    parser = argparse.ArgumentParser(description="The trajectory API.")
    parser.add_argument("--reload", action="store_true", help="no effect")
    _, arguments = parser.parse_known_args()
    sys.exit(serve(arguments))


if __name__ == "__main__":
    main()
