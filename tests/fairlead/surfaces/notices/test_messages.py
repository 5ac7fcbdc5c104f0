"""Messages: the forms that are published of them, whatever names groups and people have."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from fairlead.domain.notices import EVENTS, TEST, Notice
from fairlead.settings import WebSettings
from fairlead.surfaces.notices.messages import body_of

WEB = WebSettings(url="https://plans.example")
NOTICE = Notice(
    id="msg_1",
    event="plan.waits",
    at=datetime(2026, 1, 5, 9, tzinfo=UTC),
    group="orders",
    version=3,
    actor=None,
    said="the heaviest member gets lighter",
)
#: Whatever would be read as markup, as somebody's line, or is more than fits.
NASTY: Final = (
    "<!channel> & <https://evil.example|approve>",
    "[approve](https://evil.example) **now**",
    "a\nfollow https://evil.example",
    "\u202eevil\x1b[31m\x00"[:-1],
    '"}]}',
    "&" * 5000,
    "🚀" * 20_000,
    "{{DATE(2026-01-01T00:00:00Z)}}",
)


def message(form: str, notice: Notice = NOTICE, web: WebSettings = WEB) -> Any:
    return json.loads(body_of(notice, form, web))


def nasty() -> list[Notice]:
    return [
        replace(NOTICE, event=event, group=name, actor=name, said=name, version=version)
        for name in NASTY
        for event, version in (("plan.waits", 2**31 - 1), ("brake.held", None))
    ]


def is_object(value: Any, required: Mapping[str, type], optional: Mapping[str, type]) -> None:
    """Hold an object to its published properties, as a JSON Schema without others would."""
    assert isinstance(value, dict)
    assert set(required) <= set(value) <= set(required) | set(optional), value
    for name, kind in {**required, **optional}.items():
        assert name not in value or isinstance(value[name], kind), (name, value)


def check_slack(body: bytes) -> None:
    """As https://docs.slack.dev/reference/block-kit has blocks and composition objects."""
    payload = json.loads(body)
    is_object(payload, {"text": str, "blocks": list}, {"mrkdwn": bool})
    assert 1 <= len(payload["blocks"]) <= 50
    for block in payload["blocks"]:
        is_object(block, {"type": str, "text": dict}, {"block_id": str, "expand": bool})
        assert block["type"] == "section"
        text = block["text"]
        own = {"plain_text": {"emoji": bool}, "mrkdwn": {"verbatim": bool}}[text["type"]]
        is_object(text, {"type": str, "text": str}, own)
        assert 1 <= len(text["text"]) <= 3000
    assert len(payload["text"]) <= 4000


def check_teams(body: bytes) -> None:
    """As the schema 1.4 of Adaptive Cards has what is used, and Teams the message around it."""
    assert len(body) <= 28 * 1024
    payload = json.loads(body)
    is_object(payload, {"type": str, "attachments": list}, {})
    (attachment,) = payload["attachments"]
    is_object(attachment, {"contentType": str, "content": dict}, {"contentUrl": type(None)})
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    is_object(card, {"type": str, "version": str, "body": list}, {"$schema": str, "actions": list})
    assert (card["type"], card["version"]) == ("AdaptiveCard", "1.4")
    for block in card["body"]:
        is_object(block, {"type": str, "inlines": list}, {})
        assert block["type"] == "RichTextBlock"
        for run in block["inlines"]:
            is_object(run, {"type": str, "text": str}, {"weight": str})
            assert run["type"] == "TextRun"
            assert run.get("weight", "Default") in {"Default", "Lighter", "Bolder"}
    for action in card.get("actions", []):
        is_object(action, {"type": str, "url": str}, {"title": str})
        assert action["type"] == "Action.OpenUrl"


def test_documented_keys_of_json() -> None:
    """All of them, always: what is not known is null."""
    assert message("json") == {
        "type": "plan.waits",
        "timestamp": "2026-01-05T09:00:00+00:00",
        "data": {
            "group": "orders",
            "version": 3,
            "actor": None,
            "title": "Version 3 of the plan of group orders waits for a person",
            "text": "the heaviest member gets lighter",
            "url": "https://plans.example/review?group=orders&version=3",
        },
    }
    brake = replace(NOTICE, event="brake.held", group=None, version=None, actor="kim", said="why")
    assert message("json", brake, WebSettings())["data"] == {
        "group": None,
        "version": None,
        "actor": "kim",
        "title": "The brake holds all groups: no new plan goes out",
        "text": "kim: why",
        "url": None,
    }


@pytest.mark.parametrize("event", [*EVENTS, TEST])
def test_every_event_has_its_words_in_every_form(event: str) -> None:
    """With a page to open, where one is reached."""
    notice = replace(NOTICE, event=event, version=3 if event.startswith("plan.") else None)
    page = message("json", notice)["data"]["url"]
    assert page.startswith("https://plans.example/" + ("review" if notice.version else "group"))
    check_slack(body_of(notice, "slack", WEB))
    check_teams(body_of(notice, "teams", WEB))
    assert page.replace("&", "&amp;") in message("slack", notice)["blocks"][1]["text"]["text"]
    assert message("teams", notice)["attachments"][0]["content"]["actions"][0]["url"] == page
    assert len(message("slack", notice, WebSettings())["blocks"]) == 1
    assert "actions" not in message("teams", notice, WebSettings())["attachments"][0]["content"]


def test_names_do_nothing_in_slack() -> None:
    """No mention, no link of their own, no second message, within the limits."""
    for notice in nasty():
        body = body_of(notice, "slack", WEB)
        check_slack(body)
        texts = [json.loads(body)["text"], json.loads(body)["blocks"][0]["text"]["text"]]
        for text in texts:
            assert "<" not in text
            assert ">" not in text
            assert "\u202e" not in text
            assert "\x1b" not in text
            assert not text.rpartition("&")[1] or ";" in text.rpartition("&")[2]
        (link,) = [block["text"]["text"] for block in json.loads(body)["blocks"][1:]]
        assert link.startswith("<https://plans.example")
        assert link.count("<") == link.count(">") == link.count("|") == 1


def test_names_do_nothing_in_teams() -> None:
    """They stand in runs of text, which know no Markdown, in lines of their own, within 28 KB."""
    for notice in nasty():
        body = body_of(notice, "teams", WEB)
        check_teams(body)
        card = json.loads(body)["attachments"][0]["content"]
        assert "\n" not in card["body"][0]["inlines"][0]["text"]
        assert card["actions"][0]["url"].startswith("https://plans.example")


def test_programs_get_whole_names() -> None:
    """JSON escapes what it must; texts for people are cut."""
    for notice in nasty():
        data = message("json", notice)["data"]
        assert (data["group"], data["actor"]) == (notice.group, notice.actor)
        assert len(data["text"]) <= 2300
