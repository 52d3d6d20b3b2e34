// A small Markdown, from text to nodes: what agents write, and no HTML. Every loop moves forward, and what is

import { button, el, num, put, str, visible } from "./text.js";
import { patchLines } from "./tools.js";
// nested is capped, so that hostile text costs no more than its length.

const MOST_INLINE = 8000;
const MOST_NESTED = 6;

/** Appends a text as Markdown. */
export function markdown(parent, text) {
  blocks(parent, text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]{0,40})[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,12})([-*+]|\d{1,9}[.)])(?:\s+(.*)|)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

function blocks(parent, lines, depth) {
  for (let at = 0; at < lines.length; ) {
    const line = lines[at];
    if (!line.trim()) {
      at += 1;
      continue;
    }
    const fence = FENCE.exec(line);
    if (fence) {
      at = fenced(parent, lines, at, fence);
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      // The page has headings of its own above these.
      const node = el(`h${Math.min(6, heading[1].length + 2)}`, "md");
      inline(node, heading[2], 0);
      parent.append(node);
      at += 1;
      continue;
    }
    if (RULE.test(line)) {
      parent.append(el("hr"));
      at += 1;
      continue;
    }
    if (QUOTE.test(line) && depth < MOST_NESTED) {
      const inner = [];
      for (; at < lines.length && lines[at].trim(); at += 1) inner.push(QUOTE.exec(lines[at])?.[1] ?? lines[at]);
      const node = el("blockquote");
      blocks(node, inner, depth + 1);
      parent.append(node);
      continue;
    }
    if (ITEM.test(line) && depth < MOST_NESTED) {
      at = items(parent, lines, at, depth);
      continue;
    }
    if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && lines[at + 1].length < 2000 && DIVIDER.test(lines[at + 1])) {
      at = table(parent, lines, at);
      continue;
    }
    const start = at;
    at += 1;
    while (at < lines.length && lines[at].trim() && !FENCE.test(lines[at]) && !HEADING.test(lines[at]) && !QUOTE.test(lines[at]) && !ITEM.test(lines[at]) && !RULE.test(lines[at])) at += 1;
    const node = el("p");
    lines.slice(start, at).forEach((text, n) => {
      if (n > 0) node.append(el("br"));
      inline(node, text.trim(), 0);
    });
    parent.append(node);
  }
}

function fenced(parent, lines, at, fence) {
  const mark = fence[1];
  const body = [];
  let end = at + 1;
  for (; end < lines.length; end += 1) {
    const close = lines[end].trim();
    if (close.length >= mark.length && close[0] === mark[0] && close === mark[0].repeat(close.length)) break;
    body.push(lines[end]);
  }
  parent.append(codeBlock(body.join("\n"), fence[2]));
  return end + 1;
}

