"""``python -m gateway``: the same as the ``outspoken`` command."""

from gateway.cli import main

main()
