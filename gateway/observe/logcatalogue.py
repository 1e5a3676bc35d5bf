"""The log events, as data: what each is called, when it is written, with which facts, and what to do about it. Pure.

Theory. A log line is an interface: people filter by names and fields, and `outspoken triage` groups by them. So there is one list
of both (the lines of a platform's adapter stand in its folder); ``docs/logs.md`` is printed from it (``python -m gateway.observe.logcatalogue > docs/logs.md``), and a test compares it with
every call in the source, name by name and field by field (tests/gateway/test_logcatalogue.py).

Rules of names. A field means the same in every event that has it. ``surface`` is where a turn was asked (``api``, ``telegram``, …);
``chat`` is one place where something is shown, by its whole address. A number's unit is in its name or in `FIELDS`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache

from adapters.contract.logevents import BUG as _BUG
from adapters.contract.logevents import DISK, LogEvent
from adapters.contract.logevents import LATER as _LATER
from adapters.contract.logevents import log_event as _e
from adapters.contract.platforms import Platform
from adapters.platforms import platforms

GENAI: Mapping[str, Mapping[str, str]] = {
    "turn.started": {
        "session": "gen_ai.conversation.id",
        "endpoint": "gen_ai.provider.name",
        "model": "gen_ai.request.model",
    },
    "turn.ended": {
        "session": "gen_ai.conversation.id",
        "endpoint": "gen_ai.provider.name",
        "model": "gen_ai.request.model",
        "input_tokens": "gen_ai.usage.input_tokens",
        "output_tokens": "gen_ai.usage.output_tokens",
    },
    "tool.returned": {"tool": "gen_ai.tool.name", "call": "gen_ai.tool.call.id"},
}
"""By event and field: the name of the same fact in OpenTelemetry's conventions for generative AI, written besides ours in JSON."""


DAMAGE = "Look at the disk, then `outspoken db check`; restore a backup if it says so."
_KEPT = "Update to the newest version, which tries it again; report it with the traceback. `outspoken status` counts what is kept."

