// Submissions and keys, for whoever looks after a shared server.

import { copyButton } from "./markdown.js";
import { num, size, str } from "./text.js";
import { at, download, get, getAsWriter, hasKey, send, signIn, whoAmI } from "./api.js";
import { bundle } from "./charts.js";
import { agentName, count, el, empty, facts, grouped, heading, link, press, section, table, to, visible, when } from "./parts.js";

const PAGE = 200;
const MOST = 1000;
const IN_GROUP = 20;

/** Why the submission service refused: it has words of its own. */
const why = (error) => visible(str(error.problem?.message) || error.message);

/** The submissions that the key may see, page by page: `{ rows, after, unreadable }`. */
async function pages(by, after, most, signal) {
  const rows = [];
  let unreadable = 0;
  do {
    const page = await get("/v1/transcripts", { limit: PAGE, after, pseudonym: by }, signal);
    rows.push(...page.transcripts);
    unreadable += page.unreadable ?? 0;
    after = page.next ?? "";
  } while (after && rows.length < most);
  return { rows, after, unreadable };
}

/** What others submitted, as the archive has it; without a key there is no more. */
function fromArchive(transcripts, by) {
  const all = transcripts.filter((it) => it.received_from !== null && it.received_from !== undefined && (!by || it.received_from === by));
  return all.map((it) => ({ transcriptId: "", id: it.id, title: it.title, agent: it.agent, events: it.events, bytes: it.size, receivedAt: it.modified, pseudonym: it.received_from, keyId: str(it.received_key) }));
}

/** Submissions by who sent them: the latest first, and of each the latest first. */
function grouping(rows) {
  const groups = Map.groupBy(rows, (row) => str(row.pseudonym));
  const last = (own) => own.reduce((latest, row) => (str(row.receivedAt) > latest ? str(row.receivedAt) : latest), "");
  for (const own of groups.values()) own.sort((a, b) => str(b.receivedAt).localeCompare(str(a.receivedAt)));
  return [...groups].sort(([, a], [, b]) => last(b).localeCompare(last(a)));
}

const whoName = (pseudonym) => visible(pseudonym) || "no longer known";
const total = (rows, name) => rows.reduce((sum, row) => sum + (num(row[name]) ?? 0), 0);

/** A cord for each submitter; its knots are what they sent, in the order of time. */
function cordsOf(groups) {
  const times = groups.flatMap(([, own]) => own.map((row) => new Date(row.receivedAt).getTime())).filter((time) => !Number.isNaN(time));
  const [from, end] = [times.reduce((a, b) => Math.min(a, b), Infinity), times.reduce((a, b) => Math.max(a, b), -Infinity)];
  const most = Math.max(1, ...groups.map(([, own]) => own.reduce((big, row) => Math.max(big, Math.log1p(row.events ?? 0)), 0)));
  return groups.slice(0, 20).map(([name, own]) => ({
    label: whoName(name),
    href: at("/shared", { by: name }),
    sum: count(own.length, "transcript"),
    knots: own.slice(0, 120).map((row) => ({
      at: end > from ? 0.02 + 0.96 * ((new Date(row.receivedAt).getTime() - from) / (end - from)) : 0.5,
      size: Math.log1p(row.events ?? 0) / most,
      title: `${visible(str(row.title)) || "without a title"}, ${count(row.events ?? 0, "event")}`,
      href: row.id ? to(row.id) : null,
    })),
  }));
}

/** Asks why, and deletes. */
function deleteDialog(row, done) {
  const field = el("input", "words");
  Object.assign(field, { id: "delete-reason", maxLength: 500, placeholder: "one line; it is kept in the receipt" });
  field.dataset.uiid = "delete-reason";
  const label = el("label", "", "Reason");
  label.htmlFor = "delete-reason";
  const said = el("p", "lock-said");
  said.setAttribute("role", "alert");
  const ok = el("button", "plain", "Delete");
  ok.type = "submit";
  ok.dataset.uiid = "delete-ok";
  const dialog = el("dialog", "ask-words");
  const form = el("form", "shared-form", el("h2", "", "Delete this submission?"), el("p", "", visible(str(row.title)) || row.transcriptId), el("p", "small", "The document goes, with its entry in the catalogue, its events and what can be searched. A receipt of the deletion is kept. This cannot be undone."), label, field, said, el("div", "dialog-row", press("Cancel", "plain", "delete-cancel", () => dialog.close()), ok));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    ok.disabled = true;
    try {
      const reason = field.value.trim();
      await send("DELETE", `/v1/transcripts/${encodeURIComponent(row.transcriptId)}`, reason ? { reason } : {});
      dialog.close();
      done();
    } catch (error) {
      said.textContent = why(error);
      ok.disabled = false;
    }
  });
  dialog.append(form);
  dialog.setAttribute("aria-label", "Delete this submission");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** What one submitter sent. */
