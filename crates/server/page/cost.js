// What it cost: over all, with the sessions behind each figure, and of one transcript, call by call.

import { at, get } from "./api.js";
import { bars } from "./charts.js";
import { filterBar, filtersOf, rowKeys, sortable, unfold, whenGrown } from "./ledger.js";
import { agentName, count, dayOf, dollars, duration, el, empty, failed, grouped, heading, link, money, num, press, section, short, str, table, titleOf, to, tokensOf, visible, when } from "./parts.js";
import { transcriptHead } from "./transcript.js";

const strong = (...children) => el("strong", "", ...children);
const unknown = (words = "unknown") => el("span", "unknown", words);

// Money is exact: whole numbers of 1e-24 dollars.
const PLACES = 24;

/** An exact text as a whole number. */
function exact(text) {
  const match = /^(-?)(\d+)(?:\.(\d*))?$/.exec(str(text));
  if (!match) return null;
  const value = BigInt(match[2] + (match[3] ?? "").slice(0, PLACES).padEnd(PLACES, "0"));
  return match[1] ? -value : value;
}

/** A whole number as an exact text. */
function told(value) {
  const text = String(value < 0n ? -value : value).padStart(PLACES + 1, "0");
  const rest = text.slice(-PLACES).replace(/0+$/, "");
  return `${value < 0n ? "-" : ""}${text.slice(0, -PLACES)}${rest ? `.${rest}` : ""}`;
}

/** The sum of what has a price; null when nothing has. */
function added(texts) {
  const known = texts.map(exact).filter((value) => value !== null);
  return known.length > 0 ? told(known.reduce((sum, value) => sum + value, 0n)) : null;
}

/** What was spent, with a sign where something of it has no price. */
function spentCell(spent) {
  if (!spent || (spent.calls === 0 && spent.tokens.total === 0)) return unknown("–");
  if (spent.usd === null) return unknown("no price");
  const node = money(spent.usd);
  if (spent.unpriced_tokens > 0) {
    const more = el("span", "", node, unknown(" + ?"));
    more.title = `${grouped.format(spent.unpriced_tokens)} tokens have no price`;
    return more;
  }
  return node;
}

const usdOf = (row) => (row.spent?.usd === null || !row.spent ? null : Number(row.spent.usd));
const fig = (value) => (num(value) === null ? unknown("–") : grouped.format(value));
const brief = (value) => {
  if (num(value) === null) return unknown("–");
  const node = el("span", "", short(value));
  node.title = grouped.format(value);
  return node;
};

/** The sessions behind a figure, each with its proof. `filters` are at least as wide as the group; `isIn` says which rows are of it. */
function behind(by, filters, isIn, signal) {
  return async (cell) => {
    cell.replaceChildren(el("p", "quiet", "Reading…"));
    try {
      const stats = await get("/api/v1/stats", { ...filters, by: `${by},session`, zone: zone() }, signal);
      const rows = stats.rows.filter(isIn).sort((one, other) => (usdOf(other) ?? -1) - (usdOf(one) ?? -1));
      cell.replaceChildren(sessionRows(rows.slice(0, 100)));
      if (rows.length > 100) cell.append(el("p", "small", `… and ${grouped.format(rows.length - 100)} more, which cost less`));
    } catch (error) {
      if (!signal.aborted) cell.replaceChildren(el("p", "nothing", error.message));
    }
  };
}

function sessionRows(rows) {
  return table("The sessions behind the figure", [{ name: "Session" }, { name: "Calls", number: true }, { name: "Tokens", number: true }, { name: "Cost", number: true }], rows.map((row) => {
    const name = visible(str(row.title)) || visible(str(row.session)) || "a session";
    const where = row.id ?? row.session;
    return [where ? link(to(where), "quiet-link cost-name", `behind-${where}`, name) : name, fig(row.spent?.calls), tokensOf(row.spent?.tokens), where ? link(to(where, "cost"), "", `proof-${where}`, spentCell(row.spent)) : spentCell(row.spent)];
  }));
}

const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
const DAY = 86400000;

