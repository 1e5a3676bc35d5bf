"""Programs that turn speech into text, text into speech, and sound of one kind into another. Runs in a worker.

The worker is killed with all that it has begun when it takes too long, is not wanted any more, or when the gateway ends, however that ends. What
such a program writes goes into files, whose length is limited.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent_core.jsonvalue import Json
from agent_core.workers.confines import MIB, SURROUNDINGS, Confines

CONFINES = Confines(
    memory_bytes=-1,
    file_bytes=256 * MIB,
    open_files=1024,
    processes=True,
    environment=(*SURROUNDINGS, "HOME", "XDG_CACHE_HOME", "CUDA_VISIBLE_DEVICES"),
)
"""A model takes the memory that it takes, and the programs are the operator's own. -1: no limit."""
TARGET = "agent_core.model.speech.program:work"
FILE, WAV, OUT = "{file}", "{wav}", "{out}"
"""In a command: where the sound lies, the same as WAV (16 kHz, one channel), where a sound is to be written."""
TEXT_BYTES = 1_000_000
SOUND_BYTES = 20 * MIB
_PLACE = "outspoken-speech-"
LEFT_SECONDS = 3600


class ProgramFailed(Exception):
    """It has no result; the words go on from "…, because"."""


def work(request: dict[str, Json], blob: bytes) -> Json:
    """A job: ``command`` on the sound ``blob`` (``ending`` is its file's), or on the text ``text``. Gives ``text``, or ``sound`` in base64 if ``sound`` is
    wanted, or ``why`` there is nothing."""
    command = request["command"]
    assert isinstance(command, list)
    _swept()
    folder = Path(tempfile.mkdtemp(prefix=_PLACE))
    try:
        return _done([str(one) for one in command], request, blob, folder)
    except ProgramFailed as error:
        return {"why": str(error)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _done(command: list[str], request: dict[str, Json], blob: bytes, folder: Path) -> Json:
    until = time.monotonic() + float(str(request["seconds"]))
    file, wav, out = folder / f"sound{request.get('ending', '')}", folder / "sound.wav", folder / "spoken.wav"
    if blob:
        file.write_bytes(blob)
    if WAV in " ".join(command) and file != wav:
        ran(["ffmpeg", *_CAREFUL, "-i", str(file), "-ac", "1", "-ar", "16000", str(wav)], "", folder, until)
    places = {FILE: str(file), WAV: str(wav), OUT: str(out)}
    filled: list[str] = []
    for one in command:
        for mark, place in places.items():
            one = one.replace(mark, place)  # noqa: PLW2901
        filled.append(one)
    said = ran(filled, str(request.get("text", "")), folder, until)
    if request.get("sound") is not True:
        return {"text": said[:TEXT_BYTES].decode("utf-8", "replace").strip()}
    sound = out.read_bytes() if out.is_file() else said
    if into := str(request.get("into", "")):
        sound = _turned(sound, into, folder, until)
    if not sound or len(sound) > SOUND_BYTES:
        raise ProgramFailed("its program gave no sound" if not sound else "its program gave too much of it")
    return {"sound": base64.b64encode(sound).decode()}


_CAREFUL = ("-nostdin", "-v", "error", "-y", "-protocol_whitelist", "file")
"""A sound may name other files and addresses to be read in its place."""


def _turned(sound: bytes, into: str, folder: Path, until: float) -> bytes:
    """A sound as Ogg with Opus, if there is what does that; else as it is."""
    if shutil.which("ffmpeg") is None or not sound:
        return sound
    given, made = folder / "given", folder / f"made{into}"
    given.write_bytes(sound)
    with suppress(ProgramFailed):
        ran(["ffmpeg", *_CAREFUL, "-i", str(given), "-c:a", "libopus", "-b:a", "32k", str(made)], "", folder, until)
        return made.read_bytes()
    return sound


def ran(command: Sequence[str], text: str, folder: Path, until: float) -> bytes:
    """What a program writes to its standard output. Raises `ProgramFailed`."""
    output, errors = folder / "output", folder / "errors"
    name = Path(command[0]).name
    try:
        with output.open("wb") as to, output.open("rb") as from_, errors.open("wb") as trouble:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=to, stderr=trouble, cwd=folder)  # noqa: S603 - the operator's
            try:
                process.communicate(text.encode(), timeout=max(0.1, until - time.monotonic()))
            finally:
                process.kill()
                process.wait()
            if process.returncode:
                raise ProgramFailed(f"{name} failed ({_reason(process.returncode)})")
            return from_.read(SOUND_BYTES + 1)
    except subprocess.TimeoutExpired:
        raise ProgramFailed(f"{name} took too long") from None
    except FileNotFoundError:
        raise ProgramFailed(f"the program {name} is not installed") from None
    except OSError as error:
        raise ProgramFailed(f"{name} cannot be run ({error.strerror})") from error


def _reason(status: int) -> str:
    return f"exit status {status}" if status > 0 else f"ended by signal {-status}"


def _swept() -> None:
    """What a killed worker has left."""
    for one in Path(tempfile.gettempdir()).glob(f"{_PLACE}*"):
        with suppress(OSError):
            if time.time() - one.stat().st_mtime > LEFT_SECONDS:
                shutil.rmtree(one, ignore_errors=True)