function groupPart([name, own], isAdmin, unfolded, removed) {
  const isOpen = unfolded.has(name) || own.length <= IN_GROUP;
  const rows = (isOpen ? own : own.slice(0, IN_GROUP)).map((row) => {
    const title = visible(str(row.title)) || "without a title";
    const actions = el("span", "shared-actions");
    if (row.transcriptId) {
      const fetchIt = press("document", "find-rest", `document-${row.transcriptId}`, async () => {
        try {
          await download(`/v1/transcripts/${encodeURIComponent(row.transcriptId)}/document`, `${row.transcriptId}.json`);
        } catch (error) {
          fetchIt.textContent = why(error);
        }
      });
      fetchIt.title = `sha256 ${row.sha256}`;
      actions.append(fetchIt);
      if (isAdmin) actions.append(press("delete", "find-rest", `delete-${row.transcriptId}`, () => deleteDialog(row, () => removed(row.transcriptId))));
    }
    return [row.id ? link(to(row.id), "runs-link", `submission-${row.transcriptId || row.id}`, title) : el("span", "", title), agentName(str(row.agent)) || el("span", "unknown", "unknown"), grouped.format(row.events ?? 0), size(row.bytes ?? 0), when(row.receivedAt), actions];
  });
  const node = section(whoName(name), el("p", "small shared-about", [count(own.length, "transcript"), count(total(own, "events"), "event"), size(total(own, "bytes")), `key ${visible([...new Set(own.map((row) => str(row.keyId)))].join(", ")) || "unknown"}`, own.some((row) => row.identityLinked) ? "says who they are" : ""].filter(Boolean).join(" · ")), table(`Submissions of ${whoName(name)}`, [{ name: "Transcript" }, { name: "Agent" }, { name: "Events", number: true }, { name: "Size", number: true }, { name: "Received" }, { name: "Document" }], rows));
  if (!isOpen) {
    const more = press(`${count(own.length - IN_GROUP, "more transcript")}`, "find-rest", `all-of-${name}`, () => {
      unfolded.add(name);
      node.replaceWith(groupPart([name, own], isAdmin, unfolded, removed));
    });
    node.append(more);
  }
  return node;
}

/** The key of this tab, and for whoever may change things all keys. */
function keyPart(key, me, keys, go) {
  const parts = [];
  if (key) {
    const own = facts(
      ["This key", visible(key.keyId)],
      ["Label", visible(str(key.label)) || el("span", "unknown", "none")],
      ["Pseudonym", visible(key.pseudonym)],
      ["May", key.scopes.map(visible).join(", ")],
      ["Made", when(key.createdAt)],
      ["Expires", key.expiresAt ? when(key.expiresAt) : "never"],
    );
    parts.push(own, el("p", "actions", press("Forget this key", "more", "forget-key", () => {
      signIn("");
      go("/signin", { replace: true });
    })));
  } else if (me.who === "local") parts.push(el("p", "shared-words", "You are on the machine of this server and need no key. To see receipts, documents and submitters as the submission service has them, ", link("/signin", "", "signin-link", "sign in with a key"), " that may read."));
  else parts.push(el("p", "shared-words", "The key of this tab is not known to the submission service."), el("p", "actions", link("/signin", "more", "signin-link", "Sign in with a key")));
  parts.push(keys ? keysPart(keys) : commands());
  return section("Keys", ...parts);
}

/** How keys are made where the page may not. */
function commands() {
  const row = (command, about) => el("div", "", el("dt", "", el("code", "", command)), el("dd", "", about));
  return el("div", "shared-commands", el("p", "shared-words", "Keys are made, listed and revoked by the owner of the server, or with a key that may do everything:"), el("dl", "find-examples", row("quipu keys new --scope submit --expires 90d", "makes a key and shows it once"), row("quipu keys list", "which keys there are, without the keys"), row("quipu keys revoke KEY", "lets a key count no more; what came with it stays")));
}

