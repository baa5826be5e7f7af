// The page of the endpoint: a question goes out as JSON, the answer comes back as server-sent events.
"use strict";

const part = (id) => document.getElementById(id);
const ENDS = {
  answered: "The answer is complete.",
  no_source: "No word of the question is in the notes, so the model was not asked.",
  token_limit: "The answer was cut at the limit of tokens.",
  time_limit: "The answer was stopped at the limit of seconds.",
  max_turns: "No answer: the model used up its turns.",
  loop: "No answer: the model repeated itself.",
  truncated: "No answer: every reply was cut at its limit.",
  repeated_format_error: "No answer: the model wrote no call that could be run.",
  tool_fault: "No answer: a tool is broken.",
};
let stopping = null; // aborts the answer under way

function say(sentence, bad = false) {
  if (part("status").textContent !== sentence) part("status").textContent = sentence; // told once, not per piece
  part("status").classList.toggle("bad", bad);
}

function element(name, text, kind) {
  const made = document.createElement(name);
  made.textContent = text; // never as HTML: what a model or a reader wrote is text
  if (kind) made.className = kind;
  return made;
}

function begin(question) {
  part("exchange").hidden = false;
  part("asked").textContent = question;
  for (const id of ["answer", "steps", "passages", "cost", "doubt"]) part(id).replaceChildren();
  part("steps").hidden = part("sources").hidden = true;
  for (const id of ["answer", "passages"]) part(id).removeAttribute("lang");
  busy(true);
  say("Asking …");
}

function busy(is) {
  part("ask").disabled = is;
  part("stop").disabled = !is;
  part("answer").setAttribute("aria-busy", String(is)); // a screen reader reads the answer once, when it is whole
}

// --- one event of each type ------------------------------------------------

const show = {
  waiting: ({ ahead }) => say(ahead ? `Waiting: ${ahead} before you.` : "Reading …"),
  sources: ({ language, sources }) => {
    part("answer").lang = part("passages").lang = language;
    part("sources").hidden = false;
    if (!sources.length) part("passages").append(element("p", "Nothing.", "quiet"));
    sources.forEach((source, index) => {
      const details = document.createElement("details");
      const summary = element("summary", `[${index + 1}] ${source.title}`);
      details.append(summary, element("p", source.text));
      part("passages").append(details);
    });
  },
  piece: ({ text }) => {
    say("Answering …");
    const isFirst = !part("answer").hasChildNodes();
    part("answer").append(text);
    if (isFirst) part("answer").scrollIntoView({ block: "nearest" }); // on a telephone it lies below the window
  },
  aside: ({ text }) => { // what was streamed before a call is no answer
    part("answer").replaceChildren();
    step(element("li", text, "aside"));
  },
  step: ({ name, written, ok, result }) => {
    const item = element("li", "", ok ? "" : "bad");
    item.append(element("code", name ? `${name}(${written})` : "a call that could not be read"), element("samp", result));
    step(item);
    say("Working in steps …");
  },
  done: ({ status, tokens, prompt_tokens, seconds, cited = [], unsupported = [] }) => {
    say(ENDS[status] || `It ended: ${status}.`, status !== "answered");
    for (const number of cited) part("passages").children[number - 1].firstChild.append(element("span", "cited", "cited"));
    part("doubt").textContent = unsupported.length ? `Figures in no source: ${unsupported.join(", ")}` : "";
    part("cost").textContent = `${prompt_tokens} tokens read, ${tokens} written, ${seconds.toFixed(1)} seconds`;
  },
  error: ({ message }) => say(message, true),
};

function step(item) {
  part("steps").hidden = false;
  part("steps").append(item);
}

// --- the stream ------------------------------------------------------------

async function* events(body) { // data: … and an empty line; lines that begin with a colon are comments
  let rest = "";
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const blocks = (rest + next.value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) if (block.startsWith("data: ")) yield JSON.parse(block.slice(6));
  }
}

async function refusal(response) { // a proxy before the endpoint has no JSON to say
  const text = await response.text(), later = response.headers.get("Retry-After");
  try {
    return JSON.parse(text).error.message;
  } catch {
    return `The question was refused with status ${response.status}.` + (later ? ` Try again in ${later} seconds.` : "");
  }
}

async function ask(question, mode, signal) {
  const response = await fetch("answer", {
    method: "POST", signal, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ question, mode }),
  }).catch((error) => {
    throw error.name === "AbortError" ? error : new Error("The endpoint does not answer: does it still run?");
  });
  if (!response.ok) return say(await refusal(response), true);
  let last = "";
  for await (const event of events(response.body)) {
    show[event.type]?.(event);
    last = event.type;
  }
  if (last !== "done" && last !== "error") say("The answer broke off: ask again.", true);
}

async function submit() {
  const question = part("question").value.trim();
  if (stopping) return;
  if (!question) return say("There is no question yet: type one.", true);
  stopping = new AbortController();
  begin(question);
  try {
    await ask(question, document.querySelector("[name=mode]:checked").value, stopping.signal);
  } catch (error) {
    if (error.name === "AbortError") say("Stopped.");
    else say(error.name === "Error" ? error.message : "The answer broke off or could not be shown: ask again.", true);
  } finally {
    stopping = null;
    const lost = [part("stop"), document.body].includes(document.activeElement);
    busy(false);
    if (lost) part("question").focus();
  }
}

part("form").addEventListener("submit", (event) => {
  event.preventDefault();
  submit();
});
part("stop").addEventListener("click", () => stopping?.abort());
const composes = (event) => event.isComposing || event.keyCode === 229; // the key then belongs to a Vietnamese word
part("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !composes(event)) {
    event.preventDefault();
    if (!event.repeat) submit(); // a key held down asks once
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !composes(event)) stopping?.abort();
});
