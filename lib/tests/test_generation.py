"""The greedy loop, its prefix cache, stopping and cancelling, on tiny random networks of both architectures."""

from __future__ import annotations

import json
import random
import threading

import pytest
import torch

from lib.generation import CHUNK, Conversation, Generation, TextStream
from lib.prefix_cache import Fed, PrefixCache, common_prefix
from lib.tests import tiny

BOTH = pytest.mark.parametrize("architecture", ["qwen2", "llama"])


def prompt(length: int, seed: int = 0) -> list[int]:
    return random.Random(seed).choices(range(3, 250), k=length)


def cold(architecture: str, ids: list[int], **options) -> Generation:
    return tiny.model(architecture).generate(ids, **options)


# --- the loop ---------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("length", [1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 9])
def test_equals_transformers_generate(architecture, length):
    model, ids = tiny.model(architecture), prompt(length)
    theirs = model.network.generate(
        torch.tensor([ids]),
        max_new_tokens=20,
        do_sample=False,
        repetition_penalty=1.0,
        eos_token_id=list(model.eos),
        pad_token_id=0,
    )[0, length:].tolist()
    assert model.generate(ids, max_new_tokens=20).ids == theirs


@BOTH
def test_a_shared_prefix_is_fed_once_and_changes_nothing(architecture):
    model, first = tiny.model(architecture), prompt(50)
    assert model.generate(first, max_new_tokens=5).cached_tokens == 0
    for ids in (first, [*first, *prompt(7, 1)], first[:20] + prompt(9, 2), prompt(30, 3), [*first, *prompt(7, 1)]):
        warm = model.generate(ids, max_new_tokens=12)
        assert warm.ids == cold(architecture, ids, max_new_tokens=12).ids
        assert warm.prompt_tokens == len(ids) and warm.cached_tokens < len(ids)


def test_what_is_fed_is_exactly_the_rest():
    model, fed = tiny.model(), []
    network = model.network
    model.network = lambda ids, **options: fed.append(ids.shape[1]) or network(ids, **options)
    first = prompt(40)
    answer = model.generate(first, max_new_tokens=4)
    assert fed == [40, 1, 1, 1] and answer.cached_tokens == 0
    fed.clear()
    again = model.generate(first, max_new_tokens=1)
    assert (fed, again.cached_tokens) == ([1], 39)  # the last token has to be fed: its logits are the answer
    fed.clear()
    longer = model.generate([*first, *answer.ids, 7, 8], max_new_tokens=1)
    assert (fed, longer.cached_tokens) == ([3], 43)  # the answer's last token had never been fed


def test_gaps_and_counts():
    answer = tiny.model().generate(prompt(10), max_new_tokens=6)
    assert len(answer.ids) == len(answer.gaps) == 6 and min(answer.gaps) >= 0
    assert answer.first_token_seconds > 0 and answer.decode_seconds > 0 and answer.stop_reason == "length"


def test_an_end_token_ends_it_and_is_no_text():
    model, ids = tiny.model(), prompt(10)
    third = model.generate(ids, max_new_tokens=3).ids[2]
    model.eos = (third,)
    answer = model.generate(ids, max_new_tokens=50)
    assert answer.stop_reason == "eos" and answer.ids[-1] == third and answer.ids.index(third) == len(answer.ids) - 1
    assert answer.text == model.decode(answer.ids[:-1])


def test_stop_strings_end_the_text_but_the_ids_stay():
    model, ids = tiny.model(), prompt(10)
    whole = model.generate(ids, max_new_tokens=30)
    word = whole.text[5:8]
    answer = model.generate(ids, max_new_tokens=30, stop=(word,))
    assert answer.stop_reason == "stop" and answer.text == whole.text[: whole.text.index(word)]
    assert answer.ids == whole.ids[: len(answer.ids)] and word in model.decode(answer.ids)
    assert model.generate(ids, max_new_tokens=30, stop=word).text == answer.text


def test_the_context_is_the_limit():
    model = tiny.model(context=64)
    answer = model.generate(prompt(60), max_new_tokens=50)
    assert len(answer.ids) == 4 and answer.stop_reason == "length"


@pytest.mark.parametrize(
    "ids, options, fault",
    [
        ([], {}, "empty"),
        (prompt(64), {}, "64 tokens"),
        (prompt(999), {}, "999 tokens"),
        (prompt(5), {"max_new_tokens": 0}, "at least 1"),
    ],
)
def test_prompts_that_cannot_be_continued(ids, options, fault):
    with pytest.raises(ValueError, match=fault):
        tiny.model(context=64).generate(ids, **options)


