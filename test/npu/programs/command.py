"""One of the product's command-line tools by its name: `command verify --device cpu`."""

from __future__ import annotations

import importlib
import sys

if __name__ == "__main__":
    tool = importlib.import_module(f"alpamayo_ros.cli.{sys.argv[1]}")
    sys.exit(tool.main(sys.argv[2:]))
