"""The page: its files as they are, and in a real browser (Chromium, under `test --all`, where there is one)."""
from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser

import pytest

from lib.machinery import serve
from lib.machinery.serving.app import FILES, PAGE
from lib.tests.test_serve_http import CALL, endpoint, is_at_rest, wait_until

TEXTS = {name: (PAGE / name).read_text(encoding="utf-8") for name in FILES.values()}
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


# --- the files --------------------------------------------------------------

class Tags(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self):
        super().__init__()
        self.found: list[tuple[str, dict]] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def tags() -> list[tuple[str, dict]]:
    parser = Tags()
    parser.feed(TEXTS["index.html"])
    return parser.found


def test_nothing_comes_from_elsewhere_and_nothing_is_inline(tags):
    for name, text in TEXTS.items():
        outside = re.findall(r"""(?:https?:)?//[\w.]+|url\(|@import""", re.sub(r"(?m)^\s*//.*|\s// .*$", "", text))
        assert outside == ["http://www.w3.org"] * (name == "icon.svg")
    for tag, attributes in tags:
        assert not {"style", "onclick"} & attributes.keys() and not any(name.startswith("on") for name in attributes)
        assert tag != "style" and (tag != "script" or "src" in attributes)
        for name in {"src", "href"} & attributes.keys():
            assert f"/{attributes[name]}" in FILES


def test_every_field_has_its_name(tags):
    labelled = {attributes.get("for") for tag, attributes in tags if tag == "label"}
    assert {attributes["id"] for tag, attributes in tags if tag == "textarea"} <= labelled
    assert ("html", {"lang": "en"}) in tags and {"main", "h1", "legend", "title"} <= {tag for tag, _ in tags}
    assert any(attributes.get("role") == "status" for _, attributes in tags)


def test_it_writes_text_and_never_html():
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", TEXTS["page.js"])


def test_it_never_cuts_a_question_silently(tags):
    assert not any("maxlength" in attributes for tag, attributes in tags)


def test_it_knows_every_event_and_every_ending():
    from lib.tests.test_cases import STATUSES
    shown = set(re.findall(r"^  (\w+): \(", TEXTS["page.js"], re.M))
    assert {"waiting", "sources", "step", "piece", "aside", "done", "error"} == shown
    endings = set(re.findall(r'^  (\w+): "', TEXTS["page.js"], re.M))
    assert STATUSES - {"cancelled"} <= endings and {"token_limit", "time_limit", "no_source"} <= endings


def colour(name: str, scheme: int) -> str:
    """A colour of the style sheet as rgb(…); scheme 0 is light, 1 is dark."""
    digits = re.findall(rf"--{name}: #(\w{{6}})", TEXTS["page.css"])[scheme]
    return f"rgb({', '.join(str(int(digits[start:start + 2], 16)) for start in (0, 2, 4))})"


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("behind", ["paper", "card"])
def test_the_edges_of_what_is_typed_in_and_chosen_are_seen(scheme, behind):
    assert contrast(colour("edge", scheme), colour(behind, scheme)) >= 3  # WCAG 2.2, 1.4.11
    for rule in (r"textarea \{[^}]*", r"fieldset span \{[^}]*", r"\nbutton \{[^}]*"):
        assert "solid var(--edge)" in re.search(rule, TEXTS["page.css"])[0]
    assert "forced-colors: active" in TEXTS["page.css"]


def test_what_speaks_by_itself(tags):
    live = {attributes["id"] for _, attributes in tags if "aria-live" in attributes or "role" in attributes}
    assert live == {"status", "answer", "doubt"} and '"output"' not in TEXTS["page.js"]
    assert all(attributes.get("autocomplete") == "off" for tag, attributes in tags if tag == "button")


def test_the_files_are_served_as_they_are():
    with endpoint("x") as here:
        for path, name in FILES.items():
            response = here.client.get(path)
            assert response.text == TEXTS[name]
            assert "default-src 'none'" in response.headers["content-security-policy"]
            assert response.headers["x-content-type-options"] == "nosniff"


# --- in a browser -----------------------------------------------------------

@pytest.fixture(scope="module")
def browser():
    """Chromium, driven by Playwright."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (lib/tests/extras.txt)")
    if not CHROMIUM:
        pytest.skip("there is no Chromium on this machine, so the page was not tried in a browser")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Opens the page of an endpoint; at the end it must have complained of nothing and asked nobody else."""
    pages = []

    def open_page(here, **options):
        page = browser.new_context(**options).new_page()
        page.set_default_timeout(30_000)
        complaints: list[str] = []
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda sent: sent.url.startswith(here.url) or complaints.append(sent.url))
        pages.append((page, complaints))
        page.goto(here.url)
        return page
    yield open_page
    for page, complaints in pages:
        page.context.close()
        assert complaints == []