FIELDS: Mapping[str, str] = {
    "act": "what was done: ``retry``, ``drop``, ``redirect``, ``show text``",
    "account": "the bot's account, ``platform/id`` (Telegram's own events: its name in the configuration)",
    "adapter": "the adapter, ``platform/account``",
    "alerts": "what they are about, each ``kind:what:when``",
    "after": "kind of the event after which it was found",
    "attempt": "tries so far",
    "away_seconds": "how long the storage has not answered, seconds",
    "bot": "the bot's user name",
    "by": "who decided",
    "call": "id of the tool call",
    "cause": "why, one word of a closed list",
    "channel": "the platform's id of a channel",
    "chat": "where it is shown: ``platform/account/chat/thread``",
    "command": "name of the command, without the slash",
    "conversations": "conversations that met it",
    "cpu_seconds": "how much of it the loop's thread computed, seconds",
    "database": "the database, without its password",
    "table": "a table of the database",
    "left": "what lies there of an earlier database, in words",
    "done": "whether it was done",
    "endpoint": "host and port of the model's address",
    "epoch": "number of the ownership under which it goes on",
    "error": "the error in words",
    "folder": "the name of a folder in the directory of the workspaces",
    "event_kind": "the platform's name of what it told",
    "adding": "how much more was wanted: bytes, or how many",
    "holder": "whose room it is: the chat (``platform/account/chat``), the user of the API, or the web page",
    "holders": "how many keep something",
    "exit": "how the turn ended, one word of a closed list",
    "exit_status": "of the process, as the system says it; a negative one is the signal that ended it",
    "fate": "what is known of the call: not sent, unknown, too fast, refused",
    "fingerprint": "what went wrong and about whom: ``exit|endpoint|model|tool|size``; empty if the turn ended well",
    "first_content_seconds": "from the turn's beginning to the first content of the model, seconds; null if none came",
    "found": "whether it was there already",
    "inbox": "number of the message in the inbox (in `turn.started` a list)",
    "how": "in which form it goes instead, and why",
    "in_chat": "whether a chat was told as well",
    "incident": "id of the incident",
    "input_tokens": "tokens of all requests of the turn",
    "job": "what a worker was to do, ``module:function``",
    "kind": "what sort of part: text, file, notice, …",
    "lane": "``normal``, ``command`` or ``refused``",
    "laws": "the laws that do not hold",
    "left_out": "the fields of a request that the endpoint does not take, as far as is known by now",
    "left_out_chars": "characters of the result that the model was not given",
    "logger": "the library's logger",
    "look_again": "the date, ISO 8601",
    "message": "the library's words",
    "messages": "how many messages",
    "milliseconds": "how long it took",
    "model": "the model's name",
    "model_calls": "requests to the model, failed ones included",
    "name": "the file's name",
    "new": "the chat's new id",
    "node": "number of a process on this database",
    "journals": "how many turns' journals",
    "files": "how many pictures and files of messages",
    "records": "how many conversations of which only numbers were left",
    "workspaces": "how many conversations' folders",
    "spooled": "how many copies of files for chats",
    "longest_ms": "the longest transaction, in ms",
    "database_bytes": "the database, without its log",
    "workspaces_bytes": "all conversations' folders",
    "spool_bytes": "the copies of files for chats",
    "doubted": "whether the clock is too far ahead to be believed",
    "failures": "how many failures",
    "forget": "the job that forgets a person",
    "nodes": "how many processes that have ended",
    "old": "the chat's old id",
    "open": "how many are open",
    "origin": "what a part belongs to: the turn's id, or ``inbox:number`` for words beside turns",
    "outcome": "what came of it",
    "output_tokens": "tokens of all replies of the turn",
    "overdue_seconds": "how long after its longest timer, seconds",
    "part": "the part's idempotency key: ``chat/origin/bubble/number``",
    "parts": "how many parts",
    "path": "the request's path",
    "peer": "the address at the other end of a connection",
    "person": "the person's id on the platform",
    "phase": "what the turn was doing",
    "pid": "id of the process",
    "platform": "telegram, discord or slack",
    "platform_id": "the platform's id of the message that we sent: the receipt",
    "platform_key": "the platform's id of the person's message; for the API, the request's id",
    "platform_keys": "the platform's ids of the messages that the turn answers",
    "reason": "why it was not taken",
    "recovered_turns": "turns that an earlier process had left open",
    "reference": "what the person was shown, to be found here",
    "rehearsal": "whether the built-in rehearsal model answers",
    "remedy": "what has helped most so far; null if nothing has",
    "report": "address of the upstream report",
    "request": "the API request's id",
    "row": "name of the row of known bad endpoints",
    "rungs": "remedies in their order, each ``failure:remedy``",
    "seconds": "how long, seconds",
    "session": "id of the conversation",
    "signal": "what was told",
    "source": "the place in the program, ``file:line``",
    "frames": "places in the program, ``file:line:function``, the innermost call first",
    "status": "HTTP status of the failure; for a tool, how it ended",
    "steps": "model steps that came to a good end",
    "stored": "whether `outspoken explain` finds it",
    "surface": "where the turn was asked: ``api``, ``web``, ``telegram``, …",
    "taken": "whether the message still waited, so that its new words count",
    "times": "how often in a row; a line is written at 1, 2, 4, 8, …",
    "to": "where it was sent instead; null if it was not",
    "tool": "the tool's name",
    "tool_calls": "tools that were run",
    "tools_failed": "how many of them failed",
    "troubles": "failures in the turn, each ``fingerprint remedy outcome`` (remedy ``-``: none was left; outcome helped, "
    "not_helped, not_known, or ended: the turn)",
    "turn": "id of the turn",
    "turn_goes_on": "always true: a client that leaves ends nothing",
    "complaints": "what SQLite or PostgreSQL says of it",
    "not_looked": "what could not be looked at, and why",
    "tries": "how often it was tried",
    "unanswered": "how many messages get no answer for that",
    "turns": "how many turns",
    "url": "where it serves",
    "version": "the program's version",
    "was": "what was set before",
    "what": "what was left out",
    "who": "how somebody came in: on this machine, or with the key and from which address",
    "whole_bot": "whether all chats wait, or this one alone",
    "which": "the provider and the number of the key, never the key itself",
    "why": "the reason",
    "words": "the reason in the platform's or the gateway's words",
    "work": "which of the driver's tasks",
    "budget": "which budget: turn, person, chat, hour, day, month",
    "channels": "how many channels",
    "count": "how many",
    "counted": "what is counted instead",
    "due": "when it was due, ms",
    "held": "what running calls hold of it",
    "judged": "what the person thought of it",
    "key": "by what it is known",
    "late_seconds": "how late, seconds",
    "limit": "the limit, in `measure`",
    "measure": "tokens, or money in billionths",
    "next_at": "when it is due next, ms",
    "place": "a channel or thread, by the platform's ids",
    "quoted": "whether a refusal may only repeat words of the conversation",
    "read": "how many messages were read",
    "schedule": "a reminder or an entry of [schedule]",
    "scope": "whose budget",
    "thread": "the platform's id of a thread",
    "threads": "how many threads",
    "used": "what is used of it",
    "waiting": "how many wait",
}

