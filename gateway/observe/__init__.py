"""What the gateway tells of itself: logs, metrics, traces, health, alerts, and signs of life."""