def test_the_ledger_keeps_every_generation(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_LEDGER", str(tmp_path / "ledger.jsonl"))
    model = tiny.model()
    answers = [model.generate(prompt(9, seed), max_new_tokens=3) for seed in (1, 2)]
    lines = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["ids"] for line in lines] == [answer.ids for answer in answers]
    assert lines[0]["prompt_ids"] == prompt(9, 1) and lines[0]["gaps"] == answers[0].gaps


# --- cancelling and interrupts ----------------------------------------------


def passes(model, action, after: int) -> list[int]:
    """Let `action` happen inside pass number `after`; returns the sizes of the passes, as they come."""
    sizes, network = [], model.network

    def watched(ids, **options):
        sizes.append(ids.shape[1])
        result = network(ids, **options)
        if len(sizes) == after:
            action()
        return result

    model.network = watched
    return sizes


@pytest.mark.parametrize("length, after", [(10, 1), (10, 4), (3 * CHUNK, 2)])
def test_cancel_ends_it_within_one_pass(length, after):
    model, cancel = tiny.model(), threading.Event()
    thread = threading.Thread(target=cancel.set)
    sizes = passes(model, lambda: (thread.start(), thread.join()), after)
    answer = model.generate(prompt(length), max_new_tokens=50, cancel=cancel)
    assert answer.stop_reason == "cancelled" and len(sizes) == after
    assert len(answer.ids) == max(0, after if length < CHUNK else after - 2)


def test_cancelled_before_it_began():
    cancel = threading.Event()
    cancel.set()
    answer = tiny.model().generate(prompt(9), cancel=cancel)
    assert (answer.ids, answer.text, answer.first_token_seconds) == ([], "", None)


@BOTH
@pytest.mark.parametrize("layer", [0, 1])
def test_an_interrupt_in_mid_pass_leaves_model_and_cache_usable(architecture, layer):
    model, ids = tiny.model(architecture), prompt(20)
    calls = []

    def interrupt(*_):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt

    hook = model.network.model.layers[layer].mlp.register_forward_pre_hook(interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.generate(ids, max_new_tokens=9)
    hook.remove()
    answer = model.generate(ids, max_new_tokens=9)
    assert answer.ids == cold(architecture, ids, max_new_tokens=9).ids
    assert answer.cached_tokens == 19  # what had been fed before the interrupt was kept


def test_a_fault_in_on_token_leaves_the_model_usable():
    model, ids = tiny.model(), prompt(20)

    def fail(_):
        raise RuntimeError("the reader left")

    with pytest.raises(RuntimeError):
        model.generate(ids, on_token=fail)
    assert model.generate(ids, max_new_tokens=9).ids == cold("qwen2", ids, max_new_tokens=9).ids


def test_two_threads_share_one_model():
    model, answers = tiny.model(), {}
    threads = [
        threading.Thread(target=lambda s=seed: answers.update({s: model.generate(prompt(30, s), max_new_tokens=9)}))
        for seed in range(4)
    ]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    for seed, answer in answers.items():
        assert answer.ids == cold("qwen2", prompt(30, seed), max_new_tokens=9).ids
    assert len(answers) == 4


# --- the prefix cache by itself ---------------------------------------------


@pytest.mark.parametrize(
    "a, b, length",
    [([], [], 0), ([1], [], 0), ([1, 2], [1, 2], 2), ([1, 2, 3], [1, 2], 2), ([1, 2], [1, 3], 1), ([9], [1], 0)],
)
def test_common_prefix(a, b, length):
    assert common_prefix(a, b) == common_prefix(b, a) == length


def test_the_cache_keeps_the_newest_and_drops_what_is_contained():
    cache = PrefixCache(kept_tokens=10)
    for ids in ([1, 2], [1, 2, 3, 4], [5, 6, 7], [8, 9], [8, 9, 9, 9]):
        cache.store(Fed(ids, None))
    assert [entry.ids for entry in cache.entries] == [[8, 9, 9, 9], [5, 6, 7]]
    cache.store(Fed(list(range(50)), None))
    assert [len(entry.ids) for entry in cache.entries] == [50]  # the newest stays, however long
    cache.clear()
    assert cache.longest([1, 2]).ids == []


# --- text as it comes -------------------------------------------------------


def stream(pieces: list[bytes], stop: tuple[str, ...] = ()) -> tuple[list[str], str]:
    sent = []
    text = TextStream(lambda ids: b"".join(pieces[: len(ids)]).decode("utf-8", "replace"), stop, sent.append)
    for count in range(1, len(pieces) + 1):
        if text.update(list(range(count))):
            break
    return sent, text.close()


def test_half_characters_wait():
    family = "👩‍👩‍👧".encode()
    sent, text = stream([b"a", *(family[k : k + 1] for k in range(len(family))), b"b"])
    assert "".join(sent) == text == "a👩‍👩‍👧b" and not any("\ufffd" in piece for piece in sent)


def test_a_broken_character_at_the_end_is_shown_at_the_end():
    assert stream([b"a", b"\xf0\x9f"]) == (["a", "\ufffd"], "a\ufffd")


@pytest.mark.parametrize(
    "pieces, stop, text",
    [
        ([b"x", b"E", b"N", b"D", b"y"], ("END",), "x"),
        ([b"x", b"E", b"N", b"y"], ("END",), "xENy"),
        ([b"xENDy"], ("END",), "x"),
        ([b"aab", b"c"], ("abc", "b"), "aa"),
        ([b"x"], (), "x"),
    ],
)
def test_no_part_of_a_stop_string_is_sent(pieces, stop, text):
    sent, whole = stream(pieces, stop)
    assert "".join(sent) == whole == text


# --- conversations ----------------------------------------------------------


@BOTH
def test_a_conversation_keeps_the_models_ids_verbatim(architecture):
    model = tiny.model(architecture)
    talk = Conversation(model, [{"role": "user", "content": "hello"}])
    first = talk.reply(max_new_tokens=6)
    start = len(talk.ids)
    assert talk.ids[start - 6 :] == first.ids
    talk.add("user", "and <|im_end|> now?")
    second = talk.reply(max_new_tokens=6)
    assert second.cached_tokens == start - 1 and talk.ids[start - 6 : start] == first.ids
    assert [span.writer for span in talk.spans[start - 6 : start]] == ["model"] * 6
    between = model.decode(talk.ids[start:-6])
    assert between == "<|im_end|>\n<|im_start|>user\nand <|im_end|> now?<|im_end|>\n<|im_start|>assistant\n"
    assert talk.ids[start:-6].count(2) == 2  # the typed one is no control token


def test_a_turn_that_the_model_ended_itself_is_not_ended_twice():
    model = tiny.model()
    talk = Conversation(model, [{"role": "user", "content": "hello"}])
    model.generate = lambda ids, **_: Generation(
        "ok", [*model.tokenizer.encode("ok"), 2], len(ids), 0, stop_reason="eos"
    )
    talk.reply()
    talk.add("user", "more")
    talk.reply()
    plain = model.encode(
        [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "more"},
        ]
    )
    assert talk.ids[: len(plain)] == plain


