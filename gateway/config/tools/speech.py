"""The sections ``[hearing]`` and ``[speaking]``: what turns speech into text, and text into speech."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, model_validator

from adapters.contract.settings import FromOutside, Secret, Section, Texts, Url, complaint, revealed

if TYPE_CHECKING:
    from agent_core.model.endpoints import Endpoint
    from agent_core.model.speech.terms import SpeechTerms

OPENAI_HOST = "api.openai.com"
NOBODY = "none"
"""As a model: it is not done, although there would be a default."""


class _Speech(Section):
    """What both have in common."""

    model: str = ""
    base_url: Url = ""
    api_key: Annotated[Secret | None, FromOutside("api_key_file")] = None
    """The key of the API. Not set: that of [model], if the address is the same."""
    api_key_file: Path | None = Field(default=None, examples=["speech.key"])
    """File that holds the key and nothing else."""
    command: Texts = ()
    stall_seconds: float = Field(default=45.0, ge=1, le=600)
    """Seconds of silence after which a try is given up; it is tried three times."""
    seconds: float = Field(default=150.0, ge=1, le=1800)
    """Seconds that it may take in all, with every try."""

    @model_validator(mode="after")
    def _one_way(self) -> _Speech:
        if self.command and (self.base_url or self.model):
            words = "there is both a command and an endpoint"
            raise complaint("command", words, "Set either command, or model and base_url.")
        return self

    def _terms(self, endpoint: Endpoint, usual: str, language: str, voice: str) -> SpeechTerms | None:
        """`endpoint` is the first model's; `usual` the model that is asked where nobody names one."""
        from agent_core.model.speech.terms import SpeechTerms

        url = self.base_url or endpoint.base_url
        same = url == endpoint.base_url
        given = endpoint.credentials[0].secret if same else ""
        model = self.model or (usual if endpoint.label.partition(":")[0] in (OPENAI_HOST, "rehearsal") else "")
        if model == NOBODY or not (self.command or model):
            return None
        return SpeechTerms(
            command=self.command, url=url, model=model, key=revealed(self.api_key) or given,
            headers=endpoint.headers if same else {}, language=language, voice=voice,
            stall_seconds=self.stall_seconds, seconds=self.seconds,
        )  # fmt: skip


class Hearing(_Speech):
    """Speech to text: voice messages, and other sound that people send; see docs/voice.md."""

    model: str = Field(default="", examples=["whisper-1"])
    """Model that transcribes. Empty: gpt-4o-mini-transcribe if [model] asks api.openai.com, else nobody; none: nobody in any case."""
    base_url: Url = Field(default="", examples=["http://127.0.0.1:8080/v1"])
    """Address of the API that has /audio/transcriptions. Empty: as in [model]."""
    language: str = Field(default="", max_length=20, examples=["de"])
    """Language that people speak (ISO 639-1). Empty: whoever listens finds out."""
    command: Texts = Field(default=(), examples=[["whisper-cli", "-nt", "-np", "-m", "base.bin", "{wav}"]])
    """Program that transcribes in the endpoint's place, with its arguments: {file} is the sound as it came, {wav} the same as WAV
    (16 kHz, by ffmpeg). What it writes to its standard output is the text."""

    def terms(self, endpoint: Endpoint) -> SpeechTerms | None:
        """Who listens; None: nobody. `endpoint` is the first model's."""
        return self._terms(endpoint, "gpt-4o-mini-transcribe", self.language, "")


class Speaking(_Speech):
    """Text to speech: the tool speak; see docs/voice.md."""

    model: str = Field(default="", examples=["gpt-4o-mini-tts"])
    """Model that speaks. Empty: nobody speaks, unless there is a command."""
    base_url: Url = Field(default="", examples=["http://127.0.0.1:8880/v1"])
    """Address of the API that has /audio/speech. Empty: as in [model]."""
    voice: str = Field(default="alloy", min_length=1, max_length=100)
    """Its voice."""
    command: Texts = Field(default=(), examples=[["piper", "-m", "en_GB-alba-medium.onnx", "-f", "{out}"]])
    """Program that speaks in the endpoint's place, with its arguments. It reads the text from its standard input, and writes the sound to
    {out}, or to its standard output."""

    @property
    def on(self) -> bool:
        """Somebody speaks."""
        return bool(self.command) or self.model not in ("", NOBODY)

    def terms(self, endpoint: Endpoint) -> SpeechTerms | None:
        """Who speaks; None: nobody. `endpoint` is the first model's."""
        return self._terms(endpoint, "", "", self.voice)
