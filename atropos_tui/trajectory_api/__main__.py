import sys

from atropos_tui.trajectory_api.command import main

sys.exit(main())
