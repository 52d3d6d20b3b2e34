// Commands: go anywhere by a few letters.

import { el } from "./text.js";
import { get } from "./api.js";
import { projectOf, titleOf, to } from "./parts.js";

const PLACES = [
  ["Overview", "/"],
  ["Sessions", "/sessions"],
  ["Cost", "/cost"],
  ["Tools", "/tools"],
  ["Runs", "/runs"],
  ["Compare two transcripts", "/compare"],
  ["Submissions and keys", "/shared"],
  ["Sign in with a key", "/signin"],
];

/** How well letters fit a text, in their order: higher is better, null is not at all. */
export function fits(letters, text) {
  const [want, have] = [letters.toLowerCase(), text.toLowerCase()];
  if (want === "") return 0;
  const whole = have.indexOf(want);
  if (whole >= 0) return 1000 - whole - have.length / 100;
  let [at, score, run] = [0, 0, 0];
  for (const letter of want) {
    if (letter === " ") continue;
    const next = have.indexOf(letter, at);
    if (next < 0) return null;
    run = next === at ? run + 1 : 0;
    score += run * 2 + (next === 0 || /[\s/_.-]/.test(have[next - 1]) ? 6 : 0) - (next - at) * 0.2;
    at = next + 1;
  }
  return score;
}

let recent = null;

/** Opens the list of commands. */
export async function openPalette(go) {
  const dialog = document.getElementById("palette");
  if (dialog.open) return;
  const field = el("input", "palette-field");
  field.type = "text";
  field.placeholder = "Go to a screen, a session or a search";
  field.setAttribute("role", "combobox");
  field.setAttribute("aria-expanded", "true");
  field.setAttribute("aria-controls", "palette-list");
  field.setAttribute("aria-label", "Command");
  field.dataset.uiid = "palette-field";
  const list = el("ul", "palette-list");
  list.id = "palette-list";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Commands");
  let shown = [];
  let at = 0;
  const open = (item) => {
    dialog.close();
    go(item.href);
  };
  const point = (n) => {
    at = Math.max(0, Math.min(n, shown.length - 1));
    [...list.children].forEach((node, i) => node.setAttribute("aria-selected", String(i === at)));
    const node = list.children[at];
    node?.scrollIntoView({ block: "nearest" });
    if (node) field.setAttribute("aria-activedescendant", node.id);
  };
  const draw = () => {
    const words = field.value.trim();
    const all = [...PLACES.map(([label, href]) => ({ label, href, about: "" })), ...(recent ?? [])];
    shown = all.map((item) => ({ item, score: fits(words, `${item.label} ${item.about}`) })).filter(({ score }) => score !== null).sort((a, b) => b.score - a.score).slice(0, 12).map(({ item }) => item);
    if (words) shown.push({ label: `Search everything for “${words}”`, href: `/search?q=${encodeURIComponent(words)}`, about: "" });
    list.replaceChildren(...shown.map((item, n) => {
      const node = el("li", "", el("span", "", item.label), el("span", "small", item.about));
      node.id = `palette-${n}`;
      node.setAttribute("role", "option");
      node.addEventListener("click", () => open(item));
      return node;
    }));
    point(0);
  };
  field.addEventListener("input", draw);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") point(at + 1);
    else if (event.key === "ArrowUp") point(at - 1);
    else if (event.key === "Enter" && shown[at]) open(shown[at]);
    else return;
    event.preventDefault();
  });
  dialog.replaceChildren(field, list);
  draw();
  dialog.showModal();
  field.focus();
  try {
    const page = await get("/api/v1/transcripts", { limit: 200 });
    recent = page.transcripts.map((it) => ({ label: titleOf(it), href: to(it.id), about: [it.agent, projectOf(it)].filter(Boolean).join(" · ") }));
    if (dialog.open) draw();
  } catch {
    // Places are there without them.
  }
}
