"""The shared agent core. It knows no platform: `adapters` and `gateway` build on it, never the other way round."""