/** A table of groups: the name narrows the screen, the figure shows the sessions behind it. */
function groupTable({ by, title, rows, filters, narrow, name, signal, isByName = false }) {
  const most = Math.max(...rows.map((row) => usdOf(row) ?? 0), 1e-18);
  const columns = [
    {
      name: title, value: (row) => str(row[by]).toLowerCase(), cell: (row) => {
        const bar = el("span", "ledger-bar");
        bar.style.setProperty("--wide", `${(((usdOf(row) ?? 0) / most) * 100).toFixed(2)}%`);
        bar.style.setProperty("--bad-share", "0%");
        bar.hidden = !usdOf(row);
        const next = narrow(row);
        const words = name(row);
        return el("span", "ledger-tool", next ? link(at("/cost", { ...filters, ...next }), "quiet-link", `${by}-${row[by]}`, words) : words, bar);
      },
    },
    { name: "Calls", number: true, value: (row) => num(row.spent?.calls), cell: (row) => fig(row.spent?.calls) },
    { name: "Input", number: true, title: "Tokens of input that no cache had", value: (row) => num(row.spent?.tokens.input), cell: (row) => brief(row.spent?.tokens.input) },
    { name: "Cache read", number: true, value: (row) => num(row.spent?.tokens.cache_read), cell: (row) => brief(row.spent?.tokens.cache_read) },
    { name: "Cache write", number: true, value: (row) => num(row.spent?.tokens.cache_write), cell: (row) => brief(row.spent?.tokens.cache_write) },
    { name: "Output", number: true, value: (row) => num(row.spent?.tokens.output), cell: (row) => brief(row.spent?.tokens.output) },
    {
      name: "Cost", number: true, title: "Press it for the sessions behind it", value: usdOf, cell: (row) => {
        const button = press("", "ledger-more", `behind-${by}-${row[by]}`, () => unfold(button, behind(by, { ...filters, ...(narrow(row) ?? {}), ...(by === "day" ? around(row.day) : {}) }, (it) => it[by] === row[by], signal)));
        button.append(spentCell(row.spent));
        button.setAttribute("aria-expanded", "false");
        return button;
      },
    },
  ];
  return more(rows, (some) => sortable({ caption: title, uiid: `by-${by}`, columns, rows: some, by: isByName ? 0 : 6, isDown: true, className: "ledger" }), by);
}

/** The first rows of a table, and a button for the rest. */
function more(rows, make, uiid, most = 15) {
  const node = el("div", "", make(rows.slice(0, most)));
  if (rows.length > most) node.append(press(`Show all ${grouped.format(rows.length)}`, "more", `${uiid}-all`, () => node.replaceChildren(make(rows))));
  return node;
}

/** The days beside a day, because the server may count days by another zone than the reader. */
function around(day) {
  const time = Date.parse(`${day}T12:00:00Z`);
  if (Number.isNaN(time)) return { since: "", until: "" };
  const text = (it) => new Date(it).toISOString().slice(0, 10);
  return { since: text(time - DAY), until: text(time + DAY) };
}

const isDay = (text) => /^\d{4}-\d\d-\d\d$/.test(str(text));

/** What the days of the chart cost: the last ones of the calendar, or where those are nearly empty, the last ones with calls. */
function daysOf(rows, most) {
  const dated = rows.filter((row) => isDay(row.day) && row.spent?.calls > 0).sort((one, other) => one.day.localeCompare(other.day));
  if (dated.length === 0) return { items: [], words: "" };
  // A day without calls cost nothing; one whose calls have no price is not known.
  const item = (day, row) => ({ label: day, value: !row ? 0 : row.spent.usd === null ? null : Number(row.spent.usd), note: row ? count(row.spent.calls, "call") : "no call", isNow: day === dayOf(new Date()) });
  const byDay = new Map(dated.map((row) => [row.day, row]));
  const last = Date.parse(`${dated.at(-1).day}T00:00:00Z`);
  const first = Math.max(Date.parse(`${dated[0].day}T00:00:00Z`), last - (most - 1) * DAY);
  const calendar = [];
  for (let time = first; time <= last; time += DAY) calendar.push(new Date(time).toISOString().slice(0, 10));
  const full = calendar.filter((day) => byDay.has(day)).length;
  if (full >= Math.min(8, dated.length) || full * 4 > calendar.length) return { items: calendar.map((day) => item(day, byDay.get(day))), words: dated.length > full ? `Drawn are the last ${most} days; the table has all ${grouped.format(dated.length)} on which models were called.` : "" };
  const some = dated.slice(-most);
  return { items: some.map((row) => item(row.day, row)), words: `Drawn are ${dated.length > some.length ? `the last ${grouped.format(some.length)}` : "the"} days on which models were called, side by side; the days between them are left out.` };
}

