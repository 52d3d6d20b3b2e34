// Asking the server: one place for keys, the token, errors and streams.

/** What the server refused, or that it could not be reached. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    Object.assign(this, { status, problem, hint: problem.hint ?? "" });
  }
}

const KEPT = "quipu-key";
let key = sessionStorage.getItem(KEPT) ?? "";
let me = null;

/** Uses a key from now on, in this tab only. */
export function signIn(next) {
  key = next;
  if (next) sessionStorage.setItem(KEPT, next);
  else sessionStorage.removeItem(KEPT);
  me = null;
}

export const hasKey = () => key !== "";

/** Who asks, as the server sees it: `{ who, read, write }`. Asked once. */
export function whoAmI() {
  me ??= ask("GET", "/api/v1/me").catch((error) => {
    me = null;
    throw error;
  });
  return me;
}

/** An address with parameters; those without a value are left out. */
export function at(path, params = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) if (value !== undefined && value !== null && value !== "") query.set(name, String(value));
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** Reads a document. */
export const get = (path, params, signal) => ask("GET", at(path, params), undefined, signal);

/** Reads a document as somebody who may write: some fields are only for them. */
export async function getAsWriter(path, params, signal) {
  const { token } = await whoAmI();
  return ask("GET", at(path, params), undefined, signal, token);
}

let sent = 0;

/** How often this tab has changed something. */
export const writes = () => sent;

/** Changes something: with the token of this start, or with the key. */
export async function send(method, path, body) {
  sent += 1;
  const { token } = await whoAmI();
  return ask(method, path, body ?? {}, undefined, token);
}

function headersOf(token, body) {
  const headers = { accept: "application/json" };
  if (key) headers.authorization = `Bearer ${key}`;
  else if (token) headers["x-quipu-token"] = token;
  if (body !== undefined) headers["content-type"] = "application/json";
  return headers;
}

async function ask(method, address, body, signal, token) {
  let answer;
  try {
    answer = await fetch(address, { method, headers: headersOf(token, body), body: body === undefined ? undefined : JSON.stringify(body), signal, cache: "no-cache" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, { title: "The server does not answer.", hint: "Is `quipu up` still running?" });
  }
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    if (answer.ok) throw new Refused(answer.status, { title: "The answer cannot be read." });
  }
  if (!answer.ok) throw new Refused(answer.status, value ?? {});
  return value;
}

/** The bytes of a blob as an address for an image; with a key, browsers cannot ask for them themselves. */
export async function pictureAddress(sha256) {
  const address = `/api/v1/blobs/${encodeURIComponent(sha256)}`;
  if (!key) return address;
  const answer = await fetch(address, { headers: headersOf() });
  return answer.ok ? URL.createObjectURL(await answer.blob()) : "";
}

/** Downloads an address under a name: by a link, or with a key by fetching it. */
export async function download(address, name) {
  const link = document.createElement("a");
  link.download = name ?? "";
  link.href = address;
  if (key) {
    const answer = await fetch(address, { headers: headersOf() });
    if (!answer.ok) throw new Refused(answer.status, await answer.json().catch(() => ({})));
    link.href = URL.createObjectURL(await answer.blob());
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  }
  link.click();
}

const SOONEST = 500;
const LATEST = 15000;

/**
 * Follows a stream until `signal` ends it. It is a plain request, so that it can carry a key.
 * `on(name, data, id)` is called for each event; `state(isOpen)` when the connection comes and goes.
 */
export async function follow(path, params, { on, state, signal }) {
  let last = "";
  let wait = SOONEST;
  while (!signal.aborted) {
    try {
      const headers = { accept: "text/event-stream" };
      if (key) headers.authorization = `Bearer ${key}`;
      if (last) headers["last-event-id"] = last;
      const answer = await fetch(at(path, params), { headers, signal, cache: "no-store" });
      if (!answer.ok) throw new Refused(answer.status, {});
      state?.(true);
      wait = SOONEST;
      for await (const { id, name, data } of frames(answer.body)) {
        if (id) last = id;
        on(name, data, id);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Refused && [401, 403, 404].includes(error.status)) {
        state?.(false);
        return;
      }
    }
    state?.(false);
    await new Promise((go) => setTimeout(go, wait));
    wait = Math.min(wait * 2, LATEST);
  }
}

/** The frames of a stream of server-sent events. */
async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let frame = { id: "", name: "message", data: [] };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (frame.data.length > 0) yield { id: frame.id, name: frame.name, data: frame.data.join("\n") };
        frame = { id: "", name: "message", data: [] };
        continue;
      }
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
      if (field === "data") frame.data.push(value);
      else if (field === "event") frame.name = value;
      else if (field === "id") frame.id = value;
    }
  }
}

/** How long the page may be busy with an answer before it looks up. */
const BUSY_MS = 12;

/**
 * The objects of the list `name` of a document, in lots, as they arrive. A document of many thousands is not read at once, so
 * that the page stays quick meanwhile. Returns what the document has behind the list.
 */
export async function* items(path, params, name, signal) {
  const answer = await fetch(at(path, params), { headers: headersOf(), signal, cache: "no-cache" });
  if (!answer.ok) throw new Refused(answer.status, await answer.json().catch(() => ({})));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const opening = `"${name}":[`;
  let [text, place, begin, depth, isText, isIn] = ["", 0, 0, 0, false, false];
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Refused(answer.status, { title: "The answer is not whole." });
    text += value;
    if (!isIn) {
      const found = text.indexOf(opening);
      if (found < 0) continue;
      place = found + opening.length;
      isIn = true;
    }
    let lot = [];
    let since = performance.now();
    for (; place < text.length; place += 1) {
      const char = text[place];
      if (isText) {
        if (char === "\\") place += 1;
        else if (char === '"') isText = false;
      } else if (char === '"') isText = true;
      else if (char === "{" || char === "[") {
        if (depth === 0) begin = place;
        depth += 1;
      } else if (char === "}" || (char === "]" && depth > 0)) {
        depth -= 1;
        if (depth > 0) continue;
        lot.push(JSON.parse(text.slice(begin, place + 1)));
        if (performance.now() - since > BUSY_MS) {
          yield lot;
          lot = [];
          await new Promise((go) => setTimeout(go));
          since = performance.now();
        }
      } else if (char === "]") {
        yield lot;
        let rest = text.slice(place + 1);
        for (;;) {
          const { value, done } = await reader.read();
          if (done) return JSON.parse(`{${rest.replace(/^\s*,/, "")}`);
          rest += value;
        }
      }
    }
    // What is done with is let go; an object that is not whole yet stays.
    const keep = depth > 0 ? begin : place;
    [text, place, begin] = [text.slice(keep), place - keep, 0];
    if (lot.length > 0) yield lot;
  }
}
