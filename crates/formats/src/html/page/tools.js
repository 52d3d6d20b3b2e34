// What a tool was asked, in a word; what it changed.

import { button, count, el, firstRaw, list, obj, put, size, str, visible } from "./text.js";
import { code, codeBlock, copyButton } from "./markdown.js";

// The arguments that tell most, the most telling first.
const TELLING = ["command", "cmd", "file_path", "filePath", "notebook_path", "pattern", "query", "path", "target_file", "absolute_path", "url", "description", "prompt", "task", "skill", "message", "question", "text", "name", "title", "script", "code", "content", "input", "id"];
const PATHS = new Set(["file_path", "filePath", "notebook_path", "path", "target_file", "absolute_path"]);
const OLD = ["old_string", "oldString", "old_str", "oldText", "old_text"];
const NEW = ["new_string", "newString", "new_str", "newText", "new_text"];

const pick = (fields, names) => {
  for (const name of names) if (Object.hasOwn(fields, name) && typeof fields[name] === "string") return fields[name];
  return null;
};

/** An input; some agents give it as a text that holds JSON. */
export function inputOf(tool) {
  const input = tool?.input;
  if (typeof input === "string" && /^\s*[{[]/.test(input) && input.length < 4e6) {
    try {
      return JSON.parse(input);
    } catch {
      return input;
    }
  }
  return input ?? null;
}

/** A path as people write it: below the directory of the session without that directory. */
function nearPath(path, cwd) {
  return cwd && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

/** What a tool was asked, on one line. */
export function told(input, cwd) {
  if (typeof input === "string") return patchTitle(input) ?? firstRaw(input, 160);
  const fields = obj(input);
  if (!fields) return input === null ? "" : firstRaw(JSON.stringify(input), 120);
  const todo = list(fields.todos ?? fields.plan).map(obj).filter(Boolean);
  if (todo.length > 0) {
    const done = todo.filter((it) => it.status === "completed").length;
    return `${done} of ${todo.length} done`;
  }
  for (const key of TELLING) {
    if (!Object.hasOwn(fields, key)) continue;
    const value = fields[key];
    if (typeof value === "string" && value.trim()) {
      if (PATHS.has(key)) return nearPath(value, cwd);
      return patchTitle(value) ?? firstRaw(value, 160);
    }
    if (Array.isArray(value) && value.length > 0 && value.every((word) => typeof word === "string")) {
      const shell = value.length === 3 && /^(ba|z|da)?sh$/.test(value[0].split("/").pop()) && /^-l?c$/.test(value[1]);
      return firstRaw(shell ? value[2] : value.join(" "), 160);
    }
  }
  const keys = Object.keys(fields);
  return keys.length === 0 ? "" : firstRaw(JSON.stringify(fields), 120);
}

const isPatch = (text) => text.startsWith("*** Begin Patch") || /^(diff --git |--- [^\n]*\n\+\+\+ )/.test(text);

function patchTitle(text) {
  if (!isPatch(text)) return null;
  const names = [...text.slice(0, 20000).matchAll(/^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ (?:b\/)?)(\S+)/gm)].map((match) => match[1]);
  return names.length > 0 ? names.slice(0, 3).join(", ") + (names.length > 3 ? ` and ${names.length - 3} more` : "") : "a patch";
}

const MOST_PATCHED = 5000;

/** Appends the lines of a patch, each marked by what it does. */
export function patchLines(parent, text) {
  const lines = text.split("\n");
  for (const line of lines.slice(0, MOST_PATCHED)) {
    const kind = /^(\+\+\+|---|diff |index |\*\*\* )/.test(line) ? "meta" : line[0] === "+" ? "add" : line[0] === "-" ? "del" : line.startsWith("@@") ? "meta" : "ctx";
    parent.append(el("span", `line ${kind}`, line || " "));
  }
  if (lines.length > MOST_PATCHED) parent.append(el("span", "line gap", `⋯ ${count(lines.length - MOST_PATCHED, "more line")}, not shown`));
}

const MOST_COMPARED = 1500;

/** The lines of two texts: kept, taken away, added. */
function compare(before, after) {
  const a = before.split("\n");
  const b = after.split("\n");
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const lines = a.slice(0, head).map((text) => ["ctx", text]);
  const left = a.slice(head, a.length - tail);
  const right = b.slice(head, b.length - tail);
  if (left.length > MOST_COMPARED || right.length > MOST_COMPARED) {
    for (const text of left) lines.push(["del", text]);
    for (const text of right) lines.push(["add", text]);
  } else lines.push(...common(left, right));
  for (const text of a.slice(a.length - tail)) lines.push(["ctx", text]);
  return lines;
}

/** The shortest way from one list of lines to another, by their longest common part. */
function common(a, b) {
  const width = b.length + 1;
  const best = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      best[i * width + j] = a[i] === b[j] ? best[(i + 1) * width + j + 1] + 1 : Math.max(best[(i + 1) * width + j], best[i * width + j + 1]);
    }
  }
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push(["ctx", a[i]]);
      i += 1;
      j += 1;
    } else if (i < a.length && (j >= b.length || best[(i + 1) * width + j] >= best[i * width + j + 1])) {
      lines.push(["del", a[i]]);
      i += 1;
    } else {
      lines.push(["add", b[j]]);
      j += 1;
    }
  }
  return lines;
}

