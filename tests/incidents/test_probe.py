import os, time
from pathlib import Path
import pytest
from tests.incidents import stages_chat, stages_home, stages_model
STAGES = {**stages_model.STAGES, **stages_chat.STAGES, **stages_home.STAGES}
CMDS = ["outspoken status", "outspoken triage", "outspoken triage gateway.log", "outspoken explain MESSAGE", "outspoken doctor", "/readyz"]

@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", sorted(STAGES))
async def test_probe(name: str, tmp_path: Path) -> None:
    began = time.monotonic()
    async with STAGES[name](tmp_path) as desk:
        staged = time.monotonic() - began
        with open("/tmp/probe_out.txt", "a") as out:
            out.write(f"\n######## {name} staged in {staged:.1f}\n")
            for c in CMDS:
                if "MESSAGE" in c and "MESSAGE" not in desk.named:
                    continue
                t = time.monotonic()
                try:
                    said = await desk.run(c)
                except Exception as e:
                    said = f"EXC {e!r}"
                out.write(f"$ {c} [{time.monotonic()-t:.1f}s]\n   {said}\n")
        
