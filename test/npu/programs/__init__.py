"""What the tests run on the emulated device; each prints one line of JSON."""