const AROUND = 3;
const MOST_LINES = 400;

/** A change as coloured lines; what did not change is left out but for a few lines around. */
function diffBlock(before, after) {
  const lines = before === "" ? after.split("\n").map((text) => ["add", text]) : compare(before, after);
  const isNear = new Uint8Array(lines.length);
  lines.forEach(([kind], n) => {
    if (kind !== "ctx") isNear.fill(1, Math.max(0, n - AROUND), n + AROUND + 1);
  });
  const inner = el("code");
  const pre = el("pre", "code diff", inner);
  pre.tabIndex = 0;
  const box = el("div", "block", copyButton(() => after), pre);
  let skipped = 0;
  let at = 0;
  const skip = () => {
    if (skipped > 0) inner.append(el("span", "line gap", `⋯ ${count(skipped, "line")} not changed`));
    skipped = 0;
  };
  const show = (most) => {
    for (let shown = 0; at < lines.length; at += 1) {
      if (!isNear[at]) {
        skipped += 1;
        continue;
      }
      if (shown === most) return;
      skip();
      shown += 1;
      const [kind, text] = lines[at];
      const row = el("span", `line ${kind}`);
      row.append(el("span", "sign", kind === "add" ? "+" : kind === "del" ? "−" : " "));
      put(row, text || " ");
      inner.append(row);
    }
    skip();
  };
  show(MOST_LINES);
  if (at < lines.length) {
    const label = () => `Show ${count(lines.length - at, "more line")}`;
    const more = button(label(), "more", () => {
      show(10 * MOST_LINES);
      if (at < lines.length) more.textContent = label();
      else more.remove();
    });
    more.dataset.more = "";
    box.append(more);
  }
  return box;
}

/** How many lines an edit added and took away; nothing where it is no edit. */
export function changeOf(input) {
  const fields = obj(input);
  if (!fields) return null;
  const edits = list(fields.edits).map(obj).filter(Boolean);
  let added = 0;
  let taken = 0;
  let any = false;
  for (const edit of [fields, ...edits]) {
    const [before, after] = [pick(edit, OLD), pick(edit, NEW)];
    if (before === null || after === null || before.length + after.length > 60000) continue;
    any = true;
    for (const [kind] of before === "" ? after.split("\n").map(() => ["add"]) : compare(before, after)) {
      added += kind === "add";
      taken += kind === "del";
    }
  }
  return any ? { added, taken } : null;
}

/** Appends what a tool was asked, in full. */
export function putInput(parent, input, cwd) {
  if (input === null || input === undefined) return;
  if (typeof input === "string") {
    if (isPatch(input)) parent.append(codeBlock(input, "diff"));
    else longText(parent, input, "in");
    return;
  }
  const fields = obj(input);
  if (!fields) {
    longText(parent, JSON.stringify(input, null, 2), "in");
    return;
  }
  const rest = new Map(Object.entries(fields));
  const take = (name) => {
    const value = rest.get(name);
    rest.delete(name);
    return value;
  };
  for (const name of PATHS) {
    if (typeof rest.get(name) !== "string" || rest.size === 1) continue;
    const near = nearPath(take(name), cwd);
    // Where the line above says it already, once is enough.
    if (near !== told(input, cwd)) parent.append(el("p", "path", near));
  }
  for (const name of ["command", "cmd", "script"]) {
    if (typeof rest.get(name) === "string") {
      const text = take(name);
      if (isPatch(text)) parent.append(codeBlock(text, "diff"));
      else longText(parent, text, "command");
    }
  }
  const edits = [fields, ...list(fields.edits).map(obj).filter(Boolean)];
  for (const edit of edits) {
    const [before, after] = [pick(edit, OLD), pick(edit, NEW)];
    if (before === null || after === null) continue;
    parent.append(diffBlock(before, after));
    for (const name of [...OLD, ...NEW]) if (edit === fields) rest.delete(name);
    if (edit !== fields) rest.delete("edits");
  }
  for (const name of ["content", "file_text"]) {
    // A whole file, under its path.
    if (typeof rest.get(name) === "string" && [...PATHS].some((it) => Object.hasOwn(fields, it))) longText(parent, take(name), "in");
  }
  const todo = list(fields.todos ?? fields.plan).map(obj).filter(Boolean);
  if (todo.length > 0) {
    rest.delete("todos");
    rest.delete("plan");
    parent.append(todoList(todo));
  }
  putFields(parent, rest);
}

