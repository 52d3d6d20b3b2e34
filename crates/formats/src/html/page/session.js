// What stands around the list: the head, the cord, the chips, the outline, the colours.

import { button, count, dollars, duration, el, firstLine, grouped, list, num, obj, short, str, visible } from "./text.js";
import { MESSAGES } from "./model.js";
import { agentName, moment } from "./view.js";

/** What is known of the session as a whole. */
export function headOf(transcript, entries) {
  const source = obj(transcript.source) ?? {};
  const session = obj(transcript.session) ?? {};
  const metrics = obj(transcript.metrics) ?? {};
  const environment = obj(session.environment) ?? {};
  const repo = obj(environment.repo) ?? {};
  const tokens = obj(metrics.tokens) ?? {};
  const facts = [];
  const fact = (name, value, title) => {
    if (!value) return;
    const node = el("div", "", el("dt", "", name), el("dd", "", value));
    if (title) node.title = title;
    facts.push(node);
  };
  fact("Agent", [agentName(str(source.agent)), str(source.agentVersion)].filter(Boolean).join(" "));
  const models = list(metrics.models ?? session.models).map(str).filter(Boolean);
  if (models.length === 0) for (const entry of entries) {
    const model = str(entry.event.model);
    if (model && !models.includes(model) && models.length < 20) models.push(model);
  }
  fact(models.length > 1 ? "Models" : "Model", models.slice(0, 3).join(", ") + (models.length > 3 ? ` and ${models.length - 3} more` : ""), visible(models.join("\n")));
  const [start, end] = [new Date(str(session.startedAt)), new Date(str(session.endedAt))];
  const isKnown = !Number.isNaN(start.getTime());
  if (isKnown) fact("Started", moment.format(start).replace(/:\d\d(?!.*:)/, ""), visible(str(session.startedAt)));
  const ms = num(metrics.durationMs) ?? (isKnown && !Number.isNaN(end.getTime()) ? end - start : null);
  if (ms !== null) fact("Took", duration(ms));
  const prompt = [tokens.input, tokens.cacheRead, tokens.cacheWrite].map(num).filter((n) => n !== null).reduce((a, b) => a + b, 0);
  const output = num(tokens.output);
  const buckets = Object.entries(tokens).filter(([, n]) => num(n) !== null).map(([name, n]) => `${name} ${grouped.format(n)}`);
  if (prompt > 0 || output !== null) fact("Tokens", [prompt > 0 ? `${short(prompt)} in` : "", output !== null ? `${short(output)} out` : ""].filter(Boolean).join(" · "), visible(buckets.join("\n")));
  fact("Cost", dollars(metrics.costUsd ?? null), typeof metrics.costUsd === "undefined" ? "" : visible(`$${metrics.costUsd}`));
  const where = [str(environment.cwd), str(environment.gitBranch) || str(repo.branch), str(repo.commit).slice(0, 10)].filter(Boolean).join(" · ");
  fact("Where", where, visible([str(repo.name), str(repo.remote), str(environment.os), str(environment.shell)].filter(Boolean).join("\n")));
  const title = titleOf(transcript, entries);
  const head = el("header", "session", el("h1", "", title), el("dl", "facts", ...facts));
  const privacy = obj(transcript.privacy) ?? {};
  if (privacy.redactionApplied === true) head.append(el("p", "small", `▒ Redacted${str(privacy.profile) ? ` by the profile “${str(privacy.profile)}”` : ""}: ${count(num(privacy.redactionCount) ?? 0, "place")}.`));
  return { head, title };
}

function titleOf(transcript, entries) {
  const session = obj(transcript.session) ?? {};
  const given = str(session.title) || str(transcript.title);
  if (given) return firstLine(given, 200);
  const first = entries.find((entry) => entry.kind === "user" && str(entry.event.text).trim());
  return (first && firstLine(first.event.text, 90)) || "A session without a title";
}

/** The session at a glance: a cord with a string for everything that happened, and a knot where it failed. */
export function stripOf(pages) {
  const { entries } = pages;
  if (entries.length < 8) return null;
  const columns = Math.min(entries.length, 120);
  const node = el("div", columns > 60 ? "strip is-dense" : "strip");
  node.setAttribute("aria-hidden", "true");
  const weights = entries.map((entry) => ({ user: 3, assistant: 2, tool: 1.5, reasoning: 1, note: 0.4, system: 0.6 })[entry.kind]);
  const bars = [];
  for (let n = 0; n < columns; n += 1) {
    const [from, to] = [Math.floor((n * entries.length) / columns), Math.floor(((n + 1) * entries.length) / columns)];
    const part = entries.slice(from, to);
    const lead = part.reduce((best, entry) => (weights[entry.index] > weights[best.index] ? entry : best), part[0]);
    const bar = el("i", `kind-${lead.kind}`);
    if (part.some((entry) => entry.isError)) bar.classList.add("has-error");
    bar.style.height = `${Math.round(25 + 75 * Math.min(1, weights[lead.index] / 3))}%`;
    bar.dataset.at = String((part.find((entry) => entry.isError) ?? lead).index);
    bars.push(bar);
  }
  node.append(...bars);
  node.addEventListener("click", (event) => {
    const at = event.target.dataset?.at;
    if (at !== undefined) pages.goto(entries[Number(at)]);
  });
  return node;
}

