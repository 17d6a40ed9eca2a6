"""What is taken out of the queue, one thing at a time, to see that its tests can fail: ``tests/mutations.py``."""
