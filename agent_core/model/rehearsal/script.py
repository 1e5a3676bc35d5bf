"""What the rehearsal model replies: plain requests done with the tools on offer, faults on request. Pure and deterministic."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

from agent_core.model.rehearsal.conversation import RehearsalRequest
from agent_core.model.rehearsal.faults import FAULTS, FINISHED, fault_named, listed
from agent_core.model.rehearsal.programs import for_programs
from agent_core.model.rehearsal.wire import EndReply, PlayedCall, Say, Script, Step
from agent_core.text.patterns import late

PLAINLY = "Rehearsal – no AI model is configured. I follow a script, the tools and the recovery are real."
CAN = """\
- `write notes.txt: buy milk`, `append to notes.txt: and bread`, `read notes.txt`, `edit notes.txt: replace milk with tea`, `delete notes.txt`
- `list files`, `send me notes.txt`, `search for tea`, `fetch https://example.org`, `search the web for tea` (if an engine is configured)
- `transcribe this`, `what is in this PDF` (of a file that you attach), `say aloud: good morning` (if it is set up to speak)
- `run: python3 --version`, `run the tests in this archive`, `make a chart of this CSV` (where commands can be run)
- `remember that my dog is called Rex`, `remember as tea: milk, no sugar`, `forget tea`, `what do you remember (about tea)`
- `remember for this chat: we meet on Mondays`, `remember for everybody as hours: 9 to 5` (if you may), `todo: tidy up, write home`
- `remind me in 1 minute to drink tea`, `schedule every day 9:00: write a long answer`, `list reminders`, `cancel reminder 1`, `my time zone is Europe/Berlin`
- `in the background: count to 30 slowly`, `send to NAME: hello` (chats of `[send] allow`)
- `count to 30 slowly`, `write a long answer`, `think`, `draw`
- for programs: `call TOOL {…}` (or words of a tool's name), `tool_choice`, `response_format`
- several in one message, joined by “ and then ”"""

RUN_TESTS = """\
archive=$(ls -t *.zip *.tar.gz *.tgz *.tar */*.zip */*.tar.gz 2>/dev/null | head -n 1)
[ -n "$archive" ] || { echo "There is no archive here."; exit 1; }
echo "Unpacking $archive"
rm -rf unpacked && mkdir unpacked && cd unpacked
case "../$archive" in *.zip) python3 -m zipfile -e "../$archive" . ;; *) tar -xf "../$archive" ;; esac || exit 1
if python3 -c 'import pytest' 2>/dev/null; then python3 -m pytest -q; else python3 -m unittest discover -v; fi"""
DRAW_CHART = """\
import csv, glob, os, struct, sys, unicodedata, zlib
found = sorted(glob.glob('*.csv') + glob.glob('*/*.csv'), key=os.path.getmtime)
if not found:
    sys.exit('There is no CSV file here.')
def number(text):
    try:
        return float(text)
    except ValueError:
        return None
rows = [(row[0], number(row[-1])) for row in csv.reader(open(found[-1], encoding='utf-8-sig')) if len(row) > 1]
rows = [row for row in rows if row[1] is not None and abs(row[1]) < 1e300][:40]
if not rows:
    sys.exit(found[-1] + ' has no column of numbers.')
glyphs = dict(zip('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-.+ ?', (
    '75557 26227 71747 71717 55711 74717 74757 71122 75757 75717 25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 '
    '57755 65555 25552 65644 25563 65655 34216 72222 55557 55552 55775 55255 55222 71247 00700 00002 02720 00000 71202').split()))
wide, high = 640, 24 * len(rows) + 8
lines = [bytearray(b'\\xff' * wide * 3) for _ in range(high)]
def box(x, y, w, h, colour):
    w = min(w, wide - x)
    for line in lines[y:y + h] if w > 0 else ():
        line[x * 3:(x + w) * 3] = bytes(colour) * w
def write(x, y, words):
    for sign in unicodedata.normalize('NFKD', words).upper():
        if unicodedata.combining(sign):
            continue
        for n, bits in enumerate(glyphs.get(sign, glyphs['?'])):
            for place in range(3):
                if int(bits) >> (2 - place) & 1:
                    box(x + 2 * place, y + 2 * n, 2, 2, (51, 51, 51))
        x += 8
