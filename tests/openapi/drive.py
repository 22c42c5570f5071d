"""Drives one session through the Python client generated from the interface description."""

import os

from avouch_client import AuthenticatedClient
from avouch_client.api.lookups import list_platforms
from avouch_client.api.sessions import create_session, get_session, list_sessions, terminate_session
from avouch_client.models import CreateSession, Error, NewLocation, SessionStatus

client = AuthenticatedClient(
    base_url=os.environ["AVOUCH_BASE"],
    token=os.environ["AVOUCH_KEY"],
    prefix="",
    auth_header_name="x-api-key",
)
platform = list_platforms.sync(client=client).data[0]
order = CreateSession(platform_id=platform.id, location=NewLocation(country="US"), expires_in_hours=1)
created = create_session.sync(client=client, body=order).data
assert created.status == SessionStatus.CREATED, created
session = get_session.sync(created.session_id, client=client).data
assert session.progress == 0 and session.completed_at is None, session
unknown = CreateSession(platform_id=999, location=NewLocation(country="US"))
refused = create_session.sync(client=client, body=unknown)
assert isinstance(refused, Error) and refused.status_code == 400, refused
ended = terminate_session.sync(created.session_id, client=client).data
assert ended.status == SessionStatus.TERMINATED, ended
assert list_sessions.sync(client=client, status=SessionStatus.TERMINATED).data.total == 1
print("a session was driven")
