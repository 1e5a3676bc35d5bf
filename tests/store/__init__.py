"""Tests of the durable store, on both engines."""
