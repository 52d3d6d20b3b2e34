// The overview: what happened today and lately, as a bundle of cords whose knots are sessions.

import { get } from "./api.js";
import { bars, bundle } from "./charts.js";
import { onAdvance, recently } from "./live.js";
import { size } from "./text.js";
import { agentName, count, dayOf, dollars, duration, el, empty, failed, grouped, link, num, press, projectOf, section, short, str, table, titleOf, to, visible, when } from "./parts.js";
import { costNode, figuresOf, paced } from "./sessions.js";

const DAY_MS = 86400000;
const RUNNING_MS = 5 * 60000;
const NEWEST = 1000;
const LATELY = 8;
const MOST_CORDS = 9;
const MOST_LINES = 8;
const MOST_RUNNING = 8;
const MOST_LOGS = 4;
/** How far back the screen looks: as little as shows something on several days. */
const SPANS = [[28, "the last four weeks"], [91, "the last three months"], [182, "the last half year"], [365, "the last year"]];
const ENOUGH_DAYS = 4;

const SHORT_DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const TITLE = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });

const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;
const timeOf = (transcript) => {
  const end = Date.parse(str(transcript.ended_at));
  return Number.isNaN(end) ? Date.parse(str(transcript.started_at)) : end;
};
/** What Quipu ran itself. */
const isRun = (transcript) => transcript.agent === "quipu";
const badOf = (transcript) => (num(transcript.failures) ?? 0) + (num(transcript.errors) ?? 0);
const sentence = (...parts) => el("p", "overview-say", ...parts);

