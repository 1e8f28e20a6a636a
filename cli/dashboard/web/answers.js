// Texts: the answers of a step, the same prompts early and late, and samples; searched, sorted, a page at a time.
import {ask, choice, debounce, el, empty, field, format, marked} from "./tools.js";

const kPage = 20;
const sorts = [["reward", "reward"], ["advantage", "advantage"], ["kl", "KL"], ["length", "length"], ["order", "as drawn"]];

const fact = (label, value) => el("span", {}, `${label} `, el("b", {}, value));

// Long texts are folded; a button unfolds them.
function folded(kind, text, search) {
  const node = el("p", {class: `${kind} clamp`, dir: "auto"}, marked(text === "" ? "(empty)" : text, search));
  const button = el("button", {type: "button", class: "unfold", hidden: true, onclick: () => {
    const is_folded = node.classList.toggle("clamp");
    button.textContent = is_folded ? "Show all" : "Show less";
  }}, "Show all");
  requestAnimationFrame(() => { button.hidden = node.scrollHeight <= node.clientHeight + 2; });
  return [node, button];
}

function answer_item(row, search) {
  const facts = el("div", {class: "facts"},
    row.reward === null ? el("span", {class: "down"}, `no reward: ${row.error ?? "unknown"}`) : fact("reward", format(row.reward)),
    fact("advantage", format(row.advantage)), row.kl === null ? null : fact("KL", format(row.kl)),
    fact("length", format(row.length)), el("span", {}, row.finished ? "ended by itself" : "cut"), row.trains ? null : el("span", {}, "not trained on"),
    Object.keys(row.parts).length > 1 || Object.keys(row.parts).some((name) => name.startsWith("watch/"))
      ? Object.entries(row.parts).map(([name, value]) => fact(name, format(value))) : null,
    el("span", {class: "right"}, `prompt ${row.prompt_id}, answer ${row.sample}`));
  return el("article", {class: "item", tabIndex: -1}, facts, folded("prompt", row.prompt, search), folded("response", row.response, search));
}

function pair_item(pair, search) {
  const [before, after] = pair.reward, rise = before === null || after === null ? null : after - before;
  const side = (place, title) => el("div", {class: "side"},
    el("div", {class: "facts"}, el("b", {}, `${title}, step ${pair.step[place]}`), fact("reward", format(pair.reward[place])),
      pair.kl[place] === null ? null : fact("KL", format(pair.kl[place])), fact("length", format(pair.length[place])),
      el("span", {}, pair.finished[place] ? "ended by itself" : "cut")),
    folded("response", pair.response[place], search));
  return el("article", {class: "item pair-item", tabIndex: -1},
    el("div", {class: "facts"}, el("span", {}, `prompt ${pair.prompt_id}`),
      rise === null ? null : el("span", {class: rise > 0 ? "up" : rise < 0 ? "down" : ""}, `reward ${rise > 0 ? "+" : ""}${format(rise)}`),
      pair.differs ? null : el("span", {}, "unchanged")),
    folded("prompt", pair.prompt, search), el("div", {class: "pair"}, side(0, "before"), side(1, "after")));
}

function sample_item(row, search) {
  const known = new Set(["step", "time", "table", "prompt", "response", "reward"]);
  const others = Object.entries(row).filter(([name]) => !known.has(name));
  const short = others.filter(([, value]) => typeof value !== "string" || value.length < 24);
  const long = others.filter(([, value]) => typeof value === "string" && value.length >= 24);
  return el("article", {class: "item", tabIndex: -1},
    el("div", {class: "facts"}, fact("step", format(row.step)), row.reward === undefined ? null : fact("reward", format(typeof row.reward === "number" ? row.reward : null)),
      short.map(([name, value]) => fact(name, typeof value === "number" ? format(value) : String(value))), el("span", {class: "right"}, row.table ?? "")),
    folded("prompt", String(row.prompt ?? ""), search), folded("response", String(row.response ?? ""), search),
    long.map(([name, value]) => [el("p", {class: "muted small"}, name), folded("response", value, search)]));
}

// What the three have in common: a run, a bar of controls, a list, pages.
class ListPanel {
  constructor() {
    this.run = null;
    this.search = "";
    this.sort = "reward";
    this.worst = false;
    this.offset = 0;
    this.bar = el("div", {class: "bar"});
    this.list = el("div", {class: "list"});
    this.page = el("div", {class: "page"});
    this.node = el("div", {}, this.bar, this.list, this.page);
    this.changed = () => { this.offset = 0; return this.load(); };
    this.typed = debounce(this.changed, 180);
    this.box = el("input", {type: "search", placeholder: "in prompts and answers", oninput: () => { this.search = this.box.value; this.typed(); }});
  }