const WASTE = {
  cache_lost: ["Cache lost", "Tokens that had to be sent again after a pause that was longer than the cache lasts."],
  resent: ["Resent", "Tokens that were sent again without such a pause: the prompt changed near its beginning, or no cache was used."],
  repeated: ["Repeated", "Tool calls with the same input as one before. It may have been useful: tests are run again."],
  retried: ["Retried", "The same, and the one before had failed."],
};

function wasteTable(report) {
  const rows = report.waste.filter((it) => it.all.times > 0);
  if (rows.length === 0) return el("p", "small", "None was found: no cache lost, nothing sent or done twice.");
  return table("Kinds of waste", [{ name: "What" }, { name: "Times", number: true }, { name: "Tokens", number: true }, { name: "Cost", number: true }], rows.map((it) => {
    const [name, meaning] = WASTE[it.kind] ?? [it.kind, ""];
    const sum = el("span", "", it.at_most ? "at most " : "", it.all.tokens.total === 0 && it.all.usd === "0" ? unknown() : money(it.all.usd));
    if (it.all.unpriced_tokens > 0) sum.append(unknown(" + ?"));
    const button = press(it.sessions.length > 0 ? grouped.format(it.all.times) : "", "ledger-more", `waste-${it.kind}`, () => unfold(button, (cell) => cell.append(table(`${name}: the sessions with most of it`, [{ name: "Session" }, { name: "Times", number: true }, { name: "Tokens", number: true }, { name: "Cost", number: true }], it.sessions.map((one) => [link(to(one.session), "quiet-link cost-name", `waste-${it.kind}-${one.session}`, visible(str(one.title)) || visible(one.session)), fig(one.wasted.times), one.wasted.tokens.total > 0 ? brief(one.wasted.tokens.total) : unknown("–"), link(to(one.session, "cost"), "", `waste-proof-${it.kind}-${one.session}`, money(one.wasted.usd))])))));
    button.setAttribute("aria-expanded", "false");
    button.setAttribute("aria-label", `${count(it.all.times, "time")}: show the sessions with most of it`);
    return [el("span", "", strong(name), el("br"), el("span", "small", meaning)), it.sessions.length > 0 ? button : fig(it.all.times), it.all.tokens.total > 0 ? brief(it.all.tokens.total) : unknown("–"), sum];
  }));
}

const HOUR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const clock = (text) => {
  const time = new Date(str(text));
  return Number.isNaN(time.getTime()) ? unknown() : HOUR.format(time);
};

/** The windows of five hours by which subscriptions count. */
function blockPart(page) {
  const nodes = [];
  const active = page.blocks.filter((it) => it.active);
  for (const it of active) {
    const words = el("p", "lede", `The window of ${agentName(it.agent)} began ${it.start ? "at " : ""}`, strong(clock(it.start)), " and lasts another ", strong(duration(it.left_ms ?? 0)), ". So far ", strong(count(it.spent.calls, "call")), ", ", strong(short(it.spent.tokens.total)), " tokens, ", strong(spentCell(it.spent)), ".");
    if (it.projection) words.append(` At this rate, ${grouped.format(it.projection.tokens_per_minute)} tokens a minute, it would end with about `, strong(short(it.projection.tokens)), " tokens", it.projection.usd === null ? "" : ` and ${dollars(it.projection.usd)}`, ". That is a projection, not a figure.");
    nodes.push(words);
  }
  if (active.length === 0) nodes.push(el("p", "small", "No window is open now: nothing was done within the last five hours."));
  const rows = [...page.blocks].sort((one, other) => str(other.start).localeCompare(str(one.start)));
  nodes.push(more(rows, (some) => table("Windows, the latest first", [{ name: "Began" }, { name: "Agent" }, { name: "At work", number: true }, { name: "Calls", number: true }, { name: "Tokens", number: true }, { name: "Cost by the list", number: true }], some.map((it) => [el("span", it.active ? "cost-now" : "", clock(it.start), it.active ? " · now" : ""), agentName(it.agent), duration(it.active_quarters * 900000), fig(it.spent.calls), it.spent.tokens.total > 0 ? brief(it.spent.tokens.total) : unknown("–"), spentCell(it.spent)])), "blocks", 10));
  if (page.undated_tokens > 0) nodes.push(el("p", "small", `${grouped.format(page.undated_tokens)} tokens of calls whose time is not known are in no window.`));
  return nodes;
}

