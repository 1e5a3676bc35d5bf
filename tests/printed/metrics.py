"""The page ``docs/metrics.md``, printed from the declarations of the metrics.

``python -m tests.printed.metrics > docs/metrics.md``; a test compares the two (tests/docs/test_generated.py).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from gateway.observe.metricscatalogue import LABELS, OURS, PROCESS

_HEAD = """# Metrics

Written by `python -m tests.printed.metrics > docs/metrics.md` from `gateway/observe/metricscatalogue.py`; a test compares that with what a
running gateway serves, and with `deploy/grafana-dashboard.json` and `deploy/alert-rules.yaml`.

`GET /metrics` answers in Prometheus' text format, or in OpenMetrics if asked for it. It is guarded as `/status` is: where there is an operators' key
([console.md](console.md#who-may-see-it)), Prometheus has to send it; without one, only this machine is answered.

```yaml
scrape_configs:
  - job_name: outspoken
    authorization: {credentials_file: /etc/prometheus/operator.key}   # only where there is an operators' key
    static_configs: [{targets: ["127.0.0.1:8787"]}]
```

Names and labels are part of the interface; the changelog tells when one changes. No label holds a chat, a person, a conversation or a turn. Should
there be more than a hundred models, endpoints or tools, further ones are counted as `other`. Counters begin at zero with the process.

`deploy/grafana-dashboard.json` is a dashboard for Grafana (import it, choose the data source), `deploy/alert-rules.yaml` are rules for Prometheus.
For what the gateway itself tells the operators in a chat, and for `/healthz`, `/readyz`, `/wellz` and `/status`, see [health.md](health.md). Traces are
there too.
"""


def markdown() -> str:
    """The page docs/metrics.md."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield _HEAD
    for title, metrics in (("The gateway", OURS), ("The process", PROCESS)):
        yield f"## {title}\n\n| metric | type | labels | what it is |\n|---|---|---|---|"
        for metric in metrics:
            labels = ", ".join(f"`{name}`" for name in metric.labels)
            yield f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.says} |"
        yield ""
    yield "A histogram is asked for by `…_bucket`, `…_sum` and `…_count`.\n"
    yield "## Labels\n\n| label | meaning |\n|---|---|"
    for name in sorted(LABELS):
        yield f"| `{name}` | {LABELS[name]} |"


if __name__ == "__main__":
    sys.stdout.write(markdown())
