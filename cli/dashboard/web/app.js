// The page: runs at the top, one view at a time below, asked for anew every two seconds.
import {ask, css, dark, debounce, duration, el, format, narrow, recall, remember, run_colour, ServerError, share_colours} from "./tools.js";
import {CurvesPanel, TimingPanel} from "./charts.js";
import {AnswersPanel, PairsPanel, SamplesPanel} from "./answers.js";
import {NotesPanel, ServersPanel, SettingsPanel} from "./panels.js";

const kPeriod = 2000;
const kShownAtFirst = 8;  // of many runs, the newest
const kCompactNumbers = 2;  // of a run in one line

const views = [
  {id: "curves", title: "Curves", panel: new CurvesPanel()},
  {id: "timing", title: "Timing", panel: new TimingPanel()},
  {id: "answers", title: "Answers", panel: new AnswersPanel()},
  {id: "pairs", title: "Before and after", panel: new PairsPanel()},
  {id: "samples", title: "Samples", panel: new SamplesPanel()},
  {id: "servers", title: "Servers", panel: new ServersPanel()},
  {id: "settings", title: "Settings", panel: new SettingsPanel()},
  {id: "notes", title: "Notes", panel: new NotesPanel()},
];
const at = (id) => document.getElementById(id);
const state = {runs: [], hidden: null, view: null, paused: false, timing: "", full: recall("numbers") === "all"};

// --- Light and dark ------------------------------------------------------------------------------------------------
const system = matchMedia("(prefers-color-scheme: dark)");
function set_theme(theme) {
  document.documentElement.dataset.theme = theme;
  at("theme").textContent = theme === "dark" ? "Light" : "Dark";
}
function paint_theme() {
  set_theme(recall("theme") ?? (system.matches ? "dark" : "light"));
  draw_runs();
  for (const view of views) view.panel.repaint?.();
}
function turn_theme() { remember("theme", dark() ? "light" : "dark"); paint_theme(); }

// --- Runs ----------------------------------------------------------------------------------------------------------
const shown_runs = () => state.runs.filter((run) => !state.hidden.has(run.id));

function tile(one) {
  const both = one.first !== null && one.first !== undefined;
  return el("div", {class: "tile"}, el("span", {class: "label"}, one.label.trim()),
    el("span", {class: "value"}, both ? el("span", {class: "from"}, `${format(one.first, one.format)} → `) : null,
      el("span", {class: one.change ?? ""}, format(one.last, one.format))));
}

// Several runs leave the views their room: a line a run, until the reader wants all numbers.
const is_compact = () => !state.full && state.runs.length > (narrow.matches ? 1 : 2);

function run_card(run, several) {
  const off = state.hidden.has(run.id), tone = run.running ? "on" : run.status === "complete" ? "good" : "bad";
  const tint = off ? css("--faint") : run_colour(run.id);
  const short = run.status.length > 60 ? `${run.status.slice(0, 57)}…` : run.status;
  const steps = run.max_steps > 0 ? `step ${format(run.step)} of ${format(run.max_steps)}` : `step ${format(run.step)}`;
  const swatch = el("span", {class: "swatch", "aria-hidden": "true", style: {background: tint, "border-color": tint}});
  const name = several ? el("button", {type: "button", class: "run-name", title: "Show or hide this run", onclick: () => toggle_run(run.id)}, swatch, run.name)
    : el("h1", {class: "run-name"}, run.name);
  if (several) name.setAttribute("aria-pressed", String(!off));
  const compact = is_compact(), tiles = compact ? run.tiles.slice(0, kCompactNumbers) : run.tiles;
  const bar = el("progress", {max: Math.max(1, run.max_steps), value: run.step, "aria-label": `Progress of ${run.name}`});
  if (several) bar.style.setProperty("--run", run_colour(run.id));
  return el("article", {class: `run${off ? " off" : ""}${compact ? " compact" : ""}`},
    el("div", {class: "run-head"}, name, el("span", {class: "muted"}, run.title), el("span", {class: `badge ${tone}`, title: run.status}, short),
      el("span", {class: "muted small right"}, steps, run.seconds > 0 ? ` · ${duration(run.seconds)}` : "",
        run.seconds_left === null ? "" : ` · ${duration(run.seconds_left)} to go`)),
    run.max_steps > 0 ? bar : null, off || !tiles.length ? null : el("div", {class: "tiles"}, tiles.map(tile)));
}

function draw_runs_bar() {
  const count = state.runs.length, shown = count - (state.hidden?.size ?? 0);
  at("runs-bar").hidden = count < 2;
  at("runs-count").textContent = `${count} runs${shown < count ? `, ${shown} shown` : ""}`;
  at("numbers").textContent = state.full ? "Fewer numbers" : "All numbers";
  at("numbers").setAttribute("aria-pressed", String(state.full));
}

function turn_numbers() {
  state.full = !state.full;
  remember("numbers", state.full ? "all" : "few");
  draw_runs();
}

function draw_runs() {
  share_colours(shown_runs().map((run) => run.id));
  const focused = document.activeElement?.closest?.(".run"), place = [...at("runs").children].indexOf(focused);
  at("runs").replaceChildren(...state.runs.map((run) => run_card(run, state.runs.length > 1)));
  at("runs").classList.toggle("many", state.runs.length > 1);
  draw_runs_bar();
  if (place >= 0) at("runs").children[place]?.querySelector("button")?.focus();
}

function toggle_run(id) {
  if (state.hidden.has(id)) state.hidden.delete(id); else state.hidden.add(id);
  draw_runs();
  show_view();
}

