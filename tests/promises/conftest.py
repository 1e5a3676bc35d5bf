"""One gateway for all that is tried here: it is what people share, too."""

from __future__ import annotations

import base64
from collections.abc import Generator

import pytest

from tests.promises.user import User, running

HOOK_SECRET = b"a secret of thirty-two bytes, so."
SETTINGS = """
[server]
share_links = "anyone"
max_body_bytes = 2_000_000
[tools]
approval = ["delete_file"]
[hooks.builds]
prompt = "A build has ended."
session = "builds"
secret_files = ["builds.secret"]
per_minute = 6
body_bytes = 2_000
"""


@pytest.fixture(scope="session")
def user(tmp_path_factory: pytest.TempPathFactory) -> Generator[User]:
    home = tmp_path_factory.mktemp("promises")
    secret = home / "builds.secret"
    secret.write_text(f"whsec_{base64.b64encode(HOOK_SECRET).decode()}\n")
    secret.chmod(0o600)
    with running(home, SETTINGS) as user:
        yield user
