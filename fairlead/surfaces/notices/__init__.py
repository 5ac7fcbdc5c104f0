"""Notices as people get them: messages, sending one, and sending what is due.

Belongs here: words, forms and the webhook. Does not: when there is a notice (`migrations/sql`).
"""