_BEFORE: tuple[LogEvent, ...] = (
    # ------------------------------------------------------------------ the process
    _e("gateway.ready", "info", "It serves.", "url version rehearsal recovered_turns"),
    _e("gateway.draining", "info", "It was told to stop; running turns may end.", "turns seconds"),
    _e("turn.left", "info warning", "The gateway was stopped in order and left a running turn open; the next start goes on with it.", "turn stored",
       "If it was not stored: the database took no write just then; look at the disk or the server."),
    _e("keeper.suspect", "warning", "What was being worked on when a process died is taken up again, with nothing else beside it.", "what count",
       "Look what ended the process (the lines before the start, the service manager's log); if it ends it again, it is set aside."),
    _e("keeper.set_aside", "error",
       "Something had ended the whole process more than once, the last time alone, and was set aside; whoever asked is told.",
       "kind name session reference", "Tell the developers what it was: outspoken explain NAME, outspoken bundle TURN."),
    _e("keeper.not_taken", "warning", "Something that an earlier process left could not be taken up; it is tried again.", "kind name error", _LATER),
    _e("keeper.storage_unavailable", "warning", "What earlier processes left could not be looked for.", "error", DISK),
    _e("keeper.failed", "error", "A mistake of the program in taking up what earlier processes left.", "", _BUG),
    _e("gateway.no_sign", "warning", "Signs of life cannot be left in the state directory; whoever asks a gateway that hangs is not told since when.", "error", DISK),
    _e("gateway.stopping", "info", "A stop signal came, or its lock was lost."),
    _e("gateway.stopped", "info", "The last line of a clean end."),
    _e("gateway.manager_not_told", "warning", "The service manager that `NOTIFY_SOCKET` names could not be told how the gateway is doing.", "error",
       "See that the unit has `Type=notify`, and that the socket can be reached; else the manager will stop the gateway."),
    _e("forget.done", "info", "A person was forgotten.", "forget turns messages"),
    _e("forget.not_done", "warning", "Somebody is to be forgotten, and the storage was away; it is tried again.", "error", DISK),
    _e("upkeep.done", "info", "Every six hours, if there was anything: what is older than `[retention]` says was removed; how much of each kind, and how large things are then. `doubted`: the clock is ahead of the time that is known to have passed; by the difference nothing counts as older yet.",
       "messages parts failures nodes journals files records workspaces spooled longest_ms database_bytes workspaces_bytes spool_bytes doubted"),
    _e("upkeep.not_done", "warning", "The same, when the storage was away.", "error", DISK),
    _e("workspace.not_removed", "warning", "The workspace of a request of nobody could not be removed when its turn was over.",
       "folder error", "See that the service owns the directory of the workspaces and all below it; the next upkeep tries again."),
    # ------------------------------------------------------------------ messages and turns
    _e("message.accepted", "info", "A message is stored for the first time; from here on it is answered or told why not.",
       "account platform_key inbox session lane"),
    _e("http.refused", "info", "A request that cannot be read, or one too many of its sender, got no more than a refusal.", "status reason times"),
    _e("http.failed", "error", "A mistake while a request was served; the client was told a reference.", "reference path", _BUG),
    _e("http.cut", "warning",
       "A connection was not taken, or was ended because its client was too slow to send or to read. Counted in "
       "`outspoken_connections_cut_total`.",
       "why peer open times", "One address: block it. Many: see `[server]` for the bounds, and whether a proxy should stand in front."),
    _e("message.turned_away", "warning", "A message was not taken because too many wait; whoever sent it was told so.",
       "account waiting open times",
       "See why so many wait (`outspoken status`: open turns, oldest wait), then raise `[session] open_turns` or `waiting_limit`, or add "
       "capacity at the model."),
    _e("turn.started", "info", "A turn is open: which messages it answers.",
       "turn session surface inbox platform_keys model endpoint"),
    _e("turn.ended", "info warning error",
       "Exactly once a turn. info: answered, handed to the client or stopped by a person; warning: anything else; error: its journal "
       "could not be read.",
       "turn session exit",
       "See what the exit says: `outspoken triage` groups by fingerprint and names the action.",
       sometimes="surface seconds first_content_seconds steps tool_calls tools_failed endpoint model model_calls input_tokens "
       "output_tokens rungs fingerprint troubles cause status reference"),
    _e("turn.taken_over", "info", "A turn that a dead process left open goes on here.", "turn epoch"),
    _e("turn.late", "info", "Something came for a turn that had gone on meanwhile, such as an answer to what was answered; it changes nothing.",
       "turn kind why"),
    _e("turn.not_opened", "warning error", "No turn could be opened for a message: the storage is away (warning, tried again) or a mistake.",
       "session error", "Look at the storage if it is a warning; report the traceback if it is an error.", sometimes="inbox"),
    _e("turn.overtaken", "warning", "Another process has taken the turn over; this one lets go.", "turn session",
       "See whether two gateways run on one database, or this machine stood still for seconds."),
    _e("turn.unreadable", "warning error", "A stored turn cannot be read: left out of the history (warning), or ended with a notice (error).",
       "turn error", "Was the database written by a newer version? Else report it.", sometimes="reference"),
    _e("turn.driver_failed", "error", "A mistake in the program ended a turn with a notice.", "turn work reference", _BUG),
    _e("turn.driver_stuck", "error", "A turn did nothing for too long, and was ended with a notice.", "turn phase overdue_seconds reference", _BUG),
    _e("turn.driver_stuck_and_no_storage", "warning", "The same, but the end cannot be stored yet.", "turn error", DISK),
    _e("turn.ended_meanwhile", "warning", "A turn that seemed stuck had ended.", "turn error",
       "Nothing. If it comes often, the machine is overloaded."),
    _e("turn.driver_ignores_cancellation", "error", "The task of a turn that was ended does not end.", "turn", _BUG),
    _e("turn.work_ignores_cancellation", "error", "A tool or a model call of an ended turn does not end.", "turn work", _BUG, by="work"),
    _e("invariant.broken", "error", "A turn broke a law of the machine, and was ended with a notice.", "turn after laws", _BUG),
    _e("lane.failed", "error", "A mistake in a conversation's queue; the queue was started again.", "session", _BUG),
    _e("attachment.not_fetched", "warning", "A file that came with a message could not be had; the model is told.", "name words",
       "See the words. Platforms delete files after a while."),
    _e("tool.returned", "info", "A tool has run.", "turn tool call status seconds left_out_chars"),
    _e("tool.no_files", "error", "A tool could not use a file or a folder of the gateway (not a bug of the tool): the model is told so.",
       "tool turn call error", "See what the error names: a folder that was replaced by a file, rights, the disk. outspoken doctor tries them."),
    _e("tool.crashed", "error", "A mistake in a tool; the model was told that it failed.", "tool turn call", _BUG, by="tool"),
    _e("worker.started", "debug", "A process began that reads files and pages for tools.", "pid milliseconds"),
    _e("worker.job_failed", "warning",
       "Something that a person, a page or a model chose came to a limit in a worker; it was stopped, and the model or the chat was told.",
       "job why error source exit_status",
       "Nothing, if it is rare. ``why`` ``bug``: report it. ``died``: is the machine short of memory?", by="job why"),
    _e("worker.not_started", "error", "The system let no worker begin: tools that read fail.", "error",
       "Look at the limits for processes and memory of the service."),
    _e("worker.does_not_die", "warning", "A worker that was killed hangs in the kernel.", "pid", DISK),
    _e("loop.held", "warning", "The event loop does nothing else for a second or longer: nobody is answered meanwhile.", "seconds frames",
       "``frames`` says where, the innermost call first. If the machine is not overloaded or its disk slow: report it."),
    _e("loop.went_on", "warning", "It goes on; ``seconds`` is how long it was held.", "seconds cpu_seconds",
       "Few ``cpu_seconds``: it waited, for a disk or for a machine that was stopped."),
    _e("loop.was_held", "warning", "At start: the process before was held when it ended.", "frames", "As for ``loop.held``."),
    _e("loop.not_noted", "warning", "At start: the file for such stacks cannot be written.", "error", DISK),
    # ------------------------------------------------------------------ models and incidents
    _e("credential.set_aside", "warning", "A key was refused or is over its limit, and is not used for a while.", "which seconds why",
       "Check the key and its limits at the provider, or add another one.", by="which why"),
    _e("model.names_unknown", "warning", "An endpoint does not say which models it has.", "endpoint error",
       "Name the model in the configuration, or see whether the endpoint is up.", by="endpoint"),
    _e("model.request_amended", "info", "An endpoint refused a field; the same call is made without it, and so are later ones for an hour.",
       "endpoint model left_out", by="endpoint"),
    _e("model.tools_refused", "warning", "An endpoint refused a request for its tools; the same call is made without any, which its turn says."
       " After two in a row later calls are made so at once, for a minute at first and at most an hour.",
       "endpoint model quoted", "Does the model take tools there? `quoted`: the refusal may only repeat the conversation, and nothing is learnt of it.", by="endpoint"),
    _e("model.known_bad_overdue", "warning", "At start: a row of known bad endpoints is past its date.", "row look_again report",
       "See in the report whether it was mended.", by="row"),
    _e("incident.opened", "warning", "Several conversations met one failure.", "incident fingerprint conversations turns remedy",
       "`outspoken triage` shows the failure with its action."),
    _e("incident.closed", "info", "An incident has been quiet for its time.", "incident fingerprint conversations turns remedy"),
    _e("incident.not_looked", "warning", "Incidents were not brought up to date: the storage is away.", "error", DISK),
    _e("incident.watch_failed", "error", "The same, by a mistake.", "", _BUG),
    # ------------------------------------------------------------------ storage
    _e("storage.unavailable", "warning", "A turn waits for the storage; what it would show is kept back.", "turn away_seconds error", DISK),
    _e("storage.sound", "info", "A look through the whole database (after a process that died, or rows that cannot be read) found nothing.",
       "seconds not_looked"),
    _e("storage.unsound", "error", "Such a look found damage.", "seconds complaints count", DAMAGE),
    _e("storage.not_checked", "warning", "Such a look was not possible.", "error", DISK),
    _e("storage.check_failed", "error", "The same, by a mistake.", "", _BUG),
    _e("storage.damaged", "warning", "Rows could not be read or written; the connection is made anew and it is tried once more.",
       "database error", DAMAGE),
    _e("conversation.set_aside", "error", "What a conversation held cannot be read: its chat goes on with a new one, and is told.",
       "session chat unanswered error", DAMAGE),
    _e("storage.damaged_for_all", "error", "Conversations that began anew met damage as well: no message is taken, `/readyz` says 503.",
       "chat error", DAMAGE),
    _e("storage.sound_again", "warning", "That is over: a look through the whole database found nothing damaged.", "", "See what was damaged."),
    _e("conversation.not_set_aside", "warning", "Nor could that be stored; tried again after pauses that double.", "session error tries", DAMAGE),
    _e("message.unreadable", "error", "One stored message cannot be read: it is dropped, and its chat is told.", "inbox session chat", DAMAGE),
    _e("history.unreadable", "warning", "What was said before cannot be shown: its rows are damaged.", "session error", DAMAGE),
    _e("http.storage_unavailable", "warning", "A request was refused because the storage did not answer.", "path error", DISK),
    _e("budget.not_reserved", "warning", "A model call waits until what it may use can be stored.", "call error", DISK),
    _e("storage.reopening", "warning", "The database gave an error; the connection is made anew and the write repeated.", "database error", DISK),
    _e("storage.pulse_late", "warning", "PostgreSQL: the lock may be lost, so this process stops.", "node",
       "See why server or machine stood still for seconds."),
    _e("storage.pulse_lost", "warning", "PostgreSQL: the connection that holds the lock is gone, so this process stops.", "node database error",
       "See whether the server was restarted; the service manager starts the gateway again."),
    _e("storage.failing", "error", "The database takes no writes: no message can be taken, `/readyz` says 503.", "error", DISK),
    _e("rows.left_out", "warning", "Rows of a list cannot be read: they are left out of it, and the others are there.", "table error", DAMAGE),
    _e("storage.log_renewed", "warning", "The database's log or its index was removed or replaced while the gateway ran; what it held is in the file.",
       "database", "See who removes files beside the database."),
    _e("storage.begun_anew", "warning", "The database was missing or empty, and a new one was begun beside what an earlier one left.", "database left",
       "If that was not meant: stop the gateway, mount its disk or put a backup back."),
    _e("storage.works_again", "warning", "It takes writes again.", "seconds", "See why it did not."),
    # ------------------------------------------------------------------ quotas
    _e("quota.reached", "warning", "There was no room for something; whoever wanted it reads why.", "what holder used limit adding times",
       "See outspoken status who has how much; docs/quotas.md."),
    _e("quota.removed", "info", "A person has deleted files of theirs by /files.", "session"),
    _e("quota.counted", "info", "Everything that is kept was counted.", "used holders seconds"),
    _e("quota.not_counted", "warning error", "It could not be counted; the figures are those of before.", "error", DISK),
    # ------------------------------------------------------------------ alerts, traces
    _e("alert.told", "info warning", "Something is wrong (warning) or over (info); said in the operators' chat, if there is one.",
       "alerts words in_chat", "See the words.", by="alerts"),
    _e("alert.failed", "error", "A mistake in looking at what is wrong.", "", _BUG),
    _e("signal.failed", "error", "A mistake in counting or tracing; what was counted goes on.", "signal", _BUG),
    _e("traces.not_sent", "warning", "The collector did not take spans; they are lost.", "count times",
       "See whether [telemetry] otlp_endpoint answers."),
    _e("traces.left", "warning", "At the end the last spans could not be sent in time.", "", "See whether [telemetry] otlp_endpoint answers."),
    # ------------------------------------------------------------------ delivery
    _e("delivery.sent", "info", "A part that will not change any more is there: the receipt.", "chat origin part platform_id"),
    _e("delivery.retried", "info", "A call failed and is made again later.", "chat origin part fate cause attempt words"),
    _e("delivery.settled", "info", "A part whose sending had an unknown outcome is settled.", "chat origin part found"),
    _e("delivery.failed", "error", "A part was refused for good; once for each part.", "chat origin part cause words kind",
       "See the cause: `outspoken triage` groups by it and names the action."),
    _e("delivery.instead", "warning", "A part was refused as it was, and goes in another form.", "chat origin part cause how parts",
       "Nothing for this answer. If files are refused often, see the bot's right to attach files."),
    _e("delivery.unreadable", "error", "A platform's answer could not be understood: what was asked may have been done.", "platform error",
       "Nothing at once: it is looked up, or marked. If it lasts, bring the platform's library up to date, or report it."),
    _e("delivery.nobody_told", "info", "Nor could the person be told in private.", "chat words"),
    _e("delivery.too_fast", "warning", "The platform wants a pause.", "chat seconds whole_bot",
       "Nothing: it is kept. If it comes all day, the bot is in too busy a chat."),
    _e("delivery.gate_not_stored", "warning", "That pause could not be stored; it is kept in memory.", "chat error", DISK),
    _e("delivery.outage_not_told", "warning", "A chat could not be told that nothing can be stored.", "chat error", DISK),
    _e("delivery.left", "warning", "At the end: so many parts are left to the next process.", "parts", "Start it again: they are sent then."),
    _e("surface.no_drafts", "info", "The chat takes no drafts; text on its way is shown by edits.", "chat words"),
    _e("surface.overtaken", "warning", "Another process shows this chat now.", "chat", "See whether two gateways run on one database."),
    _e("surface.storage_unavailable", "warning", "Nothing is shown in a chat while the storage is away.", "chat error", DISK),
    _e("surface.failed", "error", "A mistake in showing a chat; tried again.", "chat", _BUG),
    # ------------------------------------------------------------------ chats
    _e("chat.refused", "info", "A message is not taken: no leave to talk, too many, queue full.", "account reason inbox"),
    _e("chat.ignored", "debug", "A message was not meant for the bot.", "account why"),
    _e("chat.edited", "info", "A person changed a message.", "account taken"),
    _e("chat.withdrawn", "info", "A person took a waiting message back.", "account inbox done"),
    _e("chat.moved", "info", "A chat has another id; its conversations go on there.", "account old new"),
    _e("command.failed", "error", "A mistake in a command; the person was told.", "command", _BUG, sometimes="session", by="command"),
    _e("command.not_stored", "warning error", "A command's answer could not be stored; a warning if it is tried again.", "command", DISK,
       sometimes="error session"),
    _e("command.overtaken", "warning", "Another process answers the command.", "command", "See whether two gateways run on one database."),
    _e("access.approved", "info", "Somebody was let in.", "account person by"),
    _e("access.revoked", "info", "Somebody was shut out.", "account person by"),
    _e("people.code_typed", "info", "Somebody typed a code that joins accounts.", "account person outcome"),
    _e("people.unlinked", "info", "Accounts are not joined any more.", "account person"),
    _e("console.acted", "info", "Somebody who runs the gateway did something by hand in the console; the audit has it too.", "who act part to"),
    # ------------------------------------------------------------------ adapters
    _e("adapter.up", "info", "An adapter is connected.", "adapter"),
    _e("adapter.down", "warning error", "An adapter lost its connection; error: it needs a person (a refused token).", "adapter words times",
       "error: renew the token (`outspoken setup PLATFORM`); warning: look at the network if it goes on.", by="adapter"),
    _e("adapter.deaf", "warning", "There was no sign of life for too long; the connection is made anew.", "adapter words",
       "Look at the network between here and the platform if it goes on.", by="adapter"),
    _e("adapter.failed", "error", "A mistake in an adapter; it is started again.", "adapter", _BUG, by="adapter"),
    _e("adapter.ended", "error", "An adapter ended without a reason; it is started again.", "adapter", _BUG, by="adapter"),
    _e("intake.kept", "error", "Something that came cannot be taken in because of a mistake of ours: kept as it came, and tried again.",
       "account platform_key error", _KEPT, by="account error"),
    _e("intake.half_done", "error", "A message is stored, and what follows has failed.", "account platform_key error", _BUG, by="error"),
    _e("intake.not_kept", "error", "Something could neither be taken in nor kept: it is not confirmed, and comes again.",
       "account platform_key error", _BUG, by="error"),
    _e("intake.not_read", "warning", "What is kept was tried again in vain.", "account platform_key error times", _KEPT, by="account error"),
    _e("intake.given_up", "error", "What is kept was tried often enough; another version tries again.", "account platform_key error", _KEPT,
       by="account error"),
    _e("platform.not_usable", "error", "A package declares a platform that cannot be used; everything else goes on.", "name words",
       "Update or remove the package (`outspoken doctor` says the same), then start again.", by="name"),
    _e("intake.read", "info", "What was kept is taken in.", "account platform_key times"),
    _e("intake.not_now", "info", "What is kept could not be tried just now.", "account platform_key error"),
    _e("intake.not_looked", "info", "What is kept could not be looked at, because the storage is away.", "error"),
    _e("intake.not_looked_at", "debug", "While nothing can be stored: something that waits could not be read to tell its chat.", "account error"),
    _e("intake.look_failed", "error", "A mistake while what is kept was looked at.", "", _BUG),
    _e("intake.person_not_told", "warning", "Whose message is kept could not be told so; tried again.", "account platform_key error", _LATER),
)  # fmt: skip
"""From the process to the way in. Behind them, on the page, stand the platforms' own."""