/** Cost over all. */
export async function cost(screen, isAgain = false) {
  const { main, query, signal, go } = screen;
  if (!isAgain) whenGrown(main, signal, () => true, () => cost(screen, true));
  const filters = filtersOf(query);
  const ask = (path, params = {}) => get(path, { ...filters, ...params }, signal);
  const stats = (by) => ask("/api/v1/stats", { by, zone: zone() });
  document.body.classList.add("view-figures");
  let answers;
  try {
    answers = await Promise.all([stats("day"), stats("model"), stats("project"), stats("agent"), ask("/api/v1/waste", { zone: zone() }), ask("/api/v1/stats/blocks")]);
  } catch (error) {
    if (error.status !== 400) throw error;
    main.replaceChildren(heading("Cost"), filterBar("/cost", query, go), failed(error));
    return { title: "Cost" };
  }
  const [days, models, projects, agents, waste, blocks] = answers;
  const names = (page, name) => page.rows.map((row) => str(row[name])).filter((it) => it && !it.startsWith("("));
  const bar = filterBar("/cost", query, go, { agent: names(agents, "agent"), model: names(models, "model"), project: names(projects, "project") });
  const { spent } = days.total;
  if (!spent || spent.calls === 0) {
    main.replaceChildren(heading("Cost"), bar, empty(Object.keys(filters).length > 0 ? "No model was called in such sessions." : "No call of a model is known yet. When agents have worked, what it cost stands here."));
    return { title: "Cost" };
  }
  const lede = el("p", "lede", Object.keys(filters).length > 0 ? "This selection cost " : "All that is kept here cost ", spent.usd === null ? unknown("an unknown sum") : strong(money(spent.usd)), ": ", strong(count(spent.calls, "call")), " of models, ", strong(short(spent.tokens.total)), " tokens.");
  if (num(spent.tokens.cache_read)) lede.append(` ${Math.round((spent.tokens.cache_read / Math.max(1, spent.tokens.total)) * 100)}\u00a0% of them were read from caches.`);
  if (spent.unpriced_tokens > 0) lede.append(" ", strong(short(spent.unpriced_tokens)), " tokens have ", unknown("no price"), " and are in no sum.");
  const now = el("p", "small cost-about", "By the prices of the vendors’ interfaces at the time of each call. What a subscription costs is another matter. Press a figure for the sessions behind it, and there for the proof, call by call.");
  const dated = days.rows.filter((row) => isDay(row.day) && row.spent?.calls > 0).sort((one, other) => other.day.localeCompare(one.day));
  const undated = days.rows.filter((row) => !isDay(row.day) && row.spent?.calls > 0);
  const { items: chart, words: drawn } = daysOf(days.rows, innerWidth < 700 ? 28 : 60);
  const byDay = section("By day", chart.length > 0 ? bars(`Cost by day, from ${chart[0].label} to ${chart.at(-1).label}`, chart, (value) => dollars(value)) : "", drawn ? el("p", "small cost-drawn", drawn) : "", groupTable({ by: "day", title: "Day", rows: [...dated, ...undated], filters, narrow: (row) => (isDay(row.day) ? { since: row.day, until: row.day } : null), name: (row) => str(row.day), signal, isByName: true }));
  const byModel = section("By model", groupTable({ by: "model", title: "Model", rows: models.rows, filters, narrow: (row) => (row.model && !row.model.startsWith("(") ? { model: row.model } : null), name: (row) => visible(str(row.model)) || "not named", signal }));
  const byProject = section("By project", groupTable({ by: "project", title: "Project", rows: projects.rows, filters, narrow: (row) => (row.project && !row.project.startsWith("(") ? { project: row.project } : null), name: (row) => visible(str(row.project)) || "none", signal }));
  const byAgent = section("By agent", groupTable({ by: "agent", title: "Agent", rows: agents.rows, filters, narrow: (row) => (row.agent ? { agent: row.agent } : null), name: (row) => agentName(str(row.agent)), signal }));
  const parts = [heading("Cost"), bar, lede, now, byDay, byModel, byProject, byAgent, section("Waste", el("p", "small cost-note", "What need not have been paid for, as far as logs tell."), wasteTable(waste))];
  if (blocks.blocks.length > 0) parts.push(section("Windows of five hours", el("p", "small cost-note", "Subscriptions count by windows of five hours. A window begins with the hour in which something is first done."), ...blockPart(blocks)));
  if (days.unpriced.length > 0) parts.push(section("Without a price", el("p", "small cost-note", "These models stand in no table of prices. “[[prices.model]]” in config.toml gives one its price."), more(days.unpriced, (some) => table("Models without a price", [{ name: "Model" }, { name: "Calls", number: true }, { name: "Tokens", number: true }, { name: "Searches", number: true }], some.map((it) => [it.model ? link(at("/cost", { ...filters, model: it.model }), "quiet-link", `unpriced-${it.model}`, visible(it.model)) : unknown("not named"), fig(it.calls), brief(it.tokens), fig(it.searches)])), "unpriced")));
  if (days.outdated_logs > 0) parts.push(el("p", "small", `${count(days.outdated_logs, "log was", "logs were")} read by an earlier version; figures may be missing. “quipu import --rebuild” reads them again.`));
  main.replaceChildren(...parts);
  return { title: "Cost", keys: rowKeys(main), help: [["j k", "next, previous row"]] };
}