def ended(page, sentence: str = "The answer is complete.") -> None:
    """Wait until the page says that it has ended."""
    page.get_by_role("status").get_by_text(sentence).wait_for()


@pytest.mark.slow
def test_a_question_its_answer_and_its_sources(visit):
    with endpoint("Một token là một mẩu chữ [1]. <b>đậm</b> 🎉") as here:
        page = visit(here)
        page.get_by_label("Your question").fill("What is a token?")
        page.get_by_role("button", name="Ask").click()
        ended(page)
        assert page.locator("#answer").inner_text() == "Một token là một mẩu chữ [1]. <b>đậm</b> 🎉"
        assert page.locator("#answer b").count() == 0
        assert page.locator("#answer").get_attribute("aria-busy") == "false"
        sources = page.locator("details")
        assert sources.count() == serve.PASSAGES and "cited" in sources.first.inner_text()
        sources.first.locator("summary").click()
        assert sources.first.locator("p").is_visible()


@pytest.mark.slow
def test_a_blank_question_is_told_and_a_long_one_is_not_cut(visit):
    with endpoint("never") as here:
        page = visit(here)
        page.get_by_label("Your question").fill(" \n ")
        page.get_by_label("Your question").press("Enter")
        ended(page, "There is no question yet: type one.")
        page.get_by_label("Your question").fill("x" * (serve.MAX_QUESTION + 1))
        assert len(page.get_by_label("Your question").input_value()) == serve.MAX_QUESTION + 1


@pytest.mark.slow
def test_the_first_words_are_in_sight_on_a_telephone(visit):
    with endpoint("It is a piece of text.") as here:
        page = visit(here, viewport={"width": 360, "height": 640})
        page.get_by_label("Your question").fill("What is a token?")
        page.get_by_label("Your question").press("Enter")
        ended(page)
        box = page.locator("#answer").bounding_box()
        assert 0 <= box["y"] and box["y"] + box["height"] <= 640


@pytest.mark.slow
def test_markup_in_a_question_is_text(visit):
    attack = "<img src=x onerror=document.title='hit'> token"
    with endpoint(attack) as here:
        page = visit(here)
        page.get_by_label("Your question").fill(attack)
        page.keyboard.press("Enter")
        ended(page)
        assert page.locator("#asked").inner_text() == page.locator("#answer").inner_text() == attack
        assert page.title() == "Ask the notes" and page.locator("main img").count() == 0


@pytest.mark.slow
def test_the_keyboard_is_enough_and_an_agents_steps_are_shown(visit):
    with endpoint(f"I multiply. <tool_call>{CALL}</tool_call>", "It is 7006652.") as here:
        page = visit(here)
        for key in ("Tab", "1", "Shift+Enter", "2", "Tab", "ArrowRight", "Tab", "Enter"):
            page.keyboard.press(key)
        ended(page)
        assert page.locator("#asked").inner_text() == "1\n2"
        assert page.locator("#answer").inner_text() == "It is 7006652."
        assert page.locator("#steps li").all_inner_texts() == ["I multiply.", "multiply(1234, 5678)\n7006652"]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["button", "escape", "close"])
def test_stopping_frees_the_model(visit, way):
    with endpoint(250, pause=0.05) as here:
        page = visit(here)
        page.get_by_label("Your question").fill("What is a token?")
        page.keyboard.press("Enter")
        page.locator("#answer").get_by_text("t3").wait_for()
        if way == "button":
            page.get_by_role("button", name="Stop").click()
        elif way == "escape":
            page.keyboard.press("Escape")
        else:
            page.goto("about:blank")
        wait_until(lambda: is_at_rest(here.client))
        assert here.model.computed < 200
        if way != "close":
            ended(page, "Stopped.")
            assert page.get_by_role("button", name="Ask").is_enabled()
            assert "t3" in page.locator("#answer").inner_text()