_BEHIND: tuple[LogEvent, ...] = (
    # ------------------------------------------------------------------ what is missed, budgets, schedules
    _e("adapter.state_not_stored", "warning", "How an adapter is doing could not be stored; tried again.", "error waiting", DISK),
    _e("chat.history_not_read", "info", "What was missed somewhere cannot be read just now; tried again.", "account place attempt words"),
    _e("chat.history_odd", "error", "A mistake, of ours or of the platform's library, while what was missed was read; tried again.", "account place",
       _BUG, by="account"),
    _e("chat.history_refused", "warning", "What was missed somewhere can never be read.", "account place words",
       "Give the bot the right to read the history there."),
    _e("feedback.given", "info", "Somebody judged an answer.", "turn judged session by"),
    _e("operators.not_told", "warning", "What the operators' chat should be told could not be said.", "key words",
       "Look at [operators] chat: `outspoken send --to CHAT test`."),
    _e("post.unreadable", "error", "A message of `outspoken send` that another version stored cannot be read.", "inbox",
       "Send it again."),
    _e("budget.warning", "warning", "A budget is used up to its warning share.", "turn budget scope measure limit used",
       "Raise the limit in [budgets], or let it end.", by="budget"),
    _e("budget.refused", "warning", "A model call was not made, because a budget is spent.",
       "turn budget scope measure limit used held model", "Raise the limit in [budgets], or wait until it opens again.", by="budget"),
    _e("budget.no_price", "warning", "A model has no price, so money is not counted for it.", "model counted",
       "Add it to [budgets] prices.", by="model"),
    _e("budget.not_held", "info", "What a call held was let go by its estimate.", "call error"),
    _e("budget.not_settled", "warning", "What a call used could not be stored; its hold counts until the next start.", "call error", DISK),
    _e("budget.warning_not_shown", "warning", "Somebody could not be told that a budget is nearly spent.", "scope error", DISK),
    _e("budget.failed", "error", "A mistake in counting.", "work", _BUG),
    _e("schedule.configured", "info", "An entry of [schedule] is new or changed.", "schedule next_at"),
    _e("schedule.removed", "info", "An entry of [schedule] is there no more.", "schedule"),
    _e("schedule.claimed", "info", "An occurrence runs, or is told as missed.", "schedule outcome due count late_seconds inbox"),
    _e("schedule.not_claimed", "info", "Somebody else had claimed an occurrence.", "schedule why"),
    _e("schedule.cancelled", "warning", "A reminder is dropped: its person may not talk any more.", "schedule why",
       "Let the person in again, if that was not meant: `outspoken access list`."),
    _e("schedule.clock_jumped", "warning", "The machine's clock was put forward or back.", "seconds", "Look at the time service."),
    _e("schedule.no_account", "warning", "Something is due for an account that is not configured; it waits.", "schedule account",
       "Set the platform's token, or cancel it."),
    _e("schedule.no_chat", "warning", "An entry's chat cannot be found.", "schedule words", "Correct its chat in [schedule]."),
    _e("schedule.unreadable", "warning error", "A schedule that another version stored cannot be read.", "", "Set it anew.",
       sometimes="schedule inbox error"),
    _e("schedule.storage_unavailable", "warning", "What is due waits for the storage.", "error", DISK),
    _e("schedule.failed", "error", "A mistake in claiming what is due; tried again.", "", _BUG, sometimes="schedule"),
    _e("surface.no_streams", "info", "A chat refuses growing messages: edits come instead.", "chat words"),
    # ------------------------------------------------------------------ the API, libraries
    _e("api.client_left", "info", "A client hung up; its turn goes on.", "request turn_goes_on"),
    _e("api.failed", "error", "A mistake in answering a request; the client was told.", "reference path", _BUG),
    _e("api.refused", "info", "A request was not taken; its client was told why.", "request status reason stored"),
    _e("api.stranger", "info", "Somebody called who may not; at most 60 lines a minute, the metric counts all.", "status"),
    _e("api.stream_failed", "error", "A mistake in showing a turn; the turn goes on.", "reference request", _BUG),
    _e("library.message", "warning error", "A line of a library's own, from warning on.", "logger message",
       "See the words.", by="logger"),
    _e("library.unreadable", "warning", "The same, but its arguments do not fit its text.", "logger message", "Nothing.", by="logger"),
)  # fmt: skip