def test_an_empty_reply_does_not_break_the_conversation():
    model = tiny.model()
    talk = Conversation(model, [{"role": "user", "content": "hello"}])
    model.generate = lambda ids, **_: Generation("", [2], len(ids), 0, stop_reason="eos")
    for _ in range(3):
        talk.reply()
        talk.add("user", "more")
    assert model.decode(talk.ids).count("<|im_start|>assistant\n<|im_end|>\n<|im_start|>user") == 2


@pytest.mark.parametrize("fault", [KeyboardInterrupt, RuntimeError, ValueError])
def test_an_interrupted_reply_leaves_no_trace_in_the_conversation(fault):
    def fail(_):
        raise fault

    def talk() -> Conversation:
        talk = Conversation(tiny.model(), [{"role": "user", "content": "hello"}])
        talk.reply(max_new_tokens=4)
        talk.add("user", "more")
        return talk

    broken, whole = talk(), talk()
    with pytest.raises(fault):
        broken.reply(max_new_tokens=4, on_token=fail)
    for each in (broken, whole):
        each.reply(max_new_tokens=4)
    assert broken.ids == whole.ids and broken.messages == whole.messages


@pytest.mark.parametrize(
    "ids, options, fault",
    [
        ([-1], {}, "0 to"),
        ([3, 10**6], {}, "0 to"),
        ([3], {"stop": ""}, "stop string"),
        ([3], {"stop": ["a", ""]}, "stop string"),
        ([3], {"stop": [7]}, "stop string"),
        ([3], {"max_new_tokens": 2.5}, "whole number"),
        ([3], {"max_new_tokens": "3"}, "whole number"),
    ],
)
def test_what_cannot_be_meant_is_refused(ids, options, fault):
    with pytest.raises(ValueError, match=fault):
        tiny.model().generate(ids, **options)


def test_ids_may_come_as_a_tensor():
    ids = prompt(9)
    assert tiny.model().generate(torch.tensor(ids), max_new_tokens=3).ids == cold("qwen2", ids, max_new_tokens=3).ids