/** All keys, and a way to make one. It draws itself again when something changed. */
function keysPart(first) {
  const node = el("div", "shared-keys");
  const shown = el("div", "shared-made");
  shown.setAttribute("role", "status");
  const refused = el("p", "runs-error");
  refused.setAttribute("role", "alert");
  const again = async () => draw(await getAsWriter("/api/v1/keys"));
  const draw = (keys) => {
    if (keys.refused) {
      list.replaceChildren(el("p", "runs-error", why(keys.refused)));
      return;
    }
    const isOver = (it) => it.revoked_at !== null || (it.expires_at !== null && new Date(it.expires_at) <= new Date());
    const rows = [...keys].reverse().sort((a, b) => isOver(a) - isOver(b)).map((it) => {
      const ends = it.revoked_at ? el("span", "", "revoked ", when(it.revoked_at)) : isOver(it) ? el("span", "", "expired ", when(it.expires_at)) : it.expires_at ? when(it.expires_at) : "never";
      const revoke = isOver(it) ? "" : press("revoke", "find-rest", `revoke-${it.key_id}`, () => revokeDialog(it, again));
      if (revoke) revoke.setAttribute("aria-label", `Revoke ${visible(it.key_id)}`);
      const cells = [el("code", "", visible(it.key_id)), visible(it.label) || el("span", "unknown", "no label"), it.scopes.map(visible).join(", "), ends, revoke, when(it.created_at), visible(it.pseudonym)];
      return isOver(it) ? cells.map((cell) => el("span", "shared-over", cell)) : cells;
    });
    list.replaceChildren(rows.length > 0 ? table("Keys", [{ name: "Key" }, { name: "For" }, { name: "May" }, { name: "Ends" }, { name: "" }, { name: "Made" }, { name: "Pseudonym" }], rows) : el("p", "shared-words", "There are no keys yet. Whoever is to send something to this server, or to read it from elsewhere, needs one."));
  };
  const list = el("div", "");
  const label = el("input", "words");
  Object.assign(label, { id: "key-label", maxLength: 200, placeholder: "whom or what it is for" });
  label.dataset.uiid = "key-label";
  const scopes = [["submit", "send transcripts"], ["read", "read everything"], ["admin", "do everything, also make keys"]].map(([scope, about], n) => {
    const box = el("input", "");
    Object.assign(box, { type: "checkbox", value: scope, checked: n === 0 });
    box.dataset.uiid = `key-scope-${scope}`;
    return { box, node: el("label", "shared-scope", box, el("span", "", `${scope}: ${about}`)) };
  });
  const expires = el("select", "");
  expires.dataset.uiid = "key-expires";
  expires.id = "key-expires";
  for (const [value, words] of [["30d", "after 30 days"], ["90d", "after 90 days"], ["1y", "after a year"], ["", "never"]]) {
    const option = el("option", "", words);
    option.value = value;
    option.selected = value === "90d";
    expires.append(option);
  }
  const labelled = (text, field) => {
    const name = el("label", "", text);
    name.htmlFor = field.id;
    return el("div", "shared-field", name, field);
  };
  const make = el("button", "plain", "Make a key");
  make.type = "submit";
  make.dataset.uiid = "make-key";
  const may = el("fieldset", "shared-field", el("legend", "", "It may"), ...scopes.map(({ node }) => node));
  const form = el("form", "shared-new", el("h3", "", "A new key"), labelled("For", label), may, labelled("It ends", expires), refused, make);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    refused.textContent = "";
    const chosen = scopes.filter(({ box }) => box.checked).map(({ box }) => box.value);
    if (chosen.length === 0) {
      refused.textContent = "Choose what it may do.";
      return;
    }
    make.disabled = true;
    try {
      const made = await send("POST", "/api/v1/keys", { label: label.value.trim(), scopes: chosen, expires: expires.value || null });
      label.value = "";
      const text = el("code", "shared-secret", made.key);
      text.dataset.uiid = "new-key";
      const copy = copyButton(() => made.key);
      Object.assign(copy, { type: "button", className: "find-rest" });
      copy.dataset.uiid = "new-key-copy";
      shown.replaceChildren(el("p", "", el("strong", "", "Copy this key now."), " It is shown only once: the server keeps no more than a hash of it."), el("p", "shared-secret-line", text, copy), press("I have it", "find-rest", "new-key-done", () => shown.replaceChildren()));
      shown.scrollIntoView({ block: "nearest" });
      await again();
    } catch (error) {
      refused.textContent = why(error);
    } finally {
      make.disabled = false;
    }
  });
  draw(first);
  node.append(list, shown, form);
  return node;
}

