"""What every test run has."""

pytest_plugins = ["test.skip_list"]