const RULES = { listed: "the name is listed", marked: "the name is listed without its mark, such as a date", begins: "it begins with a listed name", config: "from your configuration" };
const WHY = {
  repeated: "The log says the same call again.",
  copied: "Copied from another session, and counted there.",
  retold: "The whole log tells again what another session tells.",
  not_asked: "Of another time or model than asked for.",
  total: "Running totals that say nothing new.",
  no_usage: "Messages of a model without any tokens.",
};
const BUCKETS = [["input", "input"], ["cache_read", "cache read"], ["cache_write", "cache write"], ["cache_write_1h", "cache write, 1 h"], ["output", "output"], ["reasoning", "reasoning"]];

/** The tokens of a call as they are paid: an hour of cache apart from five minutes, reasoning apart from output. */
function paid(call) {
  const of = (name) => num(call.tokens[name]) ?? 0;
  return [["input", of("input")], ["cache_read", of("cache_read")], ["cache_write", of("cache_write") - of("cache_write_1h")], ["cache_write_1h", of("cache_write_1h")], ["output", of("output") - of("reasoning")], ["reasoning", of("reasoning")]].filter(([, tokens]) => tokens > 0);
}

/** How the cost of a call comes about: each kind of tokens times its price. */
function proof(call, number) {
  if (!call.price) return el("div", "cost-proof", el("p", "", call.priced_by === "log" ? `The table has no price for ${visible(call.model) || "a model without a name"}. The log itself says $${call.told_usd ?? call.usd}.` : visible(str(call.no_price)) || "It has no price."));
  const million = 1000000n;
  let sum = 0n;
  const rows = paid(call).map(([name, tokens]) => {
    const rate = call.price.per_million[name];
    const value = rate ? (exact(rate.usd) * BigInt(tokens)) / million : null;
    sum += value ?? 0n;
    return [BUCKETS.find(([it]) => it === name)[1], grouped.format(tokens), rate ? el("span", "", `$${rate.usd}`, rate.assumed ? el("span", "small", " not listed, taken from another kind") : "") : unknown("no price"), value === null ? unknown("–") : `$${told(value)}`];
  });
  if (call.searches > 0) {
    const rate = call.price.per_thousand_searches;
    const value = rate === null ? null : (exact(rate) * BigInt(call.searches)) / 1000n;
    sum += value ?? 0n;
    rows.push(["searches of the web", grouped.format(call.searches), rate === null ? unknown("no price") : `$${rate} per thousand`, value === null ? unknown("–") : `$${told(value)}`]);
  }
  const isSame = call.usd !== null && exact(call.usd) === sum;
  const verdict = el("p", "", "Together ", strong(`$${told(sum)}`), isSame ? ", which is the figure above." : call.usd === null ? "." : `; the figure is $${call.usd}.`, ` Price ${number}: ${visible(call.price.provider)}, ${visible(call.price.model)}, ${RULES[call.price.rule] ?? call.price.rule}, from ${visible(call.price.source)}.`);
  if (call.told_usd !== null && call.priced_by === "table") verdict.append(` The log says $${call.told_usd}.`);
  return el("div", "cost-proof", table("How the cost comes about", [{ name: "Kind" }, { name: "Tokens", number: true }, { name: "Per million", number: true }, { name: "Cost", number: true }], rows), verdict);
}

/** Sums by something that calls have in common. */
function sums(calls, nameOf) {
  const groups = new Map();
  for (const call of calls) {
    const name = nameOf(call);
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(call);
  }
  return [...groups].map(([name, list]) => ({ name, calls: list.length, tokens: list.reduce((sum, call) => sum + call.tokens.total, 0), usd: added(list.map((call) => call.usd)), unpriced: list.filter((call) => call.usd === null).length, first: list[0].seq }));
}