FROM_LIBRARIES = ("library.message", "library.unreadable")
"""Written by `gateway.observe.logging` itself."""


def catalogue() -> tuple[LogEvent, ...]:
    """Every kind of line: the gateway's, and those of each platform that there is."""
    return (*_BEFORE, *(event for one in platforms() for event in one.events), *_BEHIND)


def event_of(name: str) -> LogEvent | None:
    """What is known of a kind of line."""
    return _by_name(platforms()).get(name)


@lru_cache(1)
def _by_name(of: tuple[Platform, ...]) -> Mapping[str, LogEvent]:
    del of  # what `catalogue` follows from
    return {event.name: event for event in catalogue()}


_HEAD = """# Log events

Written by `python -m gateway.observe.logcatalogue > docs/logs.md` from `gateway/observe/logcatalogue.py`; a test compares that with the source.

One event is one line on standard error: JSON (`[log] format = "json"`, or whenever standard error is no terminal), or words for people. Names and
fields are part of the interface; the changelog tells when one changes. Every line begins with `timestamp` (ISO 8601, UTC, milliseconds),
`level` and `event`; a traceback is in `exception`. What people and the model say is never written unless `[log] show_text` is on; secrets never are.

**From a message to its receipt.** `message.accepted` has the platform's id of the message (`platform_key`) and its number (`inbox`);
`turn.started` has both and the `turn`; `turn.ended` is written exactly once for it; `delivery.sent` has the turn as `origin` and the platform's id
of what was sent (`platform_id`); `delivery.failed` is written exactly once for each part that was refused for good. So one id leads to all others:

    journalctl -u outspoken -o cat | grep '"platform_key":"12345"'      # the message: its number
    journalctl -u outspoken -o cat | jq -c 'select(.event=="turn.started" and (.inbox | index(17)))'
    journalctl -u outspoken -o cat | grep 't-0198…'                      # all of the turn, with its receipts

**OpenTelemetry.** In JSON, facts that have a name in the conventions for generative AI are written under that name too:
"""