/** Asks, and revokes a key. */
function revokeDialog(key, done) {
  const said = el("p", "lock-said");
  said.setAttribute("role", "alert");
  const dialog = el("dialog", "ask-words");
  const ok = press("Revoke", "plain", "revoke-ok", async () => {
    ok.disabled = true;
    try {
      await send("DELETE", `/api/v1/keys/${encodeURIComponent(key.key_id)}`);
      dialog.close();
      await done();
    } catch (error) {
      said.textContent = why(error);
      ok.disabled = false;
    }
  });
  dialog.append(el("div", "shared-form", el("h2", "", "Revoke this key?"), el("p", "", `${visible(key.key_id)}${key.label ? `, for ${visible(key.label)}` : ""}`), el("p", "small", "It counts no more from the next request on, for good. What came with it stays."), said, el("div", "dialog-row", press("Cancel", "plain", "revoke-cancel", () => dialog.close()), ok)));
  dialog.setAttribute("aria-label", "Revoke this key");
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** The screen. */
export async function shared({ main, query, signal, go }) {
  const by = query.get("by") ?? "";
  const me = await whoAmI();
  const isKeyed = hasKey();
  const quiet = (promise) => promise.catch((error) => {
    if (signal.aborted) throw error;
    return { refused: error };
  });
  const [archive, found, key, people, limits, keys] = await Promise.all([
    quiet(get("/api/v1/transcripts", { limit: 5000, received: true, all: true, fields: "id,title,agent,events,size,modified,path,received_from,received_key" }, signal)),
    isKeyed ? quiet(pages(by, "", MOST, signal)) : null,
    isKeyed ? quiet(get("/v1/keys/self", {}, signal)) : null,
    isKeyed ? quiet(get("/v1/submitters", {}, signal)) : null,
    quiet(get("/v1/limits", {}, signal)),
    me.write ? quiet(getAsWriter("/api/v1/keys", {}, signal)) : null,
  ]);
  const kept = archive.transcripts ?? [];
  // A submission is kept as a file that has its id.
  const byFile = new Map(kept.filter((it) => it.received_from).map((it) => [str(it.path).split("/").pop(), it.id]));
  const named = (rows) => rows.map((row) => ({ ...row, id: byFile.get(`${row.transcriptId}.json`) ?? null }));
  let rows = found?.rows ? named(found.rows) : fromArchive(kept, by);
  let after = found?.after ?? "";
  const isAdmin = key?.scopes?.includes("admin") ?? false;
  const unfolded = new Set();
  let hasRemoved = false;
  const lede = el("p", "lede");
  const body = el("div", "");
  const removed = (id) => {
    hasRemoved = true;
    rows = rows.filter((row) => row.transcriptId !== id);
    drawAll();
  };
  // It keeps what was typed, and the key that was just made, while the rest is drawn again.
  const keysNode = keyPart(key?.keyId ? key : null, me, keys, go);
  const drawAll = () => {
    const strong = (text) => el("strong", "", text);
    const groups = grouping(rows);
    const all = by || hasRemoved ? null : people?.submitters;
    const n = all ? total(all, "transcripts") : rows.length;
    if (n === 0) lede.replaceChildren("What others send to this server, and the keys that they send it with.");
    else lede.replaceChildren(strong(grouped.format(n)), n === 1 ? " transcript" : " transcripts", by ? ` of ${whoName(by)}, ` : ` of ${count((all ?? groups).length, "submitter")}, `, strong(grouped.format(all ? total(all, "events") : total(rows, "events"))), " events, ", strong(size(all ? total(all, "bytes") : total(rows, "bytes"))), ".", by ? " " : "", by ? link("/shared", "", "everybody", "Show everybody") : "");
    const parts = [];
    if (found?.refused) parts.push(el("p", "runs-error", why(found.refused)));
    const damaged = (found?.unreadable ?? 0) + (people?.unreadable ?? 0);
    if (damaged > 0) parts.push(el("p", "runs-error", `${count(damaged, "receipt")} cannot be read. quipu doctor says more.`));
    if (rows.length === 0) parts.push(empty(by ? "Nothing of this submitter is here." : "Nobody has submitted a transcript yet.", el("p", "small", "quipu share ID --submit URL sends one, with a key that may submit.")));
    else {
      if (!by) parts.push(section("Who submits", bundle("Submissions by submitter, in the order of time", cordsOf(groups))));
      parts.push(...groups.map((group) => groupPart(group, isAdmin, unfolded, removed)));
    }
    if (after) parts.push(press("Show more", "plain find-more", "more", async (event) => {
      event.target.disabled = true;
      try {
        const next = await pages(by, after, MOST, signal);
        rows = rows.concat(named(next.rows));
        after = next.after;
        drawAll();
      } catch (error) {
        event.target.textContent = why(error);
      }
    }));
    parts.push(keysNode);
    if (limits.documentBytes) parts.push(section("Limits", el("p", "shared-words", `A document has at most ${size(limits.documentBytes)}, packed at most ${size(limits.encodedBytes)}. A key may have ${count(limits.openUploads, "upload")} open; one that nothing is added to is kept for ${count(Math.round(limits.uploadSeconds / 3600), "hour")}.`)));
    body.replaceChildren(...parts);
  };
  drawAll();
  main.replaceChildren(heading("Submissions", lede), body);
  const step = (step) => {
    const nodes = [...body.querySelectorAll("a.runs-link")];
    nodes[Math.max(0, Math.min(nodes.length - 1, nodes.indexOf(document.activeElement) + step))]?.focus();
  };
  return { title: "Submissions", keys: { j: () => step(1), k: () => step(-1) }, help: [["j k", "next, previous submission"], ["Enter", "open it"]] };
}