function items(parent, lines, start, depth) {
  const first = ITEM.exec(lines[start]);
  const indent = first[1].length;
  const isNumbered = /\d/.test(first[2]);
  const node = el(isNumbered ? "ol" : "ul");
  if (isNumbered) node.start = Number.parseInt(first[2], 10);
  let at = start;
  while (at < lines.length) {
    const match = ITEM.exec(lines[at]);
    if (!match || match[1].length > indent + 1 || match[1].length < indent || /\d/.test(match[2]) !== isNumbered) break;
    const inner = [match[3] ?? ""];
    const room = indent + match[2].length + 1;
    at += 1;
    while (at < lines.length) {
      const line = lines[at];
      const lead = line.length - line.trimStart().length;
      if (!line.trim()) {
        const next = lines[at + 1];
        if (next === undefined || !next.trim() || next.length - next.trimStart().length < Math.min(room, indent + 2)) break;
        inner.push("");
      } else if (lead >= Math.min(room, indent + 2)) inner.push(line.slice(Math.min(lead, room)));
      else if (ITEM.test(line) || FENCE.test(line) || HEADING.test(line) || !lines[at - 1].trim()) break;
      else inner.push(line.trim());
      at += 1;
    }
    const item = el("li");
    const task = /^\[([ xX])\]\s+/.exec(inner[0]);
    if (task) {
      item.className = "task";
      item.append(el("span", "task-mark", task[1] === " " ? "☐" : "☑"));
      inner[0] = inner[0].slice(task[0].length);
    }
    // An item of one paragraph needs no paragraph around it.
    if (inner.every((line) => line.trim() && !ITEM.test(line) && !FENCE.test(line) && !QUOTE.test(line))) inline(item, inner.join(" "), 0);
    else blocks(item, inner, depth + 1);
    node.append(item);
    while (at < lines.length && !lines[at].trim() && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  parent.append(node);
  return at;
}

const cells = (line) => line.trim().replace(/^\|/, "").replace(/\|$/, "").split("|").slice(0, 40).map((cell) => cell.trim());

function table(parent, lines, start) {
  const sides = cells(lines[start + 1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : ""));
  const row = (line, tag) => {
    const node = el("tr");
    cells(line).forEach((cell, n) => {
      const box = el(tag);
      if (sides[n]) box.style.textAlign = sides[n];
      inline(box, cell, 0);
      node.append(box);
    });
    return node;
  };
  const body = el("tbody");
  let at = start + 2;
  for (; at < lines.length && lines[at].includes("|") && lines[at].trim(); at += 1) body.append(row(lines[at], "td"));
  const scroll = el("div", "scroll", el("table", "", el("thead", "", row(lines[start], "th")), body));
  parent.append(scroll);
  return at;
}

/** The address behind a link, when it is one that may be followed. */
function address(text) {
  if (text.length > 4000 || !/^https?:\/\//i.test(text)) return null;
  try {
    const url = new URL(text);
    return (url.protocol === "https:" || url.protocol === "http:") && !url.username ? url : null;
  } catch {
    return null;
  }
}

function link(url, label) {
  const node = el("a");
  node.href = url.href;
  node.rel = "noreferrer noopener nofollow";
  node.target = "_blank";
  node.title = visible(url.href);
  if (label === null) put(node, url.href);
  else inline(node, label, MOST_NESTED - 1);
  return node;
}

const SPECIAL = /[`*_~[\\]|https?:\/\//g;

/** Appends a run of text with emphasis, code and links. */
function inline(parent, text, depth) {
  if (text.length > MOST_INLINE || depth >= MOST_NESTED) {
    put(parent, text);
    return;
  }
  let done = 0;
  let at = 0;
  const flush = (end) => {
    if (end > done) put(parent, text.slice(done, end));
  };
  const take = (node, end) => {
    flush(at);
    parent.append(node);
    done = at = end;
  };
  const wrap = (tag, inner, end) => {
    const node = el(tag);
    inline(node, inner, depth + 1);
    take(node, end);
  };
  for (;;) {
    SPECIAL.lastIndex = at;
    const match = SPECIAL.exec(text);
    if (!match) break;
    at = match.index;
    const found = match[0];
    if (found === "\\") {
      if (/[!-\/:-@[-`{-~]/.test(text[at + 1] ?? "")) {
        flush(at);
        done = at + 1;
        at += 2;
      } else at += 1;
    } else if (found === "`") {
      const ticks = /^`+/.exec(text.slice(at, at + 20))[0];
      const end = text.indexOf(ticks, at + ticks.length);
      if (end > 0) {
        const code = text.slice(at + ticks.length, end);
        take(el("code", "", code.length > 2 && code.startsWith(" ") && code.endsWith(" ") ? code.slice(1, -1) : code), end + ticks.length);
      } else at += ticks.length;
    } else if (found === "[") {
      const close = text.indexOf("](", at);
      const end = close < 0 ? -1 : text.indexOf(")", close);
      const label = close < 0 ? "" : text.slice(at + 1, close);
      const url = end < 0 || label.includes("[") ? null : address(text.slice(close + 2, end).split(/\s/)[0].replace(/^<|>$/g, ""));
      if (url && label.trim()) {
        const node = link(url, label);
        take(node, end + 1);
        // Where it leads is said beside it, so that the words cannot claim another place.
        if (!label.toLowerCase().includes(url.host)) parent.append(el("span", "host", ` (${url.host})`));
      } else at += 1;
    } else if (found.startsWith("http")) {
      const raw = /^[^\s<>"'`\\^{|}]+/.exec(text.slice(at, at + 4000))[0].replace(/[.,;:!?)\]*_~]+$/, "");
      const url = address(raw);
      if (url) take(link(url, null), at + raw.length);
      else at += found.length;
    } else at = emphasis(text, at, found, wrap);
  }
  flush(text.length);
}

