"""The daemon: the only place that puts core and adapters together."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - whoever starts it with an older one gets a sentence, not a traceback
    sys.exit(
        "outspoken needs Python 3.11 or newer, and this is Python %d.%d. Install a newer one, and start it with that: "  # noqa: UP031
        "python3.12 -m gateway" % sys.version_info[:2]
    )