/** Puts nodes in the place of others, and the focus back to where it was. */
function refill(place, ...nodes) {
  const focus = place.contains(document.activeElement) ? document.activeElement.dataset.uiid : "";
  place.replaceChildren(...nodes.filter(Boolean));
  if (focus) place.querySelector(`[data-uiid="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
}

/** What is asked of each session. */
const FIELDS = "id,run_id,title,agent,cwd,repository,branch,started_at,ended_at,failures,errors,spent,did,subagents";

/** What a group of days spent and did, from rows of `/stats?by=day`. */
function sumOf(rows) {
  const sum = { usd: 0, isPriced: false, unpriced: 0, tokens: 0, failures: 0, tools: 0, active: 0, calls: 0 };
  for (const { spent, did } of rows) {
    if (spent && spent.calls > 0) {
      sum.calls += spent.calls;
      sum.tokens += spent.tokens.total;
      sum.unpriced += spent.unpriced_tokens;
      if (spent.usd !== null) {
        sum.usd += Number(spent.usd);
        sum.isPriced = true;
      }
    }
    sum.failures += did?.failures ?? 0;
    sum.tools += did?.tool_calls ?? 0;
    sum.active += did?.active_ms ?? 0;
  }
  return sum;
}

/** What was spent, in words; nothing where nothing is known. */
function spentWords(sum) {
  if (sum.calls === 0) return "";
  if (!sum.isPriced) return `${short(sum.tokens)} tokens without a price`;
  return `${dollars(sum.usd)}${sum.unpriced > 0 ? "\u00a0+\u00a0?" : ""}`;
}

/** The screen. */
export async function overview({ main, query, signal, go }) {
  const ask = (path, params) => {
    const answer = get(path, params, signal);
    answer.catch(() => {});
    return answer;
  };
  const state = { status: ask("/api/v1/status"), list: ask("/api/v1/transcripts", { limit: NEWEST, fields: FIELDS }), days: ask("/api/v1/stats", { by: "day", zone: zone() }), executions: ask("/api/v1/executions", { limit: 50 }) };
  const known = { status: await state.status, list: null, isPart: false, days: null, figures: new Map(), executions: [], doctor: null, expiring: null, budgets: null, span: SPANS[0] };
  let by = query.get("by") === "agent" ? "agent" : query.get("by") === "project" ? "project" : "";
  let current = -1;
  let isQuiet = false;

  const place = (name) => el("div", `overview-${name}`);
  const at = { samples: place("samples"), head: el("header", "screen-head"), running: place("running"), expiring: place("expiring"), budgets: place("budgets"), cords: place("cords"), days: place("days"), lately: place("lately"), who: place("who"), problems: place("problems") };
  main.replaceChildren(...Object.values(at));

  const inSpan = () => {
    const from = Date.now() - known.span[0] * DAY_MS;
    return (known.list ?? []).filter((it) => timeOf(it) >= from && timeOf(it) <= Date.now() + DAY_MS);
  };

  function drawSamples() {
    const { samples } = known.status;
    refill(at.samples, samples && el("p", "banner samples overview-banner", "These are samples: they come with Quipu and show what it does. As soon as an agent leaves a session on this machine, yours are here instead."));
  }

  function drawHead() {
    const words = el("p", "lede");
    const { list, days, status } = known;
    const today = dayOf(new Date());
    if (list && list.length === 0) words.append("Nothing is here yet.");
    else if (list) {
      const now = Date.now();
      const came = list.filter((it) => timeOf(it) <= now + DAY_MS);
      const ofToday = came.filter((it) => dayOf(new Date(timeOf(it))) === today);
      const weekDay = dayOf(new Date(now - 6 * DAY_MS));
      const ofWeek = came.filter((it) => !Number.isNaN(timeOf(it)) && dayOf(new Date(timeOf(it))) >= weekDay);
      const rowsFrom = (day) => (days?.rows ?? []).filter((row) => row.day >= day && row.day <= today);
      words.append(...(ofToday.length > 0 ? told(ofToday, "today", days && sumOf(rowsFrom(today))) : ["Nothing came in today. "]));
      if (ofWeek.length > ofToday.length) words.append(...told(ofWeek, "in the last seven days", days && sumOf(rowsFrom(weekDay)), known.isPart && ofWeek.length === came.length));
      else if (ofWeek.length === 0 && came[0] && !Number.isNaN(timeOf(came[0]))) words.append("The last session was ", link(to(came[0].id), "", "overview-last", titleOf(came[0])), ", ", when(came[0].ended_at ?? came[0].started_at), ". ");
    }
    const { sessions, runs } = status.transcripts;
    if (list && list.length > 0) {
      const all = days ? sumOf(days.rows) : null;
      if (isQuiet) words.append("Nothing is running now. ");
      words.append(`In all, ${count(sessions, "session")}${runs > 0 ? ` and ${count(runs, "run")}` : ""} ${sessions + runs === 1 ? "is" : "are"} kept${all && spentWords(all) ? `, ${spentWords(all)}` : ""}.`);
    }
    refill(at.head, el("h1", "", TITLE.format(new Date())), words);
  }

  /** A sentence on sessions and what they spent. */
  function told(list, time, sum, isMore = false) {
    const projects = new Set(list.map(projectOf).filter(Boolean)).size;
    const runs = list.filter(isRun).length;
    const many = [list.length > runs && count(list.length - runs, "session"), runs > 0 && count(runs, "run")].filter(Boolean).join(" and ");
    const parts = [el("strong", "", `${many}${isMore ? " or more" : ""}`), ` ${time}`, projects > 1 ? ` in ${count(projects, "project")}` : projects === 1 ? ` in ${projectOf(list.find((it) => projectOf(it)))}` : ""];
    const more = [];
    if (sum && spentWords(sum)) more.push(el("strong", "", spentWords(sum)));
    if (sum && sum.isPriced) more.push(`${short(sum.tokens)} tokens`);
    if (sum && sum.active >= 60000) more.push(`${duration(sum.active)} at work`);
    for (const it of more) parts.push(", ", it);
    if (sum && sum.failures > 0) parts.push(", ", el("span", "overview-bad", count(sum.failures, "failed tool call")));
    return [...parts, ". "];
  }

  function drawRunning() {
    const moved = recently(5);
    const now = Date.now();
    // A run says itself how it is; a session is taken for running while it grows.
    const growing = (known.list ?? []).filter((it) => !isRun(it) && (moved.has(it.id) || (timeOf(it) > now - RUNNING_MS && timeOf(it) < now + RUNNING_MS)));
    const runs = known.executions.filter((it) => it.status === "running" || it.status === "paused");
    const { import: state } = known.status;
    const reading = state.doing === "importing" ? sentence(`Quipu reads logs: ${grouped.format(state.files_done)} of ${count(state.files, "log")} so far.`) : null;
    isQuiet = growing.length + runs.length === 0 && !reading;
    if (growing.length + runs.length === 0) {
      refill(at.running, reading);
      return;
    }
    const rows = [
      ...runs.map((it) => lineNode(`/runs/${encodeURIComponent(it.id)}`, `run-${it.id}`, visible(it.workflow), [el("span", it.status === "paused" ? "badge overview-waits" : "badge live", it.status === "paused" ? "waits for an approval" : "running"), " workflow, since ", when(it.started_at)])),
      ...growing.slice(0, MOST_RUNNING).map((it) => lineNode(to(it.id), `running-${it.id}`, titleOf(it), [el("span", "badge live", "live"), ` ${[agentName(str(it.agent)), projectOf(it), str(it.branch)].filter(Boolean).map(visible).join(" · ")}, since `, when(it.started_at)])),
    ];
    refill(at.running, section("Running now", reading ?? "", el("ul", "overview-lines", ...rows), growing.length > MOST_RUNNING ? sentence(`and ${count(growing.length - MOST_RUNNING, "other session")}`) : ""));
  }

  function lineNode(href, uiid, title, about) {
    return el("li", "", link(href, "", uiid, title), el("span", "overview-about", ...about));
  }

  function drawCords() {
    const list = inSpan();
    if (list.length === 0) {
      refill(at.cords);
      return;
    }
    const names = new Set(list.map(projectOf).filter(Boolean));
    const way = by || (names.size > 1 ? "project" : "agent");
    const nameOf = way === "project" ? projectOf : (it) => str(it.agent);
    const times = list.map(timeOf);
    const now = Date.now();
    const oldest = Math.min(...times);
    // Where not all are known, the cords begin with what is.
    const from = known.isPart && known.list.length === list.length ? oldest : now - known.span[0] * DAY_MS;
    const end = Math.max(now, ...times);
    const groups = new Map();
    for (const it of list) groups.set(nameOf(it), [...(groups.get(nameOf(it)) ?? []), it]);
    const costOf = (it) => known.figures.get(it.id);
    const most = Math.max(...list.map((it) => Number(costOf(it)?.usd ?? 0)));
    const sum = (group) => group.reduce((total, it) => total + Number(costOf(it)?.usd ?? 0), 0);
    const all = [...groups].map(([name, group]) => ({ name, group, usd: sum(group) })).sort((a, b) => b.group.length - a.group.length || b.usd - a.usd);
    const shown = all.length > MOST_CORDS ? all.slice(0, MOST_CORDS - 1) : all;
    const rest = all.slice(shown.length);
    if (rest.length > 0) shown.push({ name: null, group: rest.flatMap(({ group }) => group), usd: rest.reduce((total, it) => total + it.usd, 0), many: rest.length });
    const node = bundle(`Sessions of ${known.span[1]} by ${way}. Each cord is ${way === "project" ? "a project" : "an agent"}, each knot a session.`, shown.map(({ name, group, usd, many }) => ({
      label: name === null ? `${grouped.format(many)} other ${way}s` : way === "agent" ? agentName(name) : name || "no project",
      href: name === null ? "/sessions" : `/sessions?${new URLSearchParams([[way, name]])}`,
      sum: [count(group.length, group.every(isRun) ? "run" : "session"), usd > 0 ? dollars(usd) : ""].filter(Boolean).join(", "),
      knots: group.map((it) => ({ at: Math.max(0, Math.min(1, (timeOf(it) - from) / (end - from))), size: most > 0 ? Math.sqrt(Number(costOf(it)?.usd ?? 0) / most) : 0, isError: badOf(it) > 0, title: knotWords(it), href: to(it.id) })).sort((a, b) => a.at - b.at),
    })));
    for (const name of node.querySelectorAll("a.cord-name")) {
      name.dataset.uiid = `cord-${name.textContent}`;
      name.title = name.textContent;
    }
    for (const knots of node.querySelectorAll(".knots")) rove(knots);
    node.append(el("li", "cord-row overview-axis", el("span", "", ""), el("span", "axis", el("span", "", SHORT_DAY.format(from)), el("span", "", SHORT_DAY.format((from + end) / 2)), el("span", "", end > now + DAY_MS / 2 ? SHORT_DAY.format(end) : "today")), el("span", "", "")));
    node.lastChild.setAttribute("aria-hidden", "true");
    const choices = el("p", "overview-ways");
    for (const [value, words] of [["project", "by project"], ["agent", "by agent"]]) {
      const button = press(words, "sessions-word", `cords-${value}`, () => {
        by = value;
        history.replaceState(history.state, "", `/?by=${value}`);
        drawCords();
      });
      button.setAttribute("aria-pressed", String(value === way));
      choices.append(button);
    }
    const part = section(sentenceCase(known.span[1]), node, el("p", "small overview-key", "Each knot is a session: the longer its string, the more it cost. ", el("span", "overview-bad", "■"), " had errors."));
    part.querySelector("h2").after(choices);
    refill(at.cords, part);
  }

  function knotWords(it) {
    const figures = known.figures.get(it.id);
    const cost = !figures?.hasCalls ? "cost unknown" : figures.usd === null ? "no price" : dollars(figures.usd);
    const bad = badOf(it);
    return [titleOf(it), [agentName(str(it.agent)), projectOf(it)].filter(Boolean).join(" · "), `${SHORT_DAY.format(timeOf(it))}, ${cost}${bad > 0 ? `, ${count(bad, "error")}` : ""}`].join("\n");
  }

  function drawDays() {
    const { days, span } = known;
    if (!days) return;
    const step = span[0] > 100 ? 7 : 1;
    const slots = [];
    const byDay = new Map(days.rows.map((row) => [row.day, row]));
    const noon = new Date();
    noon.setHours(12, 0, 0, 0);
    for (let back = span[0] - 1; back >= 0; back -= step) {
      const rows = [];
      const first = new Date(noon.getTime() - back * DAY_MS);
      for (let n = 0; n < step && back - n >= 0; n += 1) rows.push(byDay.get(dayOf(new Date(noon.getTime() - (back - n) * DAY_MS))));
      slots.push({ first, sum: sumOf(rows.filter(Boolean)), isNow: back < step });
    }
    const whole = sumOf(slots.map(({ sum }) => ({ spent: { calls: sum.calls, usd: sum.isPriced ? String(sum.usd) : null, tokens: { total: sum.tokens }, unpriced_tokens: sum.unpriced }, did: null })));
    if (whole.calls === 0) {
      refill(at.days, section("Cost by day", sentence(`No call to a model is known of ${span[1]}. `, link("/cost", "", "overview-cost", "Cost over all time"))));
      return;
    }
    const label = ({ first, isNow }) => (isNow && step === 1 ? "today" : step === 1 ? SHORT_DAY.format(first) : `week from ${SHORT_DAY.format(first)}`);
    const unit = step === 1 ? "day" : "week";
    const cost = bars(`Cost by ${unit}, ${span[1]}`, slots.map((it) => ({ label: label(it), value: it.sum.calls === 0 ? 0 : it.sum.isPriced ? it.sum.usd : null, note: [it.sum.unpriced > 0 ? `${short(it.sum.unpriced)} tokens without a price` : "", it.sum.tokens > 0 ? `${short(it.sum.tokens)} tokens` : ""].filter(Boolean).join(", "), isNow: it.isNow })), dollars);
    const tokens = bars(`Tokens by ${unit}, ${span[1]}`, slots.map((it) => ({ label: label(it), value: it.sum.tokens, note: it.sum.calls > 0 ? count(it.sum.calls, "call") : "", isNow: it.isNow })), (value) => `${short(value)} tokens`, { height: 64 });
    const first = whole.isPriced ? [el("strong", "", dollars(whole.usd)), " were spent"] : ["Nothing with a price was spent"];
    const part = section(`Cost by ${unit}`, sentence(...first, ` in ${span[1]} on `, el("strong", "", count(whole.calls, "call")), " to models", whole.isPriced ? ` with ${short(whole.tokens)} tokens. ` : ". ", ...(whole.unpriced > 0 ? unpricedWords() : []), link("/cost", "", "overview-cost", "See each figure")), cost, el("h3", "overview-sub", `Tokens by ${unit}`), tokens);
    refill(at.days, part);
  }

  function unpricedWords() {
    const models = (known.days?.unpriced ?? []).filter((it) => it.model);
    if (models.length === 0) return [];
    const names = models.slice(0, 3).map((it) => visible(it.model)).join(", ");
    return [`No price is known for ${names}${models.length > 3 ? ` and ${count(models.length - 3, "other model")}` : ""}. `];
  }

  function drawLately() {
    const list = (known.list ?? []).filter((it) => !(timeOf(it) > Date.now() + DAY_MS)).slice(0, LATELY);
    if (known.list && list.length === 0) {
      refill(at.lately, empty("No session is here yet.", el("p", "small", "“quipu import” takes in what agents have left on this machine; “quipu up” goes on doing so, and this page shows it by itself.")));
      return;
    }
    const lines = list.map((it) => {
      const bad = badOf(it);
      const node = el("li", "overview-line", link(to(it.id), str(it.title).trim() ? "" : "overview-untitled", `lately-${it.id}`, titleOf(it)), el("span", "overview-about", [agentName(str(it.agent)), projectOf(it), visible(str(it.branch))].filter(Boolean).join(" · ")), el("span", "overview-when", when(it.ended_at ?? it.started_at)), el("span", "overview-cost", costNode(known.figures.get(it.id))), el("span", "overview-errors", bad > 0 ? el("span", "mark bad", `✕ ${count(bad, "error")}`) : ""));
      return node;
    });
    refill(at.lately, section("Lately", el("ol", "overview-lines overview-latest", ...lines), sentence(link("/sessions", "", "overview-all", `All ${count(known.status.transcripts.sessions, "session")}`))));
  }

  function drawWho() {
    const list = inSpan();
    if (list.length === 0) {
      refill(at.who);
      return;
    }
    const figures = (name, keyOf, labelOf) => {
      const groups = new Map();
      for (const it of list) {
        const key = keyOf(it);
        const sum = groups.get(key) ?? { n: 0, usd: 0, isPriced: false, hasCalls: false, unpriced: 0, tokens: 0, tools: 0, failures: 0 };
        const of = known.figures.get(it.id);
        sum.n += 1;
        sum.tools += of?.tools ?? 0;
        sum.failures += of?.failures ?? 0;
        if (of?.hasCalls) {
          sum.hasCalls = true;
          sum.isPriced ||= of.usd !== null;
          sum.usd += Number(of.usd ?? 0);
          sum.unpriced += of.unpriced;
          sum.tokens += of.total ?? 0;
        }
        groups.set(key, sum);
      }
      const all = [...groups].sort(([, a], [, b]) => b.usd - a.usd || b.n - a.n);
      const unknown = (words) => el("span", "unknown", words);
      const box = table(`${sentenceCase(name)}s, ${known.span[1]}`, [{ name: sentenceCase(name) }, { name: "Sessions", number: true }, { name: "Tool calls", number: true }, { name: "Failed", number: true, title: "Tool calls that failed" }, { name: "Tokens", number: true }, { name: "Cost", number: true }], all.slice(0, MOST_LINES).map(([key, sum]) => [
        link(`/sessions?${new URLSearchParams([[name, key]])}`, "quiet-link", `${name}-${key || "none"}`, labelOf(key)),
        grouped.format(sum.n),
        grouped.format(sum.tools),
        sum.failures > 0 ? el("span", "overview-bad", grouped.format(sum.failures)) : "",
        sum.hasCalls ? short(sum.tokens) : unknown("unknown"),
        sum.isPriced ? el("span", "money", `${dollars(sum.usd)}${sum.unpriced > 0 ? "\u00a0+\u00a0?" : ""}`) : unknown(sum.hasCalls ? "no price" : "unknown"),
      ]));
      return el("div", "", box, all.length > MOST_LINES ? el("p", "small", `and ${count(all.length - MOST_LINES, `other ${name}`)}`) : "");
    };
    refill(at.who, section("Agents and projects", sentence(`What they did in ${known.span[1]}${known.isPart && known.list.length === list.length ? `, going by the newest ${grouped.format(list.length)} sessions` : ""}.`), el("div", "overview-pair", figures("agent", (it) => str(it.agent), agentName), figures("project", projectOf, (key) => key || "no project"))));
  }

  function drawExpiring() {
    const { agents, logs, more } = known.expiring ?? {};
    if (!logs?.length) {
      refill(at.expiring);
      return;
    }
    const who = agents.filter((it) => it.expiring_new > 0).map((it) => `${agentName(it.agent)} deletes what it has not written to for about ${count(it.after_days, "day")}.`);
    const n = logs.length + more;
    const left = ({ days_left: days }) => (days === null ? "" : days === 0 ? "goes about now" : `goes in about ${count(days, "day")}`);
    const lines = logs.slice(0, MOST_LOGS).map((it) => {
      const [folder, file] = visible(it.path).split("/").slice(-2);
      const node = el("li", "", file ?? folder, el("span", "overview-about", [file && folder, left(it), size(it.bytes), it.changed && "an earlier state is kept"].filter(Boolean).join(" · ")));
      node.title = visible(it.path);
      return node;
    });
    const rest = n - lines.length;
    refill(at.expiring, section("Expiring soon", sentence(el("strong", "", count(n, "log")), ` will be deleted within a week and ${n === 1 ? "is" : "are"} not kept yet. `, who.join(" "), known.status.import.doing === "importing" ? " The import at work keeps them." : ` “quipu import” keeps ${n === 1 ? "it" : "them"}.`), el("ul", "overview-problems", ...lines), rest > 0 ? sentence(`and ${count(rest, "other log")}`) : ""));
  }

  function drawBudgets() {
    const all = known.budgets?.budgets ?? [];
    if (all.length === 0) {
      refill(at.budgets);
      return;
    }
    const nameOf = ({ budget, of }) => {
      if (budget === "session") return link(to(of), "quiet-link", `budget-${of}`, known.list?.find((it) => it.run_id === of)?.title ? `Session ${titleOf(known.list.find((it) => it.run_id === of))}` : `Session ${visible(of)}`);
      if (budget === "project") return link(`/sessions?${new URLSearchParams([["project", projectOf({ cwd: of })]])}`, "quiet-link", `budget-${of}`, `${visible(of)}, this month`);
      const node = el("span", "", { day: "Today", week: "This week", month: "This month" }[budget] ?? sentenceCase(visible(budget)));
      node.title = visible(of);
      return node;
    };
    const over = all.filter((it) => it.exceeded).length;
    const rows = all.map((it) => {
      const [spent, limit] = [Number(it.spent.usd ?? 0), Number(it.limit_usd)];
      const share = limit > 0 ? spent / limit : spent > 0 ? 1 : 0;
      const bar = el("span", `overview-budget${it.exceeded ? " is-over" : ""}`, el("span", "", ""));
      bar.firstChild.style.width = `${Math.min(100, 100 * share)}%`;
      bar.setAttribute("aria-hidden", "true");
      const cost = it.spent.usd === null ? el("span", "unknown", "no price") : el("span", "money", `${dollars(it.spent.usd)}${it.spent.unpriced_tokens > 0 ? "\u00a0+\u00a0?" : ""}`);
      cost.title = it.spent.usd === null ? "" : `$${it.spent.usd}`;
      const left = it.spent.usd === null ? el("span", "unknown", "unknown") : `${it.spent.unpriced_tokens > 0 ? "at most " : ""}${dollars(limit - spent)}`;
      return [nameOf(it), bar, cost, dollars(it.limit_usd), it.exceeded ? el("span", "overview-bad", limit > 0 ? `${dollars(spent - limit)} over` : "over") : left];
    });
    refill(at.budgets, section("Budgets", sentence(over === 0 ? (all.some((it) => it.spent.unpriced_tokens > 0) ? "Going by what has a price, all budgets hold." : "All budgets hold.") : over === all.length && over === 1 ? "The budget is exceeded." : `${grouped.format(over)} of ${count(all.length, "budget")} ${over === 1 ? "is" : "are"} exceeded.`, " ", link("/cost", "", "budgets-cost", "What it was spent on")), table("Budgets, and what was spent of them", [{ name: "Budget" }, { name: "" }, { name: "Spent", number: true }, { name: "Limit", number: true }, { name: "Left", number: true }], rows)));
  }

  /** What is not there on most machines. What goes wrong with it is no reason to say anything. */
  async function readRest() {
    const or = (path) => get(path, {}, signal).catch(() => null);
    [known.expiring, known.budgets] = await Promise.all([or("/api/v1/expiring"), or("/api/v1/budgets")]);
    if (signal.aborted) return;
    drawExpiring();
    drawBudgets();
  }

  function drawProblems() {
    const { import: state } = known.status;
    const found = [];
    if (state.error) found.push(el("li", "", el("span", "overview-bad", "The last import failed: "), state.error));
    for (const it of state.last?.problems ?? []) found.push(el("li", "", it.what, el("span", "overview-about", visible(it.path), it.count > 1 ? `, ${grouped.format(it.count)} times` : "")));
    for (const words of known.doctor?.attention ?? []) found.push(el("li", "", words));
    for (const it of known.doctor?.problems ?? []) found.push(el("li", "", it.what, el("span", "overview-about", `${count(it.logs, "log")}, for one ${visible(it.path)}`)));
    const said = [];
    if (state.last_at && state.last) said.push("The last import ended at ", when(state.last_at), `: ${count(state.last.read, "log")} read, ${grouped.format(state.last.unchanged)} unchanged. `);
    if (found.length === 0) {
      if (known.doctor) said.push("Nothing needs attention.");
      refill(at.problems, known.doctor && section("Problems", sentence(...said)));
      return;
    }
    const few = found.slice(0, 12);
    refill(at.problems, section("Problems", said.length > 0 ? sentence(...said) : "", el("ul", "overview-problems", ...few), found.length > few.length ? sentence(`${grouped.format(found.length - few.length)} more: “quipu doctor” lists them.`) : ""));
  }

  const sentenceCase = (words) => words[0].toUpperCase() + words.slice(1);

  /** How far back to look. */
  function choose() {
    const now = Date.now();
    known.span = SPANS.find(([days]) => new Set(known.list.map(timeOf).filter((time) => time >= now - days * DAY_MS && time <= now + DAY_MS).map((time) => dayOf(new Date(time)))).size >= ENOUGH_DAYS) ?? (known.list.some((it) => timeOf(it) >= now - 28 * DAY_MS && timeOf(it) <= now + DAY_MS) ? SPANS[0] : SPANS.at(-1));
  }

  /** Does a part of the work; what fails is told in its place, and the rest goes on. */
  async function part(place, work) {
    try {
      await work();
    } catch (error) {
      if (!signal.aborted) refill(place, failed(error, () => part(place, work)));
    }
  }

  const readList = async (answer) => {
    const page = await answer;
    const fresh = new Map((known.list ?? []).map((it) => [it.id, it]));
    for (const it of page.transcripts) {
      fresh.set(it.id, it);
      known.figures.set(it.id, figuresOf(it));
    }
    if (!known.list) known.isPart = page.next !== null;
    known.list = [...fresh.values()].sort((a, b) => (timeOf(b) || 0) - (timeOf(a) || 0));
    choose();
  };

  const drawList = () => {
    drawRunning();
    drawHead();
    drawLately();
  };

  drawSamples();
  drawHead();

  const first = (async () => {
    await Promise.all([
      part(at.lately, async () => {
        await readList(known.list ? get("/api/v1/transcripts", { limit: NEWEST, fields: FIELDS }, signal) : state.list);
        drawList();
        if (known.days) drawDays();
        drawCords();
        drawWho();
      }),
      part(at.days, async () => {
        known.days = await (known.days ? get("/api/v1/stats", { by: "day", zone: zone() }, signal) : state.days);
        drawHead();
        if (known.list) drawDays();
      }),
      part(at.running, async () => {
        known.executions = (await state.executions).items;
        drawRunning();
      }),
      readRest(),
    ]);
    drawProblems();
    // This may take long: it looks at what all agents have.
    known.doctor = await get("/api/v1/doctor", {}, signal).catch(() => null);
    if (!signal.aborted) drawProblems();
  })();
  first.catch(() => {});

  // While agents work, the list follows quickly and figures now and then. Without them, nothing is asked.
  let last = Date.now();
  const follow = paced(async () => {
    try {
      const from = new Date(last - 10 * 60000).toISOString();
      last = Date.now();
      const [status, page, executions] = await Promise.all([get("/api/v1/status", {}, signal), get("/api/v1/transcripts", { limit: 200, since: from, fields: FIELDS }, signal), get("/api/v1/executions", { limit: 50 }, signal)]);
      known.status = status;
      known.executions = executions.items;
      await readList(Promise.resolve(page));
      drawSamples();
      drawList();
      figures();
    } catch {
      // The next change tries again.
    }
  }, 3000, signal);
  const figures = paced(async () => {
    try {
      known.days = await get("/api/v1/stats", { by: "day", zone: zone() }, signal);
      drawHead();
      drawDays();
      drawCords();
      drawLately();
      drawWho();
      drawProblems();
      await readRest();
    } catch {
      // As above.
    }
  }, 15000, signal);
  onAdvance((change) => {
    if (change.gone && known.list) known.list = known.list.filter((it) => it.id !== change.transcript);
    if (change.reload) {
      known.list = null;
      known.figures.clear();
      get("/api/v1/transcripts", { limit: NEWEST, fields: FIELDS }, signal).then((page) => readList(Promise.resolve(page))).then(() => follow(), () => {});
      return;
    }
    follow();
  }, signal);
  // What runs now is over some time later, without anything that says so.
  const clock = setInterval(drawRunning, 30000);
  signal.addEventListener("abort", () => clearInterval(clock));

  const lines = () => [...main.querySelectorAll(".overview-lines a")];
  const step = (by) => {
    const all = lines();
    const here = all.indexOf(document.activeElement);
    current = here >= 0 ? here + by : current < 0 ? (by > 0 ? 0 : all.length - 1) : current + by;
    current = Math.max(0, Math.min(all.length - 1, current));
    all[current]?.focus();
    all[current]?.scrollIntoView({ block: "nearest" });
  };
  return {
    title: "",
    keys: {
      j: () => step(1),
      k: () => step(-1),
      Enter: (event) => {
        const it = event.target.closest?.("a, button");
        if (it) it.click();
        else if (lines()[current]) go(lines()[current].href);
      },
    },
    help: [["j k", "next, previous session"], ["Enter", "open the session"], ["← →", "along the knots of a cord"]],
  };
}

/** One knot of a cord is reached by Tab, the others from there by arrows. */
function rove(knots) {
  const all = [...knots.querySelectorAll("a")];
  all.forEach((knot, n) => {
    knot.tabIndex = n === all.length - 1 ? 0 : -1;
    knot.dataset.uiid = `knot-${knot.pathname.slice(3)}`;
  });
  knots.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const next = by && all[all.indexOf(event.target) + by];
    if (!next) return;
    event.preventDefault();
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}
