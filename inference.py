"""One plan for one snapshot, as JSON: the program alpamayo_inference, from a checkout."""

import sys

from alpamayo_ros.cli.inference import main

if __name__ == "__main__":
    sys.exit(main())
