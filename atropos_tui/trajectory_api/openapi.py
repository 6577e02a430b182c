"""The OpenAPI description of a table of routes, and a page that shows it without loading anything from elsewhere."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from atropos_tui.trajectory_api.http import Handler
from atropos_tui.trajectory_api.intake import LONGEST_KEY
from atropos_tui.trajectory_api.wire import EnvIdentifier

TITLE = "Trajectory API"
_REFERENCE = "#/components/schemas/{model}"

Schema: TypeAlias = dict[str, Any]

_KEY: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "names what the request brings, so that it may be sent again when its answer got lost",
    "schema": {"type": "string", "maxLength": LONGEST_KEY},
}


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `answer` is the model of its JSON, or None for plain text; several models mean any of them.

    `body` is the model of its JSON body, or of the entries of a list with `many`; `query` that of its query parameters.
    `keyed` says that it honours an Idempotency-Key. `errors` are the statuses that it may refuse with, and why.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    answer: type[BaseModel] | Sequence[type[BaseModel]] | None = None
    body: type[BaseModel] | None = None
    many: bool = False
    query: type[BaseModel] | None = None
    keyed: bool = False
    errors: tuple[tuple[int, str], ...] = ()


def openapi_of(routes: Iterable[Route]) -> Schema:
    """OpenAPI 3.1 of the routes."""
    routes = list(routes)
    references, definitions = _schemas(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": TITLE,
            "version": version("atropos-tui"),
            "description": "Environments to trainers.",
        },
        "paths": paths,
        "components": {"schemas": definitions, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def page_of(description: Schema) -> str:
    """The description as a page of plain HTML."""
    sections = []
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            heading = f"<code>{method.upper()} {html.escape(path)}</code> {html.escape(operation['summary'])}"
            details = {key: operation[key] for key in ("parameters", "requestBody", "responses") if key in operation}
            sections.append(f"<details><summary>{heading}</summary>{_as_code(details)}</details>")
    for name, schema in description["components"]["schemas"].items():
        summary = f"<code id='{name}'>{name}</code> {html.escape(schema.get('description', ''))}"
        sections.append(f"<details><summary>{summary}</summary>{_as_code(schema)}</details>")
    style = "body{font:1rem system-ui;max-width:60rem;margin:2rem auto}details{margin:.4rem 0}pre{overflow:auto}"
    title = f"{TITLE} {html.escape(description['info']['version'])}"
    return (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><style>{style}</style>"
        f"<h1>{title}</h1><p>For programs: <a href='openapi.json'>openapi.json</a></p>{''.join(sections)}</html>\n"
    )


def _as_code(value: Any) -> str:
    return f"<pre>{html.escape(json.dumps(value, indent=2))}</pre>"


def _schemas(routes: list[Route]) -> tuple[dict[type[BaseModel], Schema], Schema]:
    """References to the schemas of all models, and the schemas."""
    models: dict[type[BaseModel], JsonSchemaMode] = {}
    for route in routes:
        for model in _answers(route):
            models[model] = "serialization"
    for route in routes:
        if route.body is not None:
            models[route.body] = "validation"
    by_mode, schema = models_json_schema(list(models.items()), ref_template=_REFERENCE)
    references = {model: reference for (model, _), reference in by_mode.items()}
    definitions: Schema = schema.get("$defs", {})
    return references, definitions  # type: ignore[return-value]


def _answers(route: Route) -> Sequence[type[BaseModel]]:
    if route.answer is None:
        return ()
    return (route.answer,) if isinstance(route.answer, type) else route.answer


def _operation(route: Route, references: dict[type[BaseModel], Schema]) -> Schema:
    answers = [references[model] for model in _answers(route)]
    content: Schema = {"text/plain": {"schema": {"type": "string"}}}
    if answers:
        content = {"application/json": {"schema": answers[0] if len(answers) == 1 else {"anyOf": answers}}}
    responses: Schema = {"200": {"description": "done", "content": content}}
    for status, text in route.errors:
        responses[str(status)] = {"description": text}
    operation: Schema = {"summary": route.summary, "operationId": route.handler.__name__, "responses": responses}
    if route.body is not None:
        schema = references[route.body]
        schema = {"type": "array", "items": schema} if route.many else schema
        operation["requestBody"] = {
            "required": route.query is None,
            "content": {"application/json": {"schema": schema}},
        }
    parameters = [*(_parameters(route.query) if route.query else ()), *([_KEY] if route.keyed else ())]
    return operation | ({"parameters": parameters} if parameters else {})


def _parameters(query: type[BaseModel]) -> Iterable[Schema]:
    for name, schema in TypeAdapter(query).json_schema()["properties"].items():
        required = query.model_fields[name].is_required() and query is not EnvIdentifier
        yield {"name": name, "in": "query", "required": required, "schema": schema}
