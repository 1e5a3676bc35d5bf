"""Settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A loaded machine is slow at times; that is no defect of what is tested.
settings.register_profile("outspoken", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("outspoken")