function sumTable(title, id, rows, label) {
  return sortable({
    caption: title, uiid: `sum-${label.toLowerCase()}`, rows, by: 3, columns: [
      { name: label, value: (row) => row.name.toLowerCase(), cell: (row) => link(to(id, "", row.first), "quiet-link", `sum-${row.first}`, row.name) },
      { name: "Calls", number: true, value: (row) => row.calls, cell: (row) => fig(row.calls) },
      { name: "Tokens", number: true, value: (row) => row.tokens, cell: (row) => brief(row.tokens) },
      { name: "Cost", number: true, value: (row) => (row.usd === null ? null : Number(row.usd)), cell: (row) => el("span", "", money(row.usd), row.usd !== null && row.unpriced > 0 ? unknown(" + ?") : "") },
    ],
  });
}

const FIRST = 200;
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** When a call was made: the clock, and the day where it is another one than that of the first. */
function moment(text, first) {
  const node = when(text);
  const time = new Date(str(text));
  if (Number.isNaN(time.getTime())) return node;
  const day = dayOf(time);
  node.textContent = day === dayOf(new Date(str(first))) ? CLOCK.format(time) : `${day} ${CLOCK.format(time)}`;
  return node;
}

/** Calls, each with its cost and how that comes about. */
function callTable(id, calls, prices) {
  const hasSub = calls.some((call) => call.subagent);
  const hasModels = new Set(calls.map((call) => call.model)).size > 1;
  const columns = [
    { name: "Event", value: (call) => call.seq, cell: (call) => link(to(id, "", call.seq), "", `call-${call.seq}`, `#${grouped.format(call.seq)}`) },
    { name: "When", value: (call) => str(call.at), cell: (call) => moment(call.at, calls[0].at) },
    ...(hasModels ? [{ name: "Model", value: (call) => call.model, cell: (call) => visible(call.model) || unknown("not named") }] : []),
    ...(hasSub ? [{ name: "Sub-agent", value: (call) => call.subagent, cell: (call) => visible(call.subagent) }] : []),
    { name: "Input", number: true, title: "Tokens that no cache had", value: (call) => num(call.tokens.input), cell: (call) => fig(call.tokens.input) },
    { name: "Cache read", number: true, value: (call) => num(call.tokens.cache_read), cell: (call) => fig(call.tokens.cache_read) },
    { name: "Cache write", number: true, value: (call) => num(call.tokens.cache_write), cell: (call) => fig(call.tokens.cache_write) },
    { name: "Output", number: true, title: "Reasoning included", value: (call) => num(call.tokens.output), cell: (call) => fig(call.tokens.output) },
    {
      name: "Cost", number: true, title: "Press it for how it comes about", value: (call) => (call.usd === null ? null : Number(call.usd)), cell: (call) => {
        const button = press("", "ledger-more", `proof-${call.seq}`, () => unfold(button, (cell) => cell.append(proof(call, prices.get(keyOf(call.price)) ?? ""))));
        button.append(money(call.usd, call.no_price ?? ""));
        button.setAttribute("aria-expanded", "false");
        return button;
      },
    },
    { name: "Price", number: true, title: "Which of the prices below", cell: (call) => (call.price ? link(`#price-${prices.get(keyOf(call.price))}`, "quiet-link", `price-of-${call.seq}`, String(prices.get(keyOf(call.price)))) : call.priced_by === "log" ? "the log" : "") },
  ];
  const make = (some) => sortable({ caption: "Calls", uiid: "calls", columns, rows: some, by: 0, isDown: false });
  const node = el("div", "", make(calls.slice(0, FIRST)));
  if (calls.length > FIRST) node.append(press(`Show all ${grouped.format(calls.length)} calls`, "more", "calls-all", () => node.replaceChildren(make(calls))));
  return node;
}

const keyOf = (price) => (price ? JSON.stringify(price) : "");