@pytest.mark.slow
def test_enter_that_ends_a_vietnamese_word_does_not_ask(visit):
    with endpoint("x") as here:
        page = visit(here)
        page.get_by_label("Your question").fill("Huấn luyện là gì")
        for composing in ("isComposing: true", "keyCode: 229"):
            page.evaluate(f"""document.getElementById('question').dispatchEvent(
                new KeyboardEvent('keydown', {{key: 'Enter', bubbles: true, {composing}}}))""")
        assert page.locator("#exchange").is_hidden() and here.model.prompts == []


@pytest.mark.slow
def test_what_is_refused_is_told(visit, monkeypatch):
    with endpoint(ValueError("secret"), "Fine token.") as here:
        page = visit(here)
        page.get_by_label("Your question").fill("What is a token?")
        page.keyboard.press("Enter")
        ended(page, "The endpoint failed at this question")
        page.keyboard.press("Enter")
        ended(page)
        assert page.locator("#answer").inner_text() == "Fine token."


@pytest.mark.slow
@pytest.mark.parametrize("status, headers, body, sentence", [
    (502, {}, "<h1>Bad Gateway</h1>", "The question was refused with status 502."),
    (503, {"Retry-After": "10"}, "", "with status 503. Try again in 10 seconds."),
    (503, {}, '{"error": {"message": "Too many."}}', "Too many."),
    (200, {}, 'data: {"type": "done", "status": "answered", "cited": [9]}\n\n', "could not be shown"),
    (200, {}, "", "The answer broke off"), (None, {}, "", "does it still run?")])
def test_a_refusal_of_any_form_is_told(browser, status, headers, body, sentence):
    with endpoint("x") as here:
        page = browser.new_page()
        page.set_default_timeout(30_000)
        page.goto(here.url)
        page.route("**/answer", lambda route: route.fulfill(status=status, headers=headers, body=body)
                   if status else route.abort())
        page.get_by_label("Your question").fill("What is a token?")
        page.keyboard.press("Enter")
        ended(page, sentence)
        page.close()


@pytest.mark.slow
def test_keys_of_a_word_under_way_and_keys_held_down_do_nothing(visit):
    with endpoint(250, "Again.", pause=0.02) as here:
        page = visit(here)
        page.get_by_label("Your question").fill("What is a token?")
        page.keyboard.press("Enter")
        page.locator("#answer").get_by_text("t3").wait_for()
        for key in ("Escape', isComposing: true", "Escape', keyCode: 229"):
            page.evaluate(f"""document.getElementById('question').dispatchEvent(
                new KeyboardEvent('keydown', {{key: '{key}, bubbles: true}}))""")
        ended(page)
        page.evaluate("""document.getElementById('question').dispatchEvent(
            new KeyboardEvent('keydown', {key: 'Enter', bubbles: true, repeat: true}))""")
        assert len(here.model.prompts) == 1 and page.locator("#answer").inner_text().startswith("t0")


@pytest.mark.slow
def test_long_numbers_are_shown_as_they_are_and_no_language_stays(visit):
    call = CALL.replace("1234", "12345678901234567890")
    with endpoint(call, "Done.", "Một.") as here:
        page = visit(here)
        page.get_by_text("In steps").click()
        page.get_by_label("Your question").fill("x")
        page.keyboard.press("Enter")
        ended(page)
        assert page.locator("#steps code").inner_text() == "multiply(12345678901234567890, 5678)"
        assert page.locator("#answer").get_attribute("lang") is None


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_in_light_and_dark_and_fits_a_telephone(visit, scheme):
    with endpoint("Word " + "x" * 300) as here:
        page = visit(here, color_scheme=scheme, viewport={"width": 320, "height": 640})
        page.get_by_label("Your question").fill("token " + "y" * 300)
        page.keyboard.press("Enter")
        ended(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        pairs = page.evaluate("""
            ['body', '#hint', '#status', '#answer', '#ask', 'fieldset input:checked + span', '#cost', 'summary']
            .map(name => document.querySelector(name)).map(one => {
                const style = getComputedStyle(one);
                let behind = one;
                while (/, 0\\)$/.test(getComputedStyle(behind).backgroundColor)) behind = behind.parentElement;
                return [style.color, getComputedStyle(behind).backgroundColor];
            })""")
        assert all(contrast(*pair) >= 4.5 for pair in pairs), pairs  # WCAG 2.2, 1.4.3


def contrast(one: str, other: str) -> float:
    """The contrast of two colours `rgb(r, g, b)`, from 1 to 21 (WCAG 2.2, relative luminance)."""
    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_black_and_white():
    assert contrast("rgb(0, 0, 0)", "rgb(255, 255, 255)") == pytest.approx(21)
