"""What a message says, in the form that its receiver takes.

Belongs here: words, and the bodies for programs, Slack and Teams. Does not: sending (`sending`).

Names of groups and people, and reasons, are whatever somebody gave them. In Slack's text the three
characters that mean something are escaped; Teams gets it as runs of text, which mean nothing.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final

from fairlead.common.visible import visible
from fairlead.domain.notices import TEST, Notice
from fairlead.settings import WebSettings
from fairlead.surfaces.links import group_url, review_url

_TITLES: Final = {
    "plan.waits": "Version {version} of the plan of group {group} waits for a person",
    "plan.made_worse": "Version {version} of the plan of group {group} made it worse",
    "plan.taken_back": "Version {version} of the plan of group {group} is followed no more",
    "brake.held": "The brake holds {group}: no new plan goes out",
    "brake.released": "The brake of {group} is released",
    "group.overloaded": "Group {group} is overloaded",
    "group.loses_records": "Retention is about to take records that group {group} has not read",
    TEST: "This is a test: Fairlead reaches you",
}
_OPEN: Final = "Open the page"
#: Characters of a name, of a text, and of a link, which is left out where it is longer.
_NAME: Final = 200
_TEXT: Final = 2000
_LINK: Final = 2000
#: Slack's limit of a text in a section.
_SECTION: Final = 3000


def body_of(notice: Notice, form: str, web: WebSettings) -> bytes:
    """Return the body of a message.

    Parameters
    ----------
    form
        `notify.format`.
    web
        Says where the page of the group or version is reached.
    """
    name = "all groups" if notice.group is None else notice.group
    if notice.event.startswith("brake.") and notice.group is not None:
        name = f"group {name}"
    title = _TITLES[notice.event].format(group=_cut(name, _NAME), version=notice.version)
    who = "" if notice.actor is None else f"{_cut(notice.actor, _NAME)}: "
    text = f"{who}{_cut(notice.said, _TEXT)}"
    url = _page(notice, web)
    if form == "slack":
        message = _slack(title, text, url)
    elif form == "teams":
        message = _teams(title, text, url)
    else:
        message = _plain(notice, title, text, url)
    return json.dumps(message, ensure_ascii=False).encode()


def _page(notice: Notice, web: WebSettings) -> str | None:
    if notice.group is None:
        return web.url
    if notice.version is None:
        url = group_url(web, notice.group)
    else:
        url = review_url(web, notice.group, notice.version)
    return url if url is not None and len(url) <= _LINK else web.url


def _plain(notice: Notice, title: str, text: str, url: str | None) -> Mapping[str, Any]:
    return {
        "type": notice.event,
        "timestamp": notice.at.astimezone(UTC).isoformat(),
        "data": {
            "group": notice.group,
            "version": notice.version,
            "actor": notice.actor,
            "title": title,
            "text": text,
            "url": url,
        },
    }


def _slack(title: str, text: str, url: str | None) -> Mapping[str, Any]:
    said = {"type": "plain_text", "text": _escaped(f"{title}\n{text}"), "emoji": False}
    blocks: list[Mapping[str, Any]] = [{"type": "section", "text": said}]
    if url is not None:
        link = {"type": "mrkdwn", "text": f"<{_escaped(url)}|{_OPEN}>"}
        blocks.append({"type": "section", "text": link})
    return {"text": _escaped(title), "mrkdwn": False, "blocks": blocks}


def _teams(title: str, text: str, url: str | None) -> Mapping[str, Any]:
    card: dict[str, Any] = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": [
            {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": said, "weight": how}]}
            for said, how in ((title, "Bolder"), (text, "Default"))
        ],
    }
    if url is not None:
        card["actions"] = [{"type": "Action.OpenUrl", "title": _OPEN, "url": url}]
    kind = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": kind, "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _cut(text: str, most: int) -> str:
    """Return what can be seen of a text, so much of it at most."""
    escaped = visible(text)
    return escaped if len(escaped) <= most else f"{escaped[: most - 1]}…"


def _escaped(text: str) -> str:
    """Escape what Slack would read as a link or a mention, within its limit.

    Examples
    --------
    >>> _escaped("<!channel> & co")
    '&lt;!channel&gt; &amp; co'
    """
    safe = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"&\w*$", "", safe[:_SECTION])