/** The prices that calls were paid by, each once. */
function priceTable(calls, prices) {
  const list = [...new Map(calls.filter((call) => call.price).map((call) => [keyOf(call.price), call.price])).entries()];
  const uses = new Set(calls.flatMap((call) => paid(call).map(([name]) => name)));
  const kinds = BUCKETS.filter(([name]) => uses.has(name) || name === "input" || name === "output");
  const node = table("Dollars per million tokens", [{ name: el("span", "off-screen", "Number") }, { name: "Model" }, { name: "How it was found" }, ...kinds.map(([, name]) => ({ name, number: true, title: "Dollars per million tokens" })), { name: "Source" }], list.map(([key, price]) => {
    const n = el("span", "cost-price", String(prices.get(key)));
    n.id = `price-${prices.get(key)}`;
    const about = [price.service !== "standard" ? price.service : "", price.above > 0 ? `prompts over ${grouped.format(price.above)} tokens` : "", price.from ? `from ${price.from}` : "", price.per_thousand_searches !== null && calls.some((call) => call.searches > 0) ? `$${price.per_thousand_searches} per thousand searches` : ""].filter(Boolean).join(", ");
    return [n, el("span", "", `${visible(price.provider)} ${visible(price.model)}`, about ? el("span", "small", ` ${about}`) : ""), RULES[price.rule] ?? price.rule, ...kinds.map(([name]) => {
      const rate = price.per_million[name];
      if (!rate) return unknown("–");
      const cell = el("span", rate.assumed ? "unknown" : "", `$${rate.usd}`);
      if (rate.assumed) cell.title = "Not listed: taken from another kind of tokens";
      return cell;
    }), el("span", "small", visible(str(price.source_date)) || visible(price.source))];
  }));
  return el("div", "", node, el("p", "small", "Dollars per million tokens. What is set in italics is not listed, and taken from another kind of tokens."));
}

/** What sub-agents with transcripts of their own cost. */
async function childrenOf(detail, signal) {
  const found = [];
  const wait = detail.lineage.children.filter((it) => it.id);
  const seen = new Set([detail.transcript.id]);
  while (wait.length > 0 && found.length < 100) {
    const some = wait.splice(0, 8).filter((it) => !seen.has(it.id));
    some.forEach((it) => seen.add(it.id));
    for (const it of await Promise.all(some.map((one) => get(`/api/v1/transcripts/${encodeURIComponent(one.id)}`, {}, signal)))) {
      found.push(it);
      wait.push(...it.lineage.children.filter((one) => one.id));
    }
  }
  return { found, rest: wait.length };
}

/** The steps that calls were made in, by the number of their event. */
async function pathsOf(base, signal) {
  const turns = [];
  for (let from = 1; from !== null && turns.length < 100000; ) {
    const page = await get(`${base}/context`, { from, limit: 5000 }, signal);
    turns.push(...page.turns);
    from = page.next !== null && page.next > from ? page.next : null;
  }
  return (seq) => {
    let [low, high] = [0, turns.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (turns[middle].seq_from <= seq) low = middle + 1;
      else high = middle;
    }
    return visible(str(turns[low - 1]?.path));
  };
}