_QUIET = """
**Quiet.** A gateway with nothing to do writes nothing. A trouble that comes again and again in a row (a platform
that cannot be reached) is written the 1st, 2nd, 4th, 8th … time, with `times`.
"""


def markdown() -> str:
    """The page docs/logs.md."""
    return "\n".join(_page())


def _page() -> Iterator[str]:
    yield _HEAD
    yield "| event | field | OpenTelemetry |\n|---|---|---|"
    for name, names in GENAI.items():
        for ours, theirs in names.items():
            yield f"| `{name}` | `{ours}` | `{theirs}` |"
    yield _QUIET
    yield "## Events\n\nFields in parentheses are there only in some of an event's lines.\n"
    yield "| event | level | when | fields |\n|---|---|---|---|"
    for event in catalogue():
        fields = [f"`{name}`" for name in event.fields] + [f"(`{name}`)" for name in event.sometimes]
        yield f"| `{event.name}` | {', '.join(event.levels)} | {event.when} | {', '.join(fields)} |"
    yield "\n## Fields\n\n| field | meaning |\n|---|---|"
    for name in sorted(FIELDS):
        yield f"| `{name}` | {FIELDS[name].replace('``', '`').replace('|', chr(92) + '|')} |"
    yield "\n## What to do\n\n| event | action |\n|---|---|"
    for event in catalogue():
        if event.trouble:
            yield f"| `{event.name}` | {event.action} |"


if __name__ == "__main__":
    sys.stdout.write(markdown() + "\n")