/** Emphasis that opens at `at`, or the place behind its mark when it does not close. */
function emphasis(text, at, mark, wrap) {
  const run = text[at + 1] === mark ? mark + mark : mark;
  const after = at + run.length;
  const isWord = /[\p{L}\p{N}]/u;
  const opens = !/\s/.test(text[after] ?? " ") && (mark !== "_" || !isWord.test(text[at - 1] ?? " "));
  if (!opens || (mark === "~" && run.length < 2)) return after;
  for (let end = text.indexOf(run, after + 1), tries = 0; end > 0 && tries < 20; end = text.indexOf(run, end + 1), tries += 1) {
    const isInside = /\s/.test(text[end - 1]) || (run.length === 1 && text[end + 1] === mark) || (mark === "_" && isWord.test(text[end + run.length] ?? " "));
    if (isInside) {
      if (run.length === 1 && text[end + 1] === mark) end += 1;
      continue;
    }
    wrap(mark === "~" ? "del" : run.length === 2 ? "strong" : "em", text.slice(after, end), end + run.length);
    return end + run.length;
  }
  return after;
}

const WORDS = new Set(
  "abstract and as assert async await bool boolean break case catch char class const continue crate def default defer del delete do done elif else end enum esac except export extends extern false fi final finally float fn for from func function go goto if impl implements import in include instanceof int interface is lambda let local long loop match mod module move mut namespace new nil none not null of or package pass private protected pub public raise ref require return select self static string struct super switch then this throw throws trait true try type typedef typeof undefined union unsafe use using var void where while with yield None True False SELECT FROM WHERE INSERT UPDATE DELETE JOIN".split(" "),
);
const TOKENS = /("(?:[^"\\\n]|\\.){0,2000}"|'(?:[^'\\\n]|\\.){0,2000}'|`(?:[^`\\]|\\.){0,2000}`)|(\/\/[^\n]*|\/\*[^]{0,4000}?\*\/|(?<=^|\s)#(?![[!])[^\n]*|(?<=^|\s)--\s[^\n]*)|\b(\d[\d_.]*(?:e[+-]?\d+)?|0x[\da-f]+)\b|\b([A-Za-z_]\w*)\b/gm;
const MOST_COLOURED = 12000;

/** Appends code, with what is the same in most languages set apart. */
export function code(parent, text, language) {
  if (!language || text.length > MOST_COLOURED || /^(text|txt|plain|output|console|log|markdown|md|diff|patch)$/i.test(language)) {
    put(parent, text);
    return;
  }
  let done = 0;
  for (const match of text.matchAll(TOKENS)) {
    const kind = match[1] ? "str" : match[2] ? "com" : match[3] ? "num" : WORDS.has(match[4]) ? "key" : "";
    if (!kind) continue;
    put(parent, text.slice(done, match.index));
    parent.append(el("span", `tok-${kind}`, match[0]));
    done = match.index + match[0].length;
  }
  put(parent, text.slice(done));
}

/** A block of code with its language and a button that copies it. */
export function codeBlock(text, language) {
  const inner = el("code");
  if (/^(diff|patch)$/i.test(language)) patchLines(inner, text);
  else code(inner, text, language);
  const pre = el("pre", /^(diff|patch)$/i.test(language) ? "code diff" : "code", inner);
  pre.tabIndex = 0;
  return el("div", "block", language ? el("span", "lang", language) : null, copyButton(() => text), pre);
}

/** A button that copies what it is asked for. */
export function copyButton(text) {
  const node = button("Copy", "copy", async (event) => {
    event.preventDefault();
    event.stopPropagation();
    let done = false;
    try {
      await navigator.clipboard.writeText(text());
      done = true;
    } catch {
      done = copyByHand(text());
    }
    node.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => (node.textContent = "Copy"), 1500);
  });
  return node;
}

/** Copies where the clipboard of today is not allowed. */
function copyByHand(text) {
  const area = el("textarea", "off-screen");
  area.value = text;
  document.body.append(area);
  area.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  area.remove();
  return done;
}