/** Cost of one transcript. */
export async function costOfOne(screen, isAgain = false) {
  const { main, params, signal } = screen;
  const base = `/api/v1/transcripts/${encodeURIComponent(params.id)}`;
  const [detail, page] = await Promise.all([get(base, {}, signal), get(`${base}/cost`, {}, signal)]);
  const { id } = detail.transcript;
  const isRun = detail.transcript.agent === "quipu" || detail.transcript.dialect === "exchange";
  const [children, pathOf] = await Promise.all([childrenOf(detail, signal), isRun && page.calls.length > 0 ? pathsOf(base, signal).catch(() => null) : null]);
  const { spent, calls } = page;
  const below = isRun ? "called run" : "sub-agent";
  const holder = el("div");
  const title = `Cost: ${titleOf(detail.transcript)}`;
  document.body.classList.add("view-figures");
  main.replaceChildren(transcriptHead(detail, "cost"), holder);

  const lede = el("p", "lede", "It cost ", spent.usd === null ? unknown("an unknown sum") : strong(money(spent.usd)));
  if (spent.usd !== null && dollars(spent.usd) !== `$${spent.usd}`) lede.append(`, exactly $${spent.usd}`);
  lede.append(": ", strong(count(spent.calls, "call")), " of models, ", strong(grouped.format(spent.tokens.total)), " tokens", spent.searches > 0 ? `, ${count(spent.searches, "search of the web", "searches of the web")}` : "", ".");
  if (spent.unpriced_tokens > 0) lede.append(" ", strong(grouped.format(spent.unpriced_tokens)), " tokens have ", unknown("no price"), " and are in no sum.");
  if (children.found.length > 0) {
    const all = [spent, ...children.found.map((it) => it.spent)].filter((it) => it.calls > 0);
    const sum = added(all.map((it) => it.usd));
    lede.append(" With ", strong(count(children.found.length, below)), " that ", children.found.length === 1 ? "has a transcript of its" : "have transcripts of their", " own: ", sum === null ? unknown("an unknown sum") : strong(`$${sum}`), sum !== null && all.some((it) => it.unpriced_tokens > 0) ? unknown(" + ?") : "", ".");
  }
  if (calls.length === 0) holder.append(empty(page.left_out.length > 0 ? "No call is counted here; below is what was left out, and why." : "The log tells of no tokens, so what it cost is unknown."));
  else holder.append(lede);
  holder.append(vendor(page));

  const prices = new Map();
  for (const call of calls) if (call.price && !prices.has(keyOf(call.price))) prices.set(keyOf(call.price), prices.size + 1);
  const bySub = sums(calls, (call) => visible(call.subagent) || "the session itself");
  const byModel = sums(calls, (call) => visible(call.model) || "not named");
  const byStep = pathOf ? sums(calls, (call) => pathOf(call.seq) || "outside of steps") : [];
  if (byStep.length > 1 || (byStep.length === 1 && byStep[0].name !== "outside of steps")) holder.append(section("By step", sumTable("Sums by step", id, byStep, "Step")));
  if (bySub.length > 1) holder.append(section("By sub-agent", sumTable("Sums by sub-agent", id, bySub, "Sub-agent")));
  if (children.found.length > 0) {
    holder.append(section(isRun ? "Runs that it called" : "Sub-agents with transcripts of their own", table("What each of them cost", [{ name: isRun ? "Run" : "Sub-agent" }, { name: "Calls", number: true }, { name: "Tokens", number: true }, { name: "Cost", number: true }], children.found.map((it) => [link(to(it.transcript.id), "quiet-link cost-name", `child-${it.transcript.id}`, titleOf(it.transcript)), fig(it.spent.calls), tokensOf(it.spent.tokens), link(to(it.transcript.id, "cost"), "", `child-cost-${it.transcript.id}`, spentCell(it.spent))])), children.rest > 0 ? el("p", "small", `… and ${grouped.format(children.rest)} more`) : ""));
  }
  if (byModel.length > 1) holder.append(section("By model", sumTable("Sums by model", id, byModel, "Model")));
  if (calls.length > 0) holder.append(section("Call by call", el("p", "small cost-note", "Press a cost for how it comes about."), callTable(id, calls, prices)));
  if (prices.size > 0) holder.append(section("Prices", priceTable(calls, prices)));
  if (page.left_out.length > 0) {
    holder.append(section("Left out", table("What is not counted, and why", [{ name: "Why" }, { name: "Counted in" }, { name: "Times", number: true }, { name: "Tokens", number: true }], page.left_out.map((it) => [WHY[it.why] ?? it.why, it.of ? link(to(it.of, "cost"), "", `left-${it.of}`, visible(it.of)) : "", fig(it.times), it.tokens.total > 0 ? tokensOf(it.tokens) : unknown("–")]))));
  }
  if (!isAgain) whenGrown(main, signal, (change) => change.transcript === id || change.reload, () => costOfOne(screen, true));
  return { title, keys: rowKeys(main), help: [["j k", "next, previous row"]], moved: () => document.getElementById(location.hash.slice(1))?.scrollIntoView({ block: "center" }) };
}

/** The vendor's own sums beside ours. */
function vendor(page) {
  if (page.vendor_usd === null && !page.vendor_tokens) return "";
  const parts = [];
  if (page.vendor_usd !== null) {
    const [ours, theirs] = [exact(page.spent.usd), exact(page.vendor_usd)];
    parts.push(el("p", "cost-vendor", "The log’s own figure is ", strong(`$${page.vendor_usd}`), ours === null ? "." : theirs !== null && ours === theirs ? ", the same." : theirs === null ? "." : `; ours is ${ours > theirs ? `$${told(ours - theirs)} more` : `$${told(theirs - ours)} less`}.`));
  }
  if (page.vendor_tokens) {
    const differs = page.vendor_tokens.total - page.log_tokens.total;
    parts.push(el("p", "cost-vendor", "The log’s own sum of tokens is ", strong(grouped.format(page.vendor_tokens.total)), differs === 0 ? ", the same as that of its calls." : `; that of its calls is ${grouped.format(page.log_tokens.total)}.`));
  }
  for (const why of page.differs) parts.push(el("p", "small", visible(why)));
  return el("div", "cost-vendors", ...parts);
}
