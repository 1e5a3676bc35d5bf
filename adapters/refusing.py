"""Why a platform did not take what was sent, in words of ours: kept in English, and said to people in their language (`known_sentence`)."""

from __future__ import annotations

import ssl

import aiohttp

from agent_core.failures.shortage import shortage
from agent_core.text.tongue import clause

NOT_UNDERSTOOD = clause("what {platform} answered could not be understood ({what})")
FAILED = clause("the connection to {platform} failed ({why})")
NO_NAME = clause("the name of its server is not known here")
NO_CONNECTION = clause("nothing answers there")
NOT_SECURE = clause("no secure connection could be agreed on")
NO_ANSWER = clause("there was no answer in time")
BROKE_OFF = clause("it broke off")
ASKS_TO_WAIT = clause("{platform} asks to wait {seconds} s")
ANSWERED_WITH = clause("{platform} answered with {what}")
NOT_ITSELF = clause("a proxy or firewall answered in place of {platform} ({what})")
"""What has no form of the platform's is no refusal of the platform's: the same may be taken a moment later."""
SLOW = clause("{platform} did not answer in time")
SLOWER = clause("{platform} did not answer within {seconds} s")
TOKEN = clause("{platform} does not know this bot's token")
NOT_THERE = clause("the app is not in that channel (who is in it can add it by /invite)")
TOO_LARGE = clause("the file is too large for {platform}")
NOT_CONNECTED = clause("the bot is not connected to {platform} just now")
SUPERGROUP = clause("the group has become a supergroup")
MISREAD = (TypeError, KeyError, AttributeError, ValueError, OverflowError)
"""What a platform's library raises when the answer has another form than it expects: a portal's page with a 200, or a proxy's own JSON."""
WITHOUT_ID = clause("the platform answered without the id of what it made")


def broken(error: BaseException) -> str:
    """How a connection failed, by what aiohttp raised."""
    if short := shortage(error):
        return short
    match error:
        case aiohttp.ClientConnectorDNSError():
            return NO_NAME
        case aiohttp.ClientSSLError() | ssl.SSLError():
            return NOT_SECURE
        case TimeoutError():
            return NO_ANSWER
        case aiohttp.ClientConnectorError() | ConnectionRefusedError():
            return NO_CONNECTION
        case _:
            return BROKE_OFF