  async show(runs) {
    const ids = runs.map((run) => run.id).join();
    this.runs = runs;
    if (!runs.some((run) => run.id === this.run)) this.run = runs[0]?.id ?? null;
    const is_new = ids !== this.ids || this.is_stale();
    this.ids = ids;
    if (!runs.length) { this.bar.replaceChildren(); this.tell("no run is shown: choose one above"); return; }
    if (!is_new) return;
    await this.prepare();
    this.bar.replaceChildren(...this.controls());
    await this.load();
  }

  is_stale() { return false; }
  async prepare() {}

  run_choice() {
    if (this.runs.length < 2) return null;
    return field("Run", choice(this.runs.map((run) => [run.id, run.name]), this.run, async (id) => {
      this.run = Number(id);
      await this.prepare();
      this.bar.replaceChildren(...this.controls());
      await this.changed();
    }));
  }

  common(keys, worst) {
    return [field("Sort by", choice(keys, this.sort, (key) => { this.sort = key; this.changed(); })),
      field("", choice([["0", worst[0]], ["1", worst[1]]], this.worst ? 1 : 0, (value) => { this.worst = value === "1"; this.changed(); })),
      field("Search", this.box)];
  }

  query() { return {run: this.run, sort: this.sort, worst: this.worst ? 1 : 0, search: this.search, offset: this.offset, limit: kPage}; }

  tell(text) { this.list.replaceChildren(empty(text)); this.page.replaceChildren(); }

  async load() {
    const turn = this.turn = {};
    try {
      const told = await this.fetch();
      if (turn === this.turn) this.fill(told);
    } catch (error) {
      if (turn === this.turn) this.tell(error.message);
    }
  }

  fill_with(items, told) {
    this.list.replaceChildren(...items);
    if (!items.length) this.tell(this.search ? `nothing has “${this.search}” in it` : this.nothing());
    const last = Math.min(told.found, this.offset + kPage);
    const turn = (text, offset) => el("button", {type: "button", disabled: offset < 0 || offset >= told.found, onclick: () => {
      this.offset = offset;
      this.load().then(() => this.list.firstElementChild?.focus());
    }}, text);
    this.page.replaceChildren(...(told.found > kPage ? [turn("Back", this.offset - kPage), turn("Next", this.offset + kPage)] : []),
      el("span", {}, items.length ? `${this.offset + 1} to ${last} of ${format(told.found)}` : "", told.found < told.total ? ` found in ${format(told.total)}` : ""));
  }

  nothing() { return "nothing is there yet"; }

  // j and k: the item after or before the one that has the focus.
  move(by) {
    const items = [...this.list.querySelectorAll(".item")], at = items.indexOf(document.activeElement?.closest?.(".item"));
    const next = items[at < 0 ? (by > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, at + by))];
    next?.focus();
    next?.scrollIntoView({block: "nearest"});
  }
}

export class AnswersPanel extends ListPanel {
  step = null;  // null: the newest, also when there is a newer one
  facts = el("p", {class: "muted small"});

  is_stale() {
    const run = this.runs.find((one) => one.id === this.run), last = run?.records.last ?? null;
    return last !== this.newest;
  }

  async prepare() {
    const told = await ask("records", {run: this.run});
    this.steps = told.steps;
    this.why = told.why;
    this.newest = told.steps.at(-1) ?? null;
    if (this.step !== null && !this.steps.includes(this.step)) this.step = null;
  }

  // The recorded step that is `by` places on.
  go(by) {
    const at = this.steps.indexOf(this.step ?? this.newest), next = Math.min(this.steps.length - 1, Math.max(0, at + by));
    this.step = next === this.steps.length - 1 ? null : this.steps[next];
    this.bar.replaceChildren(...this.controls());
    this.changed();
  }

  controls() {
    if (!this.steps.length) return [this.run_choice()].filter(Boolean);
    const at = this.steps.indexOf(this.step ?? this.newest);
    const slider = el("input", {type: "range", min: "0", max: String(this.steps.length - 1), value: String(at), "aria-label": "Step", oninput: () => {
      const place = Number(slider.value);
      this.step = place === this.steps.length - 1 ? null : this.steps[place];
      shown.textContent = String(this.steps[place]);
      this.typed();
    }});
    const shown = el("output", {}, String(this.steps[at]));
    return [this.run_choice(), field("Step", slider), shown, ...this.common(sorts, ["highest first", "lowest first"]), this.facts].filter(Boolean);
  }

