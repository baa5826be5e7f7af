"""What an OpenAI client may ask for: `/v1/chat/completions` as far as one greedy model can honestly serve it.

A setting that would change nothing is taken (top_p, seed, user …); one that would be ignored against its sender's
intent is refused: a temperature above 0, several choices, penalties, log probabilities, a forced tool or form.
"""
from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from lib.chat import check_messages
from lib.machinery.serving.parameters import checked
from lib.strict_json import decode_whole
from lib.tools import Tool

Zero = Annotated[float, Field(ge=0, le=0)]


class _Form(BaseModel):
    """Every value has its own type, nothing is converted; null is as good as left out."""
    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def without_nulls(cls, sent):
        """What was sent, without what is null."""
        return {name: value for name, value in sent.items() if value is not None} if isinstance(sent, dict) else sent


class Function(_Form):
    """A function that the model may call, with the JSON Schema of its arguments."""
    name: str = Field(min_length=1, max_length=64)
    description: str = ""
    parameters: Annotated[dict, AfterValidator(checked)] = {"type": "object", "properties": {}}
    strict: bool | None = None


class FunctionTool(_Form):
    """A tool; there are only functions."""
    type: Literal["function"]
    function: Function

    @property
    def tool(self) -> Tool:
        """The tool as the parser of replies takes it; it is its sender who runs it."""
        return Tool(self.function.name, self.function.description, self.function.parameters)


class CalledFunction(_Form):
    """The function of a call, its arguments as JSON text."""
    name: str
    arguments: str

    @property
    def values(self) -> dict:
        """The arguments as an object; ValueError where they are none."""
        values, code = decode_whole(self.arguments or "{}")
        if code or not isinstance(values, dict):
            raise ValueError("the arguments of a call are no JSON object")
        return values


class ToolCall(_Form):
    """A call that an earlier answer made."""
    id: str
    type: Literal["function"] = "function"
    function: CalledFunction
    index: int | None = None  # from a stream


class TextPart(_Form):
    """A part of a message; there is only text."""
    type: Literal["text"]
    text: str


class Message(_Form):
    """One message of the conversation."""
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    refusal: str | None = None
    annotations: Any = None

    def plain(self) -> dict:
        """The message as the chat template takes it."""
        parts = [part.text for part in self.content] if isinstance(self.content, list) else [self.content or ""]
        message: dict = {"role": "system" if self.role == "developer" else self.role, "content": "".join(parts)}
        if self.tool_calls:
            called = [{"name": call.function.name, "arguments": call.function.values} for call in self.tool_calls]
            message["tool_calls"] = [{"type": "function", "function": function} for function in called]
        return message


def check_calls(messages: list[Message]) -> None:
    """ValueError unless each call is answered once, by a tool message right behind it, and nothing else is."""
    unanswered: set[str | None] = set()
    for message in messages:
        if message.tool_calls and message.role != "assistant":
            raise ValueError("only an assistant's message has tool_calls")
        if message.role == "tool":
            if message.tool_call_id not in unanswered:
                raise ValueError("a tool message needs the tool_call_id of a call right before it")
            unanswered.remove(message.tool_call_id)
        elif unanswered:
            raise ValueError("a call needs its tool message before the next message")
        else:
            unanswered = {call.id for call in message.tool_calls or ()}


class StreamOptions(_Form):
    """What a stream holds besides."""
    include_usage: bool = False
    include_obfuscation: bool | None = None


class Wanted(_Form):
    """The body of a request for a chat completion."""
    model: str
    messages: list[Message] = Field(min_length=1, max_length=256)
    tools: Annotated[list[FunctionTool], Field(max_length=64)] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: str | Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=4)] | None = None
    temperature: float | None = None
    n: Annotated[int, Field(ge=1, le=1)] | None = 1
    presence_penalty: Zero | None = None
    frequency_penalty: Zero | None = None
    logprobs: Literal[False] | None = None
    parallel_tool_calls: Literal[True] | None = None
    response_format: dict[Literal["type"], Literal["text"]] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=0)] | None = None
    logit_bias: Annotated[dict, Field(max_length=0)] | None = None
    modalities: Annotated[list[Literal["text"]], Field(min_length=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None  # this and the rest change nothing in a greedy answer
    seed: int | None = None
    user: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    metadata: dict | None = None
    store: bool | None = None
    service_tier: str | None = None

    @field_validator("temperature")
    @classmethod
    def only_greedy(cls, value: float | None) -> float | None:
        """Decoding is greedy here, and says so instead of ignoring a wish."""
        if value:
            raise ValueError("decoding is greedy here: leave temperature out or set it to 0")
        return value

    @model_validator(mode="after")
    def can_be_served(self) -> Wanted:
        """What no single field tells: the messages together, the tools' names, settings that need each other."""
        check_messages(self.conversation)
        check_calls(self.messages)
        if len({tool.function.name for tool in self.tools or ()}) < len(self.tools or ()):
            raise ValueError("two tools share a name")
        if "" in self.stops:
            raise ValueError("a stop string has at least one character")
        if self.stream_options and not self.stream:
            raise ValueError("stream_options are for a stream: set stream to true")
        return self

    @property
    def conversation(self) -> list[dict]:
        """The messages as the chat template takes them."""
        return [message.plain() for message in self.messages]

    @property
    def offered(self) -> list[Tool]:
        """The tools that the model may call."""
        return [] if self.tool_choice == "none" else [each.tool for each in self.tools or ()]

    @property
    def stops(self) -> tuple[str, ...]:
        """The strings that end an answer."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    def limit(self, most: int) -> int:
        """How many tokens the answer may have: what was asked for, and no more than `most`."""
        return min(filter(None, (self.max_tokens, self.max_completion_tokens, most)))