most = max(abs(value) for _, value in rows) or 1
for n, (name, value) in enumerate(rows):
    write(4, 24 * n + 8, name[:18])
    box(160, 24 * n + 4, round(abs(value) / most * 380), 16, (68, 119, 170))
    write(166 + round(abs(value) / most * 380), 24 * n + 8, f'{value:g}')
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
with open('chart.png', 'wb') as file:
    file.write(b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', wide, high, 8, 2, 0, 0, 0)))
    file.write(chunk(b'IDAT', zlib.compress(b''.join(b'\\0' + bytes(line) for line in lines))) + chunk(b'IEND', b''))
print(f'{len(rows)} bars of {found[-1]} are in chart.png')"""
"""What the rehearsal model knows of programming."""
BEGUN_EARLIER = "It was begun here earlier; no person wrote this."

Task = tuple[str, dict[str, object], str]
"""(tool, arguments, what is said beside the call)"""
_RULES: tuple[tuple[str, Callable[[re.Match[str]], Task]], ...] = (
        (r"^(?:please )?write (?:a file )?([\w./-]+)\s*:\s*(.*)$", lambda m: ("write_file", {"path": m[1], "content": m[2] + "\n"}, f"I'll write {m[1]}.")),
        (r"^(?:please )?append to ([\w./-]+)\s*:\s*(.*)$", lambda m: ("append_file", {"path": m[1], "content": m[2] + "\n"}, f"I'll add that to {m[1]}.")),
        (r"^(?:please )?(?:read|show)(?: me)?(?: the file)? ([\w./-]+\.\w+)\W*$", lambda m: ("read_file", {"path": m[1]}, f"I'll read {m[1]}.")),
        (r"^(?:please )?edit ([\w./-]+)\s*:\s*replace (.+?) with (.*)$", lambda m: ("edit_file", {"path": m[1], "old": m[2], "new": m[3]}, f"I'll edit {m[1]}.")),
        (r"^(?:please )?delete ([\w./-]+)$", lambda m: ("delete_file", {"path": m[1]}, f"I'll delete {m[1]}.")),
        (r"^(?:please )?(?:list|show)(?: me)?(?: all| the| my)* files\W*$", lambda _: ("list_files", {}, "I'll look into the folder.")),
        (r"^(?:please )?search the web for (.+)$", lambda m: ("search_web", {"query": m[1].strip()}, "I'll search the web.")),
        (r"^(?:please )?search (?:for )?(.+)$", lambda m: ("search_files", {"query": m[1].strip()}, "I'll search the files.")),
        (r"^(?:please )?(?:fetch|read|open) (https?://\S+)\W*$", lambda m: ("fetch_url", {"url": m[1]}, "I'll read that page.")),
        (r"^(?:please )?remember for (?:us|(?:everybody in )?this chat)(?: that)?:?\s+(.+)$", lambda m: ("remember", {"text": m[1].strip(), "for_chat": True}, "I'll keep that for this chat.")),
        (r"^(?:please )?remember for everybody as ([\w.-]+)\s*:\s*(.+)$", lambda m: ("remember_for_everybody", {"name": m[1], "text": m[2].strip()}, "I'll keep that for everybody.")),
        (r"^(?:please )?remember as ([\w.-]+)\s*:\s*(.+)$", lambda m: ("remember", {"name": m[1], "text": m[2].strip()}, "I'll keep that.")),
        (r"^(?:please )?forget ([\w.-]+)\W*$", lambda m: ("forget", {"name": m[1]}, "I'll forget that.")),
        (r"^(?:please )?remember(?: that)?:?\s+(.+)$", lambda m: ("remember", {"text": m[1].strip()}, "I'll keep that.")),
        (r"^what do you remember(?: about (.+?))?\W*$", lambda m: ("recall", {"query": m[1]} if m[1] else {}, "I'll look it up.")),
        (r"^(?:please )?remind me ((?:in|at|on|tomorrow|today|every|next|mon|tue|wed|thu|fri|sat|sun|\d).*?) (?:to|that|about|of) (.+)$", lambda m: ("remind", {"when": m[1].strip(" ,:"), "what": m[2].strip()}, "I'll set it.")),
        (r"^(?:please )?remind me (?:to|that|about|of) (.+?) ((?:in|at|on|tomorrow|today|every|next) .+)$", lambda m: ("remind", {"when": m[2].strip(), "what": m[1].strip()}, "I'll set it.")),
        (r"^(?:please )?schedule (.+?)\s*:\s+(.+)$", lambda m: ("schedule", {"when": m[1].strip(), "prompt": m[2].strip()}, "I'll schedule it.")),
        (r"^(?:please )?(?:list|show)(?: me)?(?: all| the| my)* (?:reminders|scheduled)\W*$", lambda _: ("list_scheduled", {}, "I'll look what is set.")),
        (r"^(?:please )?(cancel|pause|resume) (?:reminder|scheduled|number)? ?(\d{1,6})\W*$", lambda m: ("cancel_scheduled", {"number": int(m[2]), "action": m[1].lower()}, "I'll do that.")),
        (r"^(?:please )?(?:do )?in the background\s*:\s+(.+)$", lambda m: ("start_task", {"title": m[1].strip()[:40], "instructions": m[1].strip()}, "I'll begin it.")),
        (r"^(?:please )?send me (?:the file )?([\w./-]+\.\w+)(?:\W.*)?$", lambda m: ("send_file", {"path": m[1]}, "Here it is.")),
        (r"^(?:please )?send to ([\w-]+)\s*:\s+(.+)$", lambda m: ("send_message", {"to": m[1], "text": m[2].strip()}, "I'll send it.")),
        (r"^(?:please )?my time ?zone is ([\w/+-]+)\W*$", lambda m: ("set_timezone", {"zone": m[1]}, "I'll keep that.")),
        (r"^todo\s*:\s*(.+)$", lambda m: ("todo", {"items": [{"text": t.strip(), "state": "pending"} for t in m[1].split(",") if t.strip()]}, "I'll write the list.")),
        (r"^(?:please )?(?:say aloud|speak)\s*:\s*(.+)$", lambda m: ("speak", {"text": m[1].strip()}, "I'll say it.")),
        (r"^(?:please )?run\s*:\s*(.+)$", lambda m: ("run_command", {"script": m[1].strip()}, "I'll run that.")),
        (r"^(?:please )?(?:run|start) (?:all )?the tests in (?:this|the|that|my) archive\b.*$", lambda _: ("run_command", {"script": RUN_TESTS, "wait_seconds": 2}, "I'll unpack it and run its tests.")),
        (r"^(?:please )?(?:make|draw) (?:me )?a chart of (?:this|the|that|my) (?:csv|table)\b.*$", lambda _: ("run_command", {"argv": ["python3", "-c", DRAW_CHART]}, "I'll draw it.")),
)  # fmt: skip


_ABOUT_FILES = late(
    r"^(?:please )?(?:transcribe (?:this|it)|what (?:is|does it say) in (?:this|the|that|my) (?:pdf|file|document|sheet|recording|sound))\W*",
    re.IGNORECASE,
)
_HEAD = late(r"^\[[^\]]*\]\s+")
"""What the gateway says before a prompt of which nobody wrote anything just now."""


_HELP = ("help", "what can you do", "?")
_ON = ("continue", "go on", "retry")
_SPEAKER = late(r"[^\n:]{1,64}: +(?=\S)")
"""In a group the words begin with whose they are."""


def _without_speaker(words: str) -> str:
    """The words as they were written, if a group's speaker stands before something that can be asked for here."""
    bare = _HEAD.sub("", words)
    found = _SPEAKER.match(bare)
    if found is None or _task(bare) is not None:
        return words
    rest = bare[found.end() :]
    alone = rest.lower().strip(" ?.!") in (*_HELP, *_ON)
    return rest if alone or rest.lower().startswith("rehearse") or _task(rest) is not None else words


def plan(conversation: RehearsalRequest) -> Script:
    """The reply to a request."""
    conversation = replace(conversation, words=_without_speaker(conversation.words))
    words = conversation.words
    if words.startswith("[") and BEGUN_EARLIER in words:
        return _followed(words)
    words = _HEAD.sub("", words)
    if words.lower().startswith("rehearse"):
        return _rehearsed(conversation)
    if (reply := for_programs(replace(conversation, words=words))) is not None:
        return reply
    tasks = [task for part in re.split(r"(?<!\s)\s+and then\s+", words) if (task := _task(part)) is not None]
    if "send_file" in conversation.tools and any(
        task[1].get("argv") == ["python3", "-c", DRAW_CHART] for task in tasks
    ):
        tasks.append(("send_file", {"path": "chart.png"}, "Here it is."))
    if tasks:
        return _work(conversation, tasks)
    if _ABOUT_FILES.match(words.strip()):
        return _told_of_files(conversation.attached)
    return _talk(conversation)


def _rehearsed(conversation: RehearsalRequest) -> Script:
    found = fault_named(conversation.words)
    if found is None:
        return (
            Say(f"These can be rehearsed (add “forever” to see one that is not mended):\n\n{listed()}"),
            EndReply("stop"),
        )
    name, forever = found
    if not conversation.tools and "no more tools can be called" in conversation.advice:
        return (Say("I tried, and it did not get anywhere."), EndReply("stop"))
    fault = FAULTS[name]
    faulty = forever or conversation.asked <= fault.times
    return fault.acts(conversation) if faulty else fault.mended(conversation)


def told_to_its_end(conversation: RehearsalRequest, script: Script) -> bool:
    """Whether the story that the person asked for is over with this reply; asked for again, it is told from its beginning."""
    words = _without_speaker(conversation.words)
    found = fault_named(words) if words.lower().startswith("rehearse") else None
    acting = found is not None and (found[1] or conversation.asked <= FAULTS[found[0]].times)
    return not acting and not any(isinstance(step, PlayedCall) for step in script)


def _task(part: str) -> Task | None:
    for pattern, make in _RULES:
        found = re.match(pattern, part.strip(), re.IGNORECASE | re.DOTALL)
        if found is not None:
            return make(found)
    return None


def _work(conversation: RehearsalRequest, tasks: list[Task]) -> Script:
    """One tool after the other, then what came of it."""
    done = len(conversation.results)
    if done < len(tasks):
        tool, arguments, words = tasks[done]
        if tool not in conversation.tools:
            return (
                Say(f"For this I would need the tool {tool}, which is not offered here. Nothing was done."),
                EndReply("stop"),
            )
        return (Say(words), PlayedCall(tool, json.dumps(arguments, ensure_ascii=False)), EndReply("tool_calls"))
    shown = "\n\n".join(_shown(task[0], result) for task, result in zip(tasks, conversation.results, strict=False))
    return (Say(shown), EndReply("stop"))


def _shown(tool: str, result: str) -> str:
    if tool in ("read_file", "list_files", "search_files", "recall", "todo"):
        return f"This is what came back:\n\n```\n{result.strip()[:3000]}\n```"
    return result.strip()[:3000]


def _followed(words: str) -> Script:
    """What came of something that was begun in an earlier turn."""
    title, _, rest = words[1:].partition(f". {BEGUN_EARLIER}")
    _, _, came = rest.partition("\n\n")
    shown = "\n".join(line for line in came.strip().splitlines() if not line.startswith("----- "))[-3000:].strip()
    return (Say(f"{title}." + (f"\n\n```\n{shown}\n```" if shown else "")), EndReply("stop"))


def _told_of_files(attached: str) -> Script:
    """What the gateway has read in them, as a model would say it."""
    if not attached:
        return (Say("There is no file in this conversation that I could look into."), EndReply("stop"))
    begins = next((mark for mark in ("This is its text:\n", "It begins like this:\n") if mark in attached), "")
    if not begins:
        return (Say(f"This is what I was told of it:\n\n{attached}"), EndReply("stop"))
    shown = attached.partition(begins)[2].rpartition("\n(")[0].strip()[:1500]
    return (Say("This is in it:\n\n" + "\n".join(f"> {line}" for line in shown.splitlines())), EndReply("stop"))


def _talk(conversation: RehearsalRequest) -> Script:
    words = conversation.words
    count = re.search(r"count to (\d{1,3})", words.lower())
    if count:
        numbers = "".join(f"{n}{'.' if n == int(count[1]) else ', '}" for n in range(1, int(count[1]) + 1))
        rest = (
            numbers[len(conversation.said) :]
            if conversation.said and numbers.startswith(conversation.said)
            else numbers
        )
        return (Say(rest, slow=True), EndReply("stop"))
    if "long answer" in words.lower():
        return (Say(_LONG_ANSWER), EndReply("stop"))
    if words.lower().strip(" ?.!") in _HELP:
        text = f"{PLAINLY}\n\n**Real work**\n\n{CAN}\n\n**Faults to rehearse**\n\n{listed()}"
        return (Say(text), EndReply("stop"))
    if words.lower().strip(" .!") in _ON:
        return FINISHED
    quoted = " ".join(words.split())[:120]
    opening: Step = Say(
        f"You wrote “{quoted}”. {PLAINLY}\n\nThese I can do:\n\n{CAN}\n\nAnd say `rehearse stall in tool call` to see what happens when a model fails. `help` lists everything."
    )
    return (opening, EndReply("stop"))


_LONG_ANSWER = """\
# A long answer

It has *emphasis*, **strong words**, `code`, and a [link](https://example.org/).

## A list

1. First
2. Second
   - with an inner point
   - and another one
3. Third

## Some code

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

## A table

| what | how many |
| --- | --- |
| apples | 3 |
| pears | 12 |

> And a quotation, to end with.
"""