  async fetch() {
    if (!this.steps.length) return null;
    return ask("answers", {...this.query(), step: this.step});
  }

  fill(told) {
    if (!told) { this.tell(this.why); return; }
    const all = told.numbers;
    this.facts.textContent = `${all.answers} answers to ${all.prompts} prompts, reward ${format(all.reward)} (sd ${format(all.reward_std)}), length ${format(all.length)}, ` +
      `${all.ended} ended by themselves${all.failed ? `, ${all.failed} without a reward` : ""}`;
    this.fill_with(told.answers.map((row) => answer_item(row, this.search)), told);
  }
}

export class PairsPanel extends ListPanel {
  early = "";
  late = "";

  is_stale() { const run = this.runs.find((one) => one.id === this.run); return (run?.records.last ?? null) !== this.newest; }

  async prepare() {
    if (this.other === undefined || !this.runs.some((run) => run.id === this.other)) this.other = this.run;
    const [told, others] = await Promise.all([ask("records", {run: this.run}), ask("records", {run: this.other})]);
    this.steps = told.steps;
    this.others = others.steps;
    this.why = told.why || others.why;
    this.newest = told.steps.at(-1) ?? null;
    const keep = (steps, step) => steps.map(String).includes(step);
    if (!keep(this.steps, this.early) || !keep(this.others, this.late)) this.early = this.late = "";
    if (this.run !== this.other && this.early === "" && this.steps.length && this.others.length) {
      const shared = this.steps.filter((step) => this.others.includes(step));
      this.early = String(shared.at(-1) ?? this.steps.at(-1));
      this.late = String(shared.at(-1) ?? this.others.at(-1));
    }
  }

  async again() { await this.prepare(); this.bar.replaceChildren(...this.controls()); await this.changed(); }

  controls() {
    const automatic = this.run === this.other ? [["", "the earliest that come again"]] : [];
    const newest = this.run === this.other ? [["", "the latest"]] : [];
    const steps = (list, first) => [...first, ...list.map((step) => [step, `step ${step}`])];
    const set = (name, usual) => (value) => {
      this[name] = value;
      const twin = name === "early" ? "late" : "early";
      if (value === "") this[twin] = "";
      else if (this[twin] === "") this[twin] = String(usual());
      this.again();
    };
    const more = this.runs.length > 1 ? [field("with", choice(this.runs.map((run) => [run.id, run.name]), this.other,
      (id) => { this.other = Number(id); this.early = this.late = ""; this.again(); }))] : [];
    if (!this.steps.length) return [this.run_choice(), ...more].filter(Boolean);
    return [this.run_choice(), field("Before", choice(steps(this.steps, automatic), this.early, set("early", () => this.others.at(-1)))), ...more,
      field("After", choice(steps(this.others, newest), this.late, set("late", () => this.steps[0]))),
      ...this.common(sorts.slice(0, 4), ["greatest rise first", "greatest fall first"])].filter(Boolean);
  }

  nothing() {
    return this.early === "" ? "no prompt was answered twice yet: it takes a second pass over the prompts" :
      `steps ${this.early} and ${this.late} have no prompt in common`;
  }

  async fetch() {
    if (!this.steps.length || !this.others.length) return null;
    return ask("pairs", {...this.query(), other_run: this.other, step: this.early, other_step: this.late});
  }

  fill(told) {
    if (!told) { this.tell(this.why); return; }
    this.fill_with(told.pairs.map((pair) => pair_item(pair, this.search)), told);
  }
}

export class SamplesPanel extends ListPanel {
  sort = "step";
  table = "";
  tables = [];

  is_stale() {
    const run = this.runs.find((one) => one.id === this.run);
    const is_other = this.size !== run?.sample_bytes;
    this.size = run?.sample_bytes;
    return is_other;
  }

  controls() {
    return [this.run_choice(), field("Table", choice([["", "all"], ...this.tables.map((name) => [name, name])], this.table, (name) => { this.table = name; this.changed(); })),
      ...this.common([["step", "step"], ["reward", "reward"], ["length", "length"]], ["highest first", "lowest first"])].filter(Boolean);
  }

  async prepare() { this.tables = (await ask("samples", {run: this.run, limit: 1})).tables; }

  async fetch() { return ask("samples", {...this.query(), table: this.table}); }
  nothing() { return "no samples yet"; }
  fill(told) { this.fill_with(told.samples.map((row) => sample_item(row, this.search)), told); }
}
