"""All endpoints in one table; the dispatcher and the OpenAPI description are both made from it."""

from __future__ import annotations

from atropos_tui.trajectory_api import wire
from atropos_tui.trajectory_api.endpoints import Endpoints
from atropos_tui.trajectory_api.explanations import Why
from atropos_tui.trajectory_api.inspect_endpoints import GroupsQuery, InspectEndpoints
from atropos_tui.trajectory_api.inspection import (
    BatchesView,
    BuffersView,
    EnvironmentsView,
    GroupsView,
    Inspection,
    QueueView,
)
from atropos_tui.trajectory_api.openapi import Route

_INVALID = (422, "the body breaks the wire contract; each problem has its place and a sentence")
_BODY_ERRORS = (
    (400, "the gzip body is damaged (plain text), or the Idempotency-Key is too long"),
    (413, "the body is larger than this server takes"),
    (415, "a Content-Encoding other than gzip"),
    (503, "the journal cannot be written; the groups were not accepted, send them again"),
)
_UNFIT = (409, "the environments that are here cannot fill such a batch")
_UNKNOWN = (404, "no environment of this id is registered; register it again")


def routes_of(endpoints: Endpoints, inspect: InspectEndpoints) -> list[Route]:
    """Every route but those of the description itself."""
    scored = (*_BODY_ERRORS, _INVALID, _UNKNOWN)
    return [
        Route("POST", "/scored_data", endpoints.scored_data, "Send one scored group",
              wire.Accepted, wire.ScoredData, keyed=True, errors=scored),
        Route("POST", "/scored_data_list", endpoints.scored_data_list, "Send several scored groups",
              wire.ListAccepted, wire.ScoredData, many=True, keyed=True, errors=scored),
        Route("GET", "/batch", endpoints.batch, "Take the next batch; null while none can be made", wire.Batch),
        Route("POST", "/register", endpoints.register, "Register a trainer, or its new settings",
              wire.Registered, wire.Registration, errors=(_UNFIT, _INVALID)),
        Route("POST", "/register-env", endpoints.register_env, "Register an environment",
              (wire.EnvRegistered, wire.EnvNotRegistered), wire.RegisterEnv, errors=(_INVALID,)),
        Route("POST", "/disconnect-env", endpoints.disconnect_env, "Say that an environment ends",
              wire.Disconnected, wire.EnvIdentifier, errors=(_INVALID,)),
        Route("GET", "/status-env", endpoints.status_env, "What an environment paces itself by",
              wire.EnvStatus, wire.EnvIdentifier, query=wire.EnvIdentifier, errors=(_UNKNOWN, _INVALID)),
        Route("GET", "/status", endpoints.status, "The trainer's step and the queue", wire.Status),
        Route("GET", "/info", endpoints.info, "Batch size and token limit of the trainer", wire.Info),
        Route("GET", "/wandb_info", endpoints.wandb_info, "The trainer's W&B group and project", wire.WandbInfo),
        Route("GET", "/latest_example", endpoints.latest_example, "The newest queued group", wire.ScoredData),
        Route("GET", "/reset_data", endpoints.reset_data, "Forget the run: registrations, queue, step"),
        Route("GET", "/", endpoints.root, "The server's name", wire.Message),
        Route("GET", "/health", endpoints.health, "Whether the server answers; needs no token", wire.Health),
        Route("GET", "/inspect", inspect.everything, "The run at a glance", Inspection),
        Route("GET", "/inspect/environments", inspect.environments, "The environments", EnvironmentsView),
        Route("GET", "/inspect/queue", inspect.queue, "The queue by environment and size, with ages", QueueView),
        Route("GET", "/inspect/batches", inspect.batches, "Batches ready, under way, delivered", BatchesView),
        Route("GET", "/inspect/buffers", inspect.buffers, "Groups that wait for partners", BuffersView),
        Route("GET", "/inspect/groups", inspect.groups, "Summaries of the newest groups", GroupsView,
              query=GroupsQuery, errors=(_INVALID,)),
        Route("GET", "/inspect/why", inspect.why, "Why there is no batch now", Why),
        Route("GET", "/metrics", inspect.metrics, "Prometheus text"),
    ]  # fmt: skip