/** Which kinds are listed. */
export function chipsOf(pages) {
  const kinds = [
    { name: "Messages", has: (entry) => MESSAGES.has(entry.kind), isOn: true },
    { name: "Tools", has: (entry) => entry.kind === "tool", isOn: true },
    { name: "Reasoning", has: (entry) => entry.kind === "reasoning", isOn: true },
    { name: "Notes", has: (entry) => entry.kind === "note" && !pages.source.isQuiet(entry), isOn: true },
    { name: "Bookkeeping", has: (entry) => entry.kind === "note" && pages.source.isQuiet(entry), isOn: false },
  ];
  const total = pages.entries.length;
  const node = el("div", "chips");
  node.setAttribute("role", "group");
  node.setAttribute("aria-label", "What is listed");
  let onlyErrors = false;
  const apply = () => pages.list((entry) => (onlyErrors ? entry.isError : kinds.some((kind) => kind.isOn && kind.has(entry))));
  for (const kind of kinds) {
    const some = pages.entries.filter(kind.has).length;
    if (some === 0) continue;
    if (some === total) kind.isOn = true;
    kind.chip = button("", "chip-button", () => {
      kind.isOn = !kind.isOn;
      press(kind.chip, kind.isOn);
      apply();
    });
    kind.chip.append(kind.name, el("span", "n", grouped.format(some)));
    press(kind.chip, kind.isOn);
    node.append(kind.chip);
  }
  const bad = pages.entries.filter((entry) => entry.isError).length;
  let only = null;
  if (bad > 0) {
    only = button("", "chip-button only-errors", () => {
      onlyErrors = !onlyErrors;
      press(only, onlyErrors);
      apply();
    });
    only.append("✕ Errors only", el("span", "n", grouped.format(bad)));
    press(only, false);
    node.append(only);
  }
  pages.showAll = () => {
    onlyErrors = false;
    if (only) press(only, false);
    for (const kind of kinds) {
      kind.isOn = true;
      if (kind.chip) press(kind.chip, true);
    }
    apply();
  };
  apply();
  return node;
}

export const press = (node, isOn) => node.setAttribute("aria-pressed", String(isOn));

const MOST_OUTLINED = 1500;

/** The outline: what people asked, and what was answered below it. */
export function outline(pages, node) {
  let picked = pages.entries.filter((entry) => (entry.kind === "user" || entry.kind === "assistant") && !entry.agent && str(entry.event.text).trim());
  if (picked.length > MOST_OUTLINED) picked = picked.filter((entry) => entry.kind === "user");
  if (picked.length < 2) return () => {};
  const rest = picked.splice(MOST_OUTLINED);
  const links = new Map();
  const items = el("ol");
  for (const entry of picked) {
    const anchor = el("a", "", el("span", "", firstLine(entry.event.text, 90) || "(no words)"));
    anchor.href = `#ev-${entry.seqs[0]}`;
    items.append(el("li", entry.kind === "user" ? "asked" : "answered", anchor));
    links.set(entry, anchor);
  }
  if (rest.length > 0) items.append(el("li", "outline-rest", `… ${grouped.format(rest.length)} more, not in this outline`));
  node.append(el("h2", "", "Outline"), items);
  node.hidden = false;
  document.body.classList.add("with-outline");
  const indexes = picked.map((entry) => entry.index);
  let active = null;
  return () => {
    const top = pages.topIndex();
    let at = indexes.findLastIndex((index) => index <= top + 1);
    if (at < 0) at = 0;
    // Behind the last that is listed, none of them is where the reader is.
    const next = rest.length > 0 && rest[0].index <= top + 1 ? null : links.get(picked[at]);
    if (next === active) return;
    active?.removeAttribute("aria-current");
    active = next;
    if (!next) return;
    next.setAttribute("aria-current", "true");
    const [box, frame] = [next.getBoundingClientRect(), node.getBoundingClientRect()];
    if (frame.height > 0 && (box.top < frame.top + 40 || box.bottom > frame.bottom - 40)) node.scrollTop += box.top - frame.top - frame.height / 2;
  };
}

const THEMES = [["", "◐", "as the system"], ["light", "☀", "light"], ["dark", "☾", "dark"]];

export function themes() {
  const node = document.getElementById("theme");
  let at = 0;
  const next = () => {
    at = (at + 1) % THEMES.length;
    const [name, mark, words] = THEMES[at];
    if (name) document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
    node.textContent = mark;
    node.setAttribute("aria-label", `Colours: ${words}`);
  };
  node.addEventListener("click", next);
  return next;
}
