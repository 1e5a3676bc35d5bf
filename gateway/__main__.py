"""``python -m gateway``: the same as the ``outspoken`` command."""

from gateway.cli.command import main

main()
