// The transcript as entries: what stands on one line of the page.

import { list, num, obj, plain, str } from "./text.js";
import { givenBack, outputText, partsOf } from "./output.js";

export const STATUS = new Map([
  ["ok", { mark: "✓", word: "" }],
  ["error", { mark: "✕", word: "failed" }],
  ["denied", { mark: "⊘", word: "denied" }],
  ["timeout", { mark: "◔", word: "timed out" }],
]);

export const MESSAGES = new Set(["user", "assistant", "system"]);

/** Entries of all events; a call and its result are one. */
export function entriesOf(events) {
  const entries = [];
  const waiting = new Map();
  events.forEach((raw, index) => {
    const event = obj(raw) ?? { type: "meta", text: str(raw) || JSON.stringify(raw) };
    const type = str(event.type);
    const tool = obj(event.tool);
    const id = str(tool?.callId);
    if (type === "tool_result" && id && waiting.has(id)) {
      const call = waiting.get(id);
      waiting.delete(id);
      call.result = event;
      call.seqs.push(seqOf(event, index));
      call.isError = call.isError || isBad(event);
      return;
    }
    const entry = { index: entries.length, kind: kindOf(type, event), event, result: null, pasted: [], seqs: [seqOf(event, index)], isError: isBad(event), agent: str(event.agentId) || (event.sidechain === true ? "sub-agent" : ""), node: null, text: null };
    if (type === "tool_call" && id) waiting.set(id, entry);
    entries.push(entry);
  });
  return withPasted(entries);
}

/** The entries, with what a person pasted into a message as part of that message. Logs have it as a note beside it. */
function withPasted(entries) {
  const messages = new Map();
  const place = (entry) => `${entry.agent}\n${str(entry.event.nativeId)}`;
  // One that says more than what is attached stays a note, so that it is shown.
  const isPasted = ({ kind, isError, event }) => {
    const all = list(event.attachments).map(obj);
    const isPlain = kind === "note" && !isError && noteKind(event) === "attachment" && !obj(event.meta)?.raw;
    return isPlain && str(event.nativeId) !== "" && all.length > 0 && ["", str(all[0]?.mime)].includes(noteText(event));
  };
  let waiting = [];
  const kept = new Set(entries);
  const join = (message, note) => {
    message.pasted.push(note.event);
    message.seqs.push(...note.seqs);
    kept.delete(note);
  };
  for (const entry of entries) {
    if (entry.kind === "user" && str(entry.event.nativeId)) {
      messages.set(place(entry), entry);
      // The picture may come first.
      for (const note of waiting) if (place(note) === place(entry)) join(entry, note);
      waiting = [];
    } else if (isPasted(entry)) {
      const message = messages.get(place(entry));
      if (message) join(message, entry);
      else waiting.push(entry);
    } else waiting = [];
  }
  const all = [...kept];
  all.forEach((entry, index) => (entry.index = index));
  return all;
}

/** Whether there is a picture in what an event has attached. */
export const hasPicture = (event) => list(event.attachments).some((it) => str(obj(it)?.mime).startsWith("image/"));

const seqOf = (event, index) => num(event.seq) ?? index + 1;

function kindOf(type, event) {
  switch (type) {
    case "user_message":
      return event.synthetic === true ? "system" : "user";
    case "assistant_message":
      return "assistant";
    case "reasoning":
      return "reasoning";
    case "tool_call":
    case "tool_result":
      return "tool";
    case "system":
      return "system";
    default:
      return "note";
  }
}

/** What kind of note it is, in a word. */
export function noteKind(event) {
  const kind = str(obj(event.meta)?.kind) || str(event.kind) || str(event.type) || "note";
  return kind === "meta" ? "note" : kind;
}

/** What a note says; of steps and runs, what they are called and how they ended. */
export function noteText(event) {
  const meta = obj(event.meta) ?? {};
  return str(event.text) || [str(meta.event), str(meta.name), str(meta.stepKind), str(meta.childRunId), str(meta.error)].filter(Boolean).join(" · ");
}

function isBad(event) {
  const status = str(obj(event.tool)?.status) || str(event.status);
  if (status && status !== "ok") return true;
  return str(obj(event.tool)?.error) !== "" || str(event.error) !== "" || str(obj(event.meta)?.error) !== "" || (str(event.type) === "meta" && noteKind(event) === "error");
}

/** How a tool call ended, if it is known. */
export function statusOf(entry) {
  const of = (event) => str(obj(event?.tool)?.status);
  const word = of(entry.result) || of(entry.event);
  if (word) return word;
  if (entry.result || str(entry.event.type) === "tool_result") return entry.isError ? "error" : "ok";
  return "";
}

export function durationOf(entry) {
  for (const event of [entry.result, entry.event]) {
    const ms = num(obj(event?.tool)?.durationMs) ?? num(event?.durationMs);
    if (ms !== null) return ms;
  }
  return null;
}

/** Everything that an entry says, for searching. */
export function wordsOf(entry) {
  if (entry.text !== null) return entry.text;
  const parts = [];
  for (const event of [entry.event, entry.result]) {
    if (!event) continue;
    parts.push(str(event.text));
    const tool = obj(event.tool);
    if (tool) {
      parts.push(str(tool.name));
      if (event === entry.event || !entry.event.tool?.input) parts.push(typeof tool.input === "string" ? tool.input : leaves(tool.input));
      const output = givenBack(tool);
      parts.push(partsOf(output) ? outputText(output) : typeof output === "string" ? output : leaves(output), str(tool.error));
    }
    for (const block of list(event.blocks)) if (obj(block) && block.type !== "text") parts.push(leaves(block));
    if (entry.kind === "note") parts.push(noteKind(event), leaves(event.meta ?? null));
  }
  entry.text = plain(parts.filter(Boolean).join("\n")).toLowerCase();
  return entry.text;
}

const MOST_LEAVES = 20000;

/** The texts and numbers inside a value, a line each. */
function leaves(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "object") return String(value);
  const found = [];
  const rest = [value];
  while (rest.length > 0 && found.length < MOST_LEAVES) {
    const next = rest.pop();
    if (next === null) continue;
    if (typeof next !== "object") found.push(String(next));
    else for (const [key, inner] of Object.entries(next).reverse()) {
      rest.push(inner);
      if (!Array.isArray(next)) rest.push(key);
    }
  }
  return found.join("\n");
}

/** When an event happened; nothing where the log does not say. */
export function timeOf(event) {
  if (event.undated === true) return null;
  const at = new Date(str(event.timestamp));
  return Number.isNaN(at.getTime()) ? null : at;
}