function todoList(todo) {
  const node = el("ul", "todo");
  for (const it of todo.slice(0, 200)) {
    const status = str(it.status);
    const mark = status === "completed" ? "☑" : status === "in_progress" ? "▶" : "☐";
    const item = el("li", status === "completed" ? "is-done" : "", el("span", "task-mark", mark), str(it.content) || str(it.step) || str(it.text));
    if (status) item.title = visible(status);
    node.append(item);
  }
  return node;
}

/** Appends the arguments that nothing else has shown. */
function putFields(parent, fields) {
  if (fields.size === 0) return;
  const node = el("dl", "fields");
  for (const [name, value] of fields) {
    const box = el("dd");
    if (typeof value === "string") {
      if (isPatch(value)) box.append(codeBlock(value, "diff"));
      else if (value.length > 120 || value.includes("\n")) longText(box, value, "value");
      else put(box, value);
    } else longText(box, value !== null && typeof value === "object" ? JSON.stringify(value, null, 2) : String(value), "value");
    node.append(el("div", "", el("dt", "", name), box));
  }
  parent.append(node);
}

// How much of a text is shown at first, and how much more each time more is asked for.
const PREVIEW = { in: [12, 1600], value: [8, 1000], command: [14, 1600], out: [10, 1400], error: [16, 2400], note: [6, 800], raw: [10, 1400] };
const MORE = [200_000, 1_000_000];
const PIECE = 16_000;

/** Appends a text that may be long: its beginning, and a button for more of it. */
export function longText(parent, text, kind) {
  const [lines, chars] = PREVIEW[kind];
  const pre = el("pre", `long ${kind}`);
  const box = el("div", "block", copyButton(() => text), pre);
  let end = 0;
  for (let n = 0; n < lines && end >= 0 && end < text.length; n += 1) end = text.indexOf("\n", end) + 1 || text.length;
  end = Math.min(end, chars);
  // A few lines more are shown at once: a button would be no shorter.
  if (text.length - end < 240 && text.slice(end).split("\n").length <= 4) end = text.length;
  const body = el("code");
  if (kind !== "command" && isPatch(text)) {
    const [head, rest] = [text.slice(0, Math.max(end, 6000)), text.length];
    pre.classList.add("diff");
    patchLines(body, head);
    end = Math.max(end, Math.min(6000, rest));
  } else if (kind === "command") code(body, text.slice(0, end), "sh");
  else putTrimmed(body, text.slice(0, end));
  pre.append(body);
  parent.append(box);
  if (end >= text.length) {
    if (text.length === 0) pre.classList.add("is-empty");
    return;
  }
  let round = 0;
  const more = button("", "more", () => {
    const next = Math.min(text.length, end + MORE[Math.min(round, 1)]);
    // In pieces, so that the browser lays out only those that are seen.
    for (let at = end; at < next; ) {
      let stop = Math.min(next, at + PIECE);
      const line = text.lastIndexOf("\n", stop);
      if (line > at && stop < next) stop = line + 1;
      const piece = el("code", "piece");
      put(piece, text.slice(at, stop).replace(/\n$/, ""));
      pre.append(piece);
      at = stop;
    }
    end = next;
    round += 1;
    if (end >= text.length) more.remove();
    else label();
  });
  more.dataset.more = "";
  const label = () => {
    const left = text.length - end;
    const shown = Math.min(left, MORE[Math.min(round, 1)]);
    const rows = left < 2_000_000 ? text.slice(end).split("\n").length : 0;
    more.textContent = shown < left ? `Show ${size(shown)} more of ${size(left)}` : rows > 1 ? `Show ${count(rows, "more line")}` : `Show ${size(left)} more`;
  };
  label();
  box.append(more);
}

const putTrimmed = (parent, text) => put(parent, text.replace(/\n+$/, ""));
