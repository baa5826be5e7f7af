"""The routes of the endpoint, and every error as one sentence."""
from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.exceptions import HTTPException

from lib.machinery.serve import MAX_QUESTION, RETRY_AFTER
from lib.machinery.serving import completions
from lib.machinery.serving.answer import Desk, TooLong, Unusable, answer
from lib.machinery.serving.events import EventStream, encoded, unless_gone
from lib.machinery.serving.guard import Guard, error_response
from lib.machinery.serving.line import Full
from lib.machinery.serving.wanted import Wanted

PAGE = Path(__file__).parent / "page"
FILES = {"/": "index.html", "/page.css": "page.css", "/page.js": "page.js", "/icon.svg": "icon.svg"}
NO_TELEMETRY = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
NAME = re.compile(r"\w{1,40}", re.ASCII)
WHOLE = {"Cache-Control": "no-cache", "Accept-Ranges": "none"}
READ = ["GET", "HEAD"]
ONE_MODEL = "There is one model here, {}: name that one."


def asked(question: str) -> str:
    """A question in NFC, without white space around it; HTTPException where it is empty or too long.

    The length comes first: the time to normalise grows with its square, and it holds everyone up.
    """
    for text in (question, unicodedata.normalize("NFC", question[:MAX_QUESTION]).strip()):
        if len(text) > MAX_QUESTION:
            raise HTTPException(413, f"A question has at most {MAX_QUESTION:,} characters.")
    if not text:
        raise HTTPException(422, "question: the question is empty")
    return text


class Question(BaseModel):
    """What is asked, and whether it is answered from the notes or by an agent with tools."""
    model_config = ConfigDict(extra="forbid")
    question: str
    mode: Literal["rag", "agent"] = "rag"


def create_app(desk: Desk, names: Iterable[str] = ()) -> FastAPI:
    """The endpoint as an ASGI application; `names` are those it may be called by beside addresses and localhost."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
                  telemetry=NO_TELEMETRY)
    app.state.desk = desk
    app.add_middleware(Guard, names=tuple(names))
    for path in FILES:
        app.add_api_route(path, page_file, methods=READ)
    app.add_api_route("/answer", answer_question, methods=["POST"])
    app.add_api_route("/healthz", health, methods=READ)
    app.add_api_route("/v1/models", list_models, methods=READ)
    app.add_api_route("/v1/models/{name:path}", one_model, methods=READ)
    app.add_api_route("/v1/chat/completions", complete, methods=["POST"])
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    return app


class Readable(JSONResponse):
    """JSON in which half a character, which a model may write, becomes `?`."""

    def render(self, content) -> bytes:
        """The content as bytes."""
        return json.dumps(content, ensure_ascii=False).encode(errors="replace")


# --- the routes -------------------------------------------------------------

async def page_file(request: Request) -> Response:
    """The page and what belongs to it, as the files are, always whole."""
    request.scope["headers"] = [header for header in request.scope["headers"] if header[0] != b"range"]
    return FileResponse(PAGE / FILES[request.url.path], headers=WHOLE)


async def answer_question(request: Request, body: Question) -> Response:
    """The answer to a question, as a stream of events."""
    events = encoded(answer(request.app.state.desk, asked(body.question), body.mode))
    return EventStream(await anext(events), events)


async def health(request: Request) -> dict:
    """Which model answers, how many wait, and how many tokens have been computed for those who were served."""
    desk = request.app.state.desk
    return {"status": "ok", "model": desk.model.name, "answering": desk.line.served is not None,
            "waiting": len(desk.line.waiting), "tokens": desk.line.tokens}


async def list_models(request: Request) -> dict:
    """The one model, as OpenAI lists its own."""
    name = request.app.state.desk.model.name
    return {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "course"}]}


async def one_model(request: Request, name: str) -> dict:
    """The model by its name; 404 for any other."""
    (there,) = (await list_models(request))["data"]
    if name != there["id"]:
        raise HTTPException(404, ONE_MODEL.format(there["id"]))
    return there


async def complete(request: Request, body: Wanted) -> Response:
    """A chat completion in OpenAI's form, whole or in chunks."""
    desk = request.app.state.desk
    if body.model != desk.model.name:
        raise HTTPException(404, ONE_MODEL.format(desk.model.name))
    if body.stream:
        chunks = completions.chunks(desk, body)
        return EventStream(await anext(chunks), chunks)
    whole = await unless_gone(request.receive, completions.whole(desk, body))
    return Readable(whole, 200 if whole is None or "error" not in whole else 500)


# --- errors -----------------------------------------------------------------

async def on_http_error(request: Request, error: HTTPException) -> Response:
    """An error with a status of its own; a body that cannot be decoded at all counts as bad JSON."""
    if error.status_code == 400:
        error = HTTPException(422, "The body is no JSON.")
    return error_response(error)


async def on_invalid(request: Request, error: RequestValidationError) -> Response:
    """What is wrong with the first field that is; what was sent is never quoted, but for a short name of a field."""
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return error_response(HTTPException(422, "The body is no JSON."))
    place = ".".join(part for part in map(str, first["loc"][1:]) if NAME.fullmatch(part))[:60]
    message = first["msg"].removeprefix("Value error, ")
    return error_response(HTTPException(422, f"{place}: {message}" if place else message), place or None)


async def on_full(request: Request, error: Full) -> Response:
    """Too many wait already, or the endpoint ends."""
    sentence = str(error) or f"Too many are waiting: try again in {RETRY_AFTER} seconds."
    return error_response(HTTPException(503, sentence, {"Retry-After": str(RETRY_AFTER)}))


async def on_unusable(request: Request, error: Unusable) -> Response:
    """A prompt that does not fit the model, or is too long."""
    return error_response(HTTPException(413 if isinstance(error, TooLong) else 422, str(error)))


HANDLERS = {HTTPException: on_http_error, RequestValidationError: on_invalid, Full: on_full, Unusable: on_unusable}