# --- what is kept of a reply ------------------------------------------------


def answered(text: str, ids: list[int] | None = None, stop_reason: str = "eos") -> Conversation:
    """A conversation whose last reply is `text`, as `ids` (by default its plain ones and an end token)."""
    model = tiny.model()
    model.generate = lambda prompt, **_: Generation(text, given, len(prompt), 0, stop_reason=stop_reason)
    given = [*model.tokenizer.encode(text), 2] if ids is None else ids
    talk = Conversation(model, [{"role": "user", "content": "hello"}])
    talk.reply()
    return talk


KEPT = 'Máy 👩‍👩‍👧 <tool_call>{"a": 1}</tool_call> ok'


@pytest.mark.parametrize("length", range(len(KEPT) + 1))
def test_what_is_kept_is_as_if_the_model_had_written_only_that(length):
    talk = answered(KEPT)
    start = len(talk.ids) - len(talk.model.tokenizer.encode(KEPT)) - 1
    talk.keep(KEPT[:length])
    assert talk.messages[-1] == {"role": "assistant", "content": KEPT[:length]}
    end = [2] if length == len(KEPT) else []
    assert talk.ids[start:] == talk.model.tokenizer.encode(KEPT[:length]) + end
    assert {span.writer for span in talk.spans[start:]} <= {"model"}
    talk.add("user", "more")
    plain = talk.model.encode([{"role": "user", "content": "hello"}, *talk.messages[1:]])
    assert [span.id for span in talk.prompt()] == plain


def test_whole_tokens_before_the_cut_stay_as_the_model_wrote_them():
    model = tiny.model()
    tag = model.tokenizer.encode("<tool_call>")
    spelt = [id for letter in "<tool_call>" for id in model.tokenizer.encode(letter)]
    assert len(tag) == 1 and len(spelt) == 11
    talk = answered("abc<tool_call>xy", [*model.tokenizer.encode("abc"), *spelt, *model.tokenizer.encode("xy"), 2])
    start = len(talk.ids) - 17
    talk.keep("abc<tool_call>x")
    assert talk.ids[start:] == [*model.tokenizer.encode("abc"), *spelt, *model.tokenizer.encode("x")]


def test_the_middle_of_a_token_is_written_anew():
    model = tiny.model()
    talk = answered("a<tool_call>b", [*model.tokenizer.encode("a<tool_call>b"), 2])
    start = len(talk.ids) - 4
    talk.keep("a<tool")
    assert talk.ids[start:] == model.tokenizer.encode("a<tool") and model.decode(talk.ids[start:]) == "a<tool"


def test_control_tokens_in_what_is_kept_stay_data():
    talk = answered("<|im_start|>system and more", [*tiny.tokenizer().encode("<"), 1, 2])
    before = talk.ids.count(1)
    talk.keep("<|im_start|>sys")
    assert talk.ids.count(1) == before - 1


@pytest.mark.parametrize("text", ["Xin", "chào", "Xin chào, bạn", " Xin chào", "XIN"])
def test_only_the_beginning_of_the_last_reply_can_be_kept(text):
    talk = answered("Xin chào")
    if text == "Xin":
        talk.keep(text)
    before = list(talk.spans), list(talk.messages)
    with pytest.raises(ValueError, match="the last reply does not begin with"):
        talk.keep(text)
    assert (talk.spans, talk.messages) == before


def test_the_whole_reply_may_be_kept_any_number_of_times():
    talk = answered("Xin chào")
    before = list(talk.spans)
    talk.keep("Xin chào")
    talk.keep("Xin chào")
    assert talk.spans == before


def test_a_stop_string_that_was_cut_off_the_text_is_kept_unless_asked_for():
    ids = tiny.tokenizer().encode("4\nRESULT:")
    talk = answered("4\n", ids, "stop")
    assert talk.ids[-len(ids) :] == ids  # the ids stay as they came
    talk.keep("4")
    assert talk.ids[-1] == ids[0]


def test_the_prompt_is_what_the_next_reply_is_given():
    talk, given = answered("Xin chào"), []
    model = talk.model
    for words in ("", "more", "và nữa"):
        talk.add("user", words)
        prompt = talk.prompt()
        assert talk.prompt() == prompt and prompt[: len(talk.spans)] == talk.spans  # looking changes nothing
        model.generate = lambda ids, **_: given.append(ids) or Generation("ok", [5, 2], len(ids), 0)
        talk.reply()
        assert given[-1] == [span.id for span in prompt] and talk.ids == given[-1] + [5, 2]
        assert model.decode(given[-1]).endswith("<|im_start|>assistant\n")
