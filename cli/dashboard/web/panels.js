// Servers, settings and notes.
import {ask, bytes, duration, el, empty, field, format} from "./tools.js";

// How the servers are that the runs' settings name. The program asks them, not this page.
export class ServersPanel {
  constructor() { this.node = el("div", {class: "grid"}); }

  async show(runs) {
    const {servers} = await ask("servers");
    const shown = servers.filter((server) => runs.some((run) => run.id === server.run));
    this.node.replaceChildren(...shown.map((server) => this.card(server, runs)));
    if (!shown.length) this.node.append(empty("no servers: these runs call none for rewards or values"));
  }

  card(server, runs) {
    const run = runs.find((one) => one.id === server.run);
    const is_done_with = run && !run.running && server.state === "away";  // nobody calls it, so that it is gone is no fault
    const tone = is_done_with ? "" : {ready: "good", away: "bad", refuses: "bad", "not ready": "on"}[server.state] ?? "";
    const text = is_done_with ? "Nobody listens there any more. The run is not going on, so nothing calls it." : server.text;
    const of = (name) => server.numbers.filter((number) => number.name === name);
    const sum = (name, labels = "") => of(name).filter((number) => number.labels.includes(labels)).reduce((total, number) => total + number.value, 0);
    const rows = !server.numbers.length ? [] : [
      ["calls answered", format(sum("kedge_calls_total", 'outcome="done"'))],
      ["refused, failed, dropped", ["refused", "failed", "dropped"].map((one) => format(sum("kedge_calls_total", `outcome="${one}"`))).join(", ")],
      ["rows computed", format(sum("kedge_rows_total"))],
      ["waiting now", format(sum("kedge_queue_length"))],
      ["connections", format(sum("kedge_connections"))],
      ["time computing", duration(sum("kedge_compute_seconds_total"))],
      ["time waiting", duration(sum("kedge_queue_seconds_total"))],
      ["memory", bytes(sum("kedge_resident_bytes"))],
    ];
    return el("article", {class: "card server"}, el("div", {class: "card-head"}, el("h3", {}, server.label),
      el("span", {class: `badge ${tone}`}, is_done_with ? "ended" : server.state)),
      el("p", {class: "muted small"}, el("code", {}, server.address), runs.length > 1 && run ? ` of ${run.name}` : ""),
      server.state === "ready" ? null : el("p", {class: "small"}, text),
      rows.length ? el("table", {}, el("tbody", {}, rows.map(([name, value]) => el("tr", {}, el("td", {class: "muted"}, name), el("td", {class: "number"}, value))))) : null);
  }
}

// Keys that differ: between runs, or from the defaults.
export class SettingsPanel {
  constructor() {
    this.wanted = "";
    this.box = el("input", {type: "search", placeholder: "in keys and values", oninput: () => { this.wanted = this.box.value; this.fill(); }});
    this.title = el("h2");
    this.home = el("div", {class: "card scroll settings"});
    this.node = el("div", {}, el("div", {class: "bar"}, this.title, field("Search", this.box)), this.home);
  }

  async show(runs) {
    const ids = runs.map((run) => run.id).join();
    if (ids === this.ids) return;
    this.told = runs.length ? await ask("settings", {runs: ids}) : {columns: [], rows: [], note: ""};
    this.ids = ids;
    this.title.textContent = runs.length > 1 ? "Settings that differ" : "Settings that are not the default";
    this.fill();
  }

  fill() {
    const wanted = this.wanted.toLowerCase(), has = (text) => (text ?? "").toLowerCase().includes(wanted);
    const rows = this.told.rows.filter((row) => has(row.key) || row.values.some(has));
    if (!rows.length) {
      this.home.replaceChildren(empty(this.told.note || (wanted ? `nothing has “${this.wanted}” in it` : "none")));
      return;
    }
    this.home.replaceChildren(el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "key"), this.told.columns.map((name) => el("th", {}, name)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, el("td", {}, el("code", {}, row.key)),
        row.values.map((value) => el("td", {class: value === null ? "muted" : ""}, value === null ? "not set" : el("code", {}, value))))))));
  }
}

// Where a run might have gone wrong.
export class NotesPanel {
  constructor() { this.node = el("div", {class: "list"}); }

  async show(runs) {
    const key = runs.map((run) => `${run.id}:${run.version}:${run.status}`).join();
    if (key === this.key) return;
    this.key = key;
    const told = await Promise.all(runs.map((run) => ask("notes", {run: run.id})));
    this.node.replaceChildren(...runs.map((run, place) => {
      const notes = told[place].notes;
      return el("article", {class: "card notes"}, el("div", {class: "card-head"}, el("h3", {}, run.name), el("span", {class: "unit"}, run.folder)),
        notes.length ? el("table", {}, el("tbody", {}, notes.map((note) => el("tr", {},
          el("td", {}, el("span", {class: `badge ${note.kind === "hint" ? "" : "bad"}`}, note.kind)),
          el("td", {class: "muted"}, note.step === null ? "" : `step ${format(note.step)}`), el("td", {}, note.what))))) :
        el("p", {class: "muted"}, "Nothing stands out. That is no proof: read the answers."));
    }));
    if (!runs.length) this.node.append(empty("no run is shown: choose one above"));
  }
}