// --- Views ---------------------------------------------------------------------------------------------------------
function draw_tabs() {
  at("tabs").replaceChildren(...views.map((view, place) => {
    const button = el("button", {type: "button", role: "tab", id: `tab-${view.id}`, title: `${view.title} (${place + 1})`, onclick: () => open_view(view.id)}, view.title);
    button.setAttribute("aria-controls", "main");
    return button;
  }));
  at("tabs").addEventListener("keydown", (event) => {
    const by = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!by) return;
    const place = views.findIndex((view) => view.id === state.view);
    open_view(views[(place + by + views.length) % views.length].id);
    at(`tab-${state.view}`).focus();
    event.preventDefault();
  });
}

function open_view(id) {
  const view = views.find((one) => one.id === id) ?? views[0];
  state.view = view.id;
  if (location.hash !== `#${view.id}`) history.replaceState(null, "", `#${view.id}`);
  for (const one of views) {
    const tab = at(`tab-${one.id}`);
    tab.setAttribute("aria-selected", String(one === view));
    tab.tabIndex = one === view ? 0 : -1;
  }
  show_tab();
  at("main").replaceChildren(view.panel.node);
  at("main").setAttribute("role", "tabpanel");
  at("main").setAttribute("aria-labelledby", `tab-${view.id}`);
  return show_view();
}

// The chosen tab is on the screen, also where not all of them are.
function show_tab() { at(`tab-${state.view}`)?.scrollIntoView({block: "nearest", inline: "center"}); }

async function show_view() {
  const view = views.find((one) => one.id === state.view);
  if (!view || !state.hidden) return;
  const runs = shown_runs(), key = runs.map((run) => `${run.id}:${run.version}`).join();
  if (view.id === "timing") {  // bars are drawn anew, so only for something new
    if (state.timing === key) return;
    state.timing = key;
  }
  try {
    await view.panel.show(runs);
    complain("");
  } catch (error) {
    if (error instanceof ServerError) complain(error.message); else throw error;
  }
}

// --- Staying up to date ----------------------------------------------------------------------------------------------
function complain(text) { at("banner").textContent = text; at("banner").hidden = text === ""; }
function tell(kind, text) { at("live").dataset.state = kind; at("live-text").textContent = text; }

async function look() {
  try {
    const told = await ask("runs");
    state.runs = told.runs;
    if (!state.hidden) {
      const newest = [...told.runs].sort((a, b) => b.last_time - a.last_time).slice(0, kShownAtFirst);
      state.hidden = new Set(told.runs.filter((run) => !newest.includes(run)).map((run) => run.id));
    }
    document.title = `${told.runs.length === 1 ? told.runs[0].name : `${told.runs.length} runs`} · kedge`;
    draw_runs();
    await show_view();
    tell("live", told.runs.some((run) => run.running) ? "live" : "up to date");
    if (!performance.getEntriesByName("drawn").length) {  // charts are drawn in the frame that finds them on the screen
      requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => performance.mark("drawn"))));
    }
  } catch (error) {
    if (error instanceof ServerError) { complain(error.message); return; }
    console.warn(error);
    tell("lost", "no answer");
    complain("The dashboard's program does not answer: it has ended, or the connection is gone. What you see is as it was.");
  }
}

async function keep_looking() {
  if (!state.paused && !document.hidden) await look();
  setTimeout(keep_looking, kPeriod);
}

function pause() {
  state.paused = !state.paused;
  if (state.paused) tell("paused", "paused"); else look();
}

// --- Keyboard --------------------------------------------------------------------------------------------------------
const panel = () => views.find((view) => view.id === state.view)?.panel;
const curves = views[0].panel;
const keys = [
  ["1 – 8", "the views, in their order", null],
  ["/", "search", () => panel()?.box?.focus()],
  ["j", "the next text", () => panel()?.move?.(1)],
  ["k", "the text before", () => panel()?.move?.(-1)],
  [",", "an earlier step, of the answers", () => panel()?.go?.(-1)],
  [".", "a later step", () => panel()?.go?.(1)],
  ["[", "less smoothing", () => curves.smooth(curves.smoothing - 0.1)],
  ["]", "more smoothing", () => curves.smooth(curves.smoothing + 0.1)],
  ["m", "more curves, or fewer", () => curves.turn_more()],
  ["n", "all numbers of several runs, or a line a run", turn_numbers],
  ["d", "dark or light", turn_theme],
  ["p", "pause, or go on", pause],
  ["?", "this list", () => at("help").showModal()],
  ["Esc", "leave a field, close this list", null],
];

function on_key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || at("help").open) return;
  const types = event.target.matches?.("input:not([type=range]), select, textarea");
  if (event.key === "Escape" && types) { event.target.blur(); return; }
  if (types) return;
  const number = Number(event.key);
  if (number >= 1 && number <= views.length) { open_view(views[number - 1].id); event.preventDefault(); return; }
  const found = keys.find(([key, , action]) => key === event.key && action);
  if (!found) return;
  event.preventDefault();
  found[2]();
}

at("help-keys").append(...keys.flatMap(([key, what]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, what)]));
at("help-button").addEventListener("click", () => at("help").showModal());
at("theme").addEventListener("click", turn_theme);
at("numbers").addEventListener("click", turn_numbers);
narrow.addEventListener("change", draw_runs);
new ResizeObserver(show_tab).observe(at("tabs"));
system.addEventListener("change", paint_theme);
document.addEventListener("keydown", on_key);
document.addEventListener("visibilitychange", debounce(() => { if (!document.hidden && !state.paused) look(); }, 50));
addEventListener("hashchange", () => open_view(location.hash.slice(1)));

set_theme(recall("theme") ?? (system.matches ? "dark" : "light"));
draw_tabs();
open_view(location.hash.slice(1));
keep_looking();
