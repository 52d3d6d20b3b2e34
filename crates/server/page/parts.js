// Small parts that several screens share. Nothing here makes HTML of a string.

import { count, dollars, duration, el, grouped, num, short, str, visible } from "./text.js";
import { agentName } from "./view.js";

export { count, dollars, duration, el, grouped, num, short, str, visible, agentName };

/** A link within the page. `uiid` is its stable name for tests. */
export function link(href, className, uiid, ...children) {
  const node = el("a", className, ...children);
  node.href = href;
  if (uiid) node.dataset.uiid = uiid;
  return node;
}

/** A button with a stable name. */
export function press(label, className, uiid, act) {
  const node = el("button", className, label);
  node.type = "button";
  node.dataset.uiid = uiid;
  node.addEventListener("click", act);
  return node;
}

/** The address of a transcript, of one of its views, of one of its events. */
export function to(id, view = "", seq = null) {
  return `/t/${encodeURIComponent(id)}${view ? `/${view}` : ""}${seq === null ? "" : `#ev-${seq}`}`;
}

const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long", hourCycle: "h23" });

/** When something happened, as people say it: “14:05”, “yesterday 14:05”, “3 Nov”. Unknown where the log does not say. */
export function when(text) {
  const at = new Date(str(text));
  if (Number.isNaN(at.getTime())) return el("span", "unknown", "unknown time");
  const node = el("time", "when", whenWords(at));
  node.dateTime = at.toISOString();
  node.title = FULL.format(at);
  return node;
}

function whenWords(at) {
  const midnight = new Date();
  midnight.setHours(0, 0, 0, 0);
  const days = Math.floor((midnight - at) / 86400000) + 1;
  if (at >= midnight && days > -1) return CLOCK.format(at);
  if (days === 1) return `yesterday ${CLOCK.format(at)}`;
  return at.getFullYear() === midnight.getFullYear() ? DAY.format(at) : YEAR.format(at);
}

/** The day of a time as `YYYY-MM-DD` where the reader is. */
export function dayOf(at) {
  const two = (n) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** A sum of dollars, or that it is not known. Never zero for unknown. */
export function money(value, title = "") {
  const node = value === null || value === undefined ? el("span", "unknown", "no price") : el("span", "money", dollars(value));
  if (title || value) node.title = title || `$${value}`;
  return node;
}

/** A number of tokens with its buckets behind it; unknown where nothing says so. */
export function tokensOf(tokens) {
  const parts = [tokens?.input, tokens?.cache_read, tokens?.cache_write, tokens?.output].map(num);
  if (parts.every((part) => part === null)) return el("span", "unknown", "unknown");
  const node = el("span", "tokens", short(parts.reduce((sum, part) => sum + (part ?? 0), 0)));
  node.title = ["input", "cache_read", "cache_write", "output"].map((name, n) => `${name.replace("_", " ")} ${parts[n] === null ? "unknown" : grouped.format(parts[n])}`).join("\n");
  return node;
}

/** A title, or what stands for one. */
export const titleOf = (transcript) => visible(str(transcript.title)).trim() || visible(str(transcript.run_id)) || "A session without a title";

/** The last part of a directory, which is what people call a project. */
export function projectOf(transcript) {
  const path = str(transcript.repository) || str(transcript.cwd);
  return visible((path.split(/[\\/]/).filter(Boolean).pop() ?? "").replace(/\.git$/, ""));
}

/** The name of a screen, with what belongs to it. */
export function heading(text, ...rest) {
  return el("header", "screen-head", el("h1", "", text), ...rest);
}

/** A part of a screen with a name. */
export function section(title, ...children) {
  const head = el("h2", "section-title", title);
  head.id = `s-${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
  const node = el("section", "part", head, ...children);
  node.setAttribute("aria-labelledby", head.id);
  return node;
}

/** Facts as a sentence-like row of names and values. */
export function facts(...pairs) {
  const list = el("dl", "facts");
  for (const pair of pairs) if (pair) list.append(el("div", "", el("dt", "", pair[0]), el("dd", "", ...[pair[1]].flat())));
  return list;
}

/**
 * A table. `columns` are `{ name, number?, title? }`; `rows` are lists of cells, each a text or a node.
 */
export function table(caption, columns, rows) {
  const head = el("tr", "", ...columns.map((column) => {
    const cell = el("th", column.number ? "number" : "", column.name);
    cell.scope = "col";
    if (column.title) cell.title = column.title;
    return cell;
  }));
  const body = rows.map((cells) => el("tr", "", ...cells.map((cell, n) => el("td", columns[n]?.number ? "number" : "", cell ?? ""))));
  const node = el("table", "figures", el("caption", "off-screen", caption), el("thead", "", head), el("tbody", "", ...body));
  const box = el("div", "scroll", node);
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  return box;
}

/** What a screen says while it waits. */
export function waiting(text = "Reading…") {
  const node = el("p", "wait", text);
  node.setAttribute("role", "status");
  return node;
}

/** What a screen says when there is nothing. */
export function empty(text, ...rest) {
  return el("div", "empty", el("p", "", text), ...rest);
}

/** What a screen says when the server refused: what happened, and what to do. */
export function failed(error, again) {
  const node = el("div", "failed", el("p", "failed-what", str(error?.message) || "Something went wrong."));
  if (error?.hint) node.append(el("p", "failed-hint", error.hint));
  if (again) node.append(press("Try again", "plain", "try-again", again));
  node.setAttribute("role", "alert");
  return node;
}

/** A chip that can be pressed. */
export function chip(label, n, uiid, isOn, act) {
  const node = press("", "chip-button", uiid, () => act(node));
  node.append(label);
  if (n !== null) node.append(el("span", "n", grouped.format(n)));
  node.setAttribute("aria-pressed", String(isOn));
  return node;
}

/** Signs of a transcript that matter in a list: errors, sub-agents, copies, where it came from. */
export function marks(transcript) {
  const found = [];
  const bad = (num(transcript.failures) ?? 0) + (num(transcript.errors) ?? 0);
  if (bad > 0) found.push(el("span", "mark bad", `✕ ${count(bad, "error")}`));
  if (num(transcript.denials)) found.push(el("span", "mark", `⊘ ${count(transcript.denials, "denial")}`));
  if (num(transcript.compactions)) found.push(el("span", "mark", count(transcript.compactions, "compaction")));
  if (transcript.copy_of || transcript.duplicate) found.push(el("span", "mark", "copy"));
  if (transcript.reconstructed) found.push(el("span", "mark", "reconstructed"));
  if (transcript.received_from) found.push(el("span", "mark", `from ${transcript.received_from}`));
  return found;
}
