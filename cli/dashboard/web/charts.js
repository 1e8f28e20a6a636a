// Curves: one card a chart, several runs in each; and the stacked bars of step times.
import {ask, colour, css, dark, duration, el, empty, fade, field, format, recall, remember, run_colour, debounce} from "./tools.js";

const Chart = window.Chart;
const dashes = [[], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3]];
const kPoints = 480;  // more than a chart has pixels
const kDash = 7;  // pixels of one curve where equal ones take turns

// The number of every curve that is nearest to the pointer's step, whatever steps the curves have.
if (Chart) Chart.Interaction.modes.step = (chart, event) => {
  const position = Chart.helpers.getRelativePosition(event, chart), x = chart.scales.x.getValueForPixel(position.x), found = [];
  for (const meta of chart.getSortedVisibleDatasetMetas()) {
    const data = meta._parsed;
    if (meta.hidden || !data.length || chart.data.datasets[meta.index].raw) continue;
    let low = 0, high = data.length - 1;
    while (high - low > 1) { const middle = (low + high) >> 1; if (data[middle].x <= x) low = middle; else high = middle; }
    const index = Math.abs(data[low].x - x) <= Math.abs(data[high].x - x) ? low : high;
    const element = meta.data[index];
    if (element && !element.skip) found.push({element, datasetIndex: meta.index, index, away: Math.abs(data[index].x - x)});
  }
  const least = Math.min(...found.map((one) => one.away)), width = chart.scales.x.max - chart.scales.x.min;
  return found.filter((one) => one.away <= least + width / 40);
};

// A thin line at the step that is looked at.
const crosshair = {
  id: "crosshair",
  afterDatasetsDraw(chart) {
    const active = chart.tooltip?.getActiveElements?.() ?? [];
    if (!active.length) return;
    const {ctx, chartArea} = chart;
    ctx.save();
    ctx.strokeStyle = css("--faint");
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(active[0].element.x, chartArea.top);
    ctx.lineTo(active[0].element.x, chartArea.bottom);
    ctx.stroke();
    ctx.restore();
  },
};

function options(kind, log) {
  const tick = {color: css("--soft"), font: {size: 11}, maxRotation: 0, autoSkipPadding: 18};
  return {
    animation: false, responsive: true, maintainAspectRatio: false, parsing: false, normalized: true, spanGaps: false,
    interaction: {mode: "step", intersect: false},
    elements: {line: {tension: 0, borderJoinStyle: "round"}, point: {hoverRadius: 4}},
    scales: {
      x: {type: "linear", grid: {display: false, borderColor: css("--line")}, ticks: {...tick, precision: 0}},
      y: {type: log ? "logarithmic" : "linear", grid: {color: css("--grid"), drawBorder: false}, grace: log ? 0 : "4%",
        ticks: {...tick, maxTicksLimit: 6, callback: (value) => value === 0 ? "0" : format(value, kind)}},
    },
    plugins: {
      legend: {display: false},
      tooltip: {
        backgroundColor: dark() ? "#0b0f14ee" : "#1b2430ee", padding: 9, boxPadding: 5, usePointStyle: true, titleFont: {weight: "600"},
        itemSort: (a, b) => b.parsed.y - a.parsed.y,
        callbacks: {
          title: (items) => items.length ? `step ${format(Math.floor(items[0].parsed.x))}` : "",
          label: (item) => {
            const single = item.dataset.single?.[item.dataIndex];
            return ` ${item.dataset.label}: ${format(item.parsed.y, kind)}${single === undefined ? "" : ` (raw ${format(single, kind)})`}`;
          },
          labelColor: (item) => ({borderColor: item.dataset.tone, backgroundColor: item.dataset.tone}),
          labelPointStyle: () => ({pointStyle: "line"}),
        },
      },
    },
  };
}

function points(curve, values) {
  const data = new Array(curve.x.length);
  for (let i = 0; i < data.length; ++i) data[i] = {x: curve.x[i], y: values[i] ?? NaN};
  return data;
}

// An axis that does not go below 0, or above 100 %, where the numbers do not; and one around a number that never changes.
function bounds(sets, kind) {
  let low = Infinity, high = -Infinity;
  for (const set of sets) if (!set.hidden) for (const {y} of set.data) { if (y < low) low = y; if (y > high) high = y; }
  if (low > high) return {};
  if (low === high) return low > 0 ? {min: 0, max: kind === "share" ? Math.min(1, 2 * low) : 2 * low, grace: 0} : low === 0 ? {min: kind === "share" ? 0 : -1, max: 1, grace: 0} : {};
  const margin = 0.15 * (high - low), limits = {};
  if (low >= 0 && low < margin) limits.min = 0;
  if (kind === "share" && high <= 1 && high + margin > 1) limits.max = 1;
  return limits;
}

// Runs whose curves are equal, number by number, would hide each other: they take turns along the line, and the later points are smaller.
// The groups' runs, for the note.
function part_equals(sets) {
  const groups = new Map();
  for (const set of sets) {
    if (set.raw || set.hidden) continue;
    const key = `${set.series.name} ${set.data.map(({x, y}) => `${x}:${y}`).join(" ")}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(set);
  }
  const equal = [...groups.values()].filter((group) => group.length > 1);
  for (const group of equal) group.forEach((set, place) => {
    if (place === 0) return;  // the first is drawn whole, below the others
    set.pattern = set.borderDash;  // what the legend shows
    set.order = -place;
    set.borderDash = [kDash, kDash * (group.length - 1)];
    set.borderDashOffset = -kDash * (place - 1);
    set.pointRadius *= 1 - place / group.length;
  });
  return new Set(equal.map((group) => group.map((set) => set.run.name).join(", ")));
}

// One card. `hidden` holds what the reader struck out: names of curves, and runs.
class ChartCard {
  constructor(about) {
    this.about = about;
    this.hidden = new Set();
    this.log = false;
    this.canvas = el("canvas", {role: "img"});
    this.legend = el("div", {class: "legend"});
    this.wild = el("span", {class: "wild"});
    this.equal = el("p", {class: "equal muted small", hidden: true});
    const press = (text, title, action) => {
      const button = el("button", {type: "button", title, onclick: () => button.setAttribute("aria-pressed", String(action()))}, text);
      button.setAttribute("aria-pressed", "false");
      return button;
    };
    this.node = el("article", {class: "card chart", id: `chart-${about.id}`},
      el("div", {class: "card-head"}, el("h3", {}, about.title), el("span", {class: "unit"}, about.unit), this.wild,
        el("div", {class: "card-tools"},
          press("log", "Logarithmic axis", () => { this.log = !this.log; this.draw(); return this.log; }),
          press("wide", "Over the whole width", () => this.node.classList.toggle("wide")))),
      el("div", {class: "plot"}, this.canvas), this.legend, this.equal);
  }

  show(runs, curves, smoothing) {
    this.sources = {runs, curves, smoothing};
    this.dirty = true;
    if (this.visible) this.draw();
  }

  // A colour a curve, or of several runs a colour a run and a dash a curve. Validation has the looks of its training, with points.
  datasets() {
    const {runs, curves, smoothing} = this.sources, sets = [], several = runs.length > 1;
    const bases = [...new Set(this.about.series.map((series) => series.label.replace(/, validation$/, "")))];
    let wild = 0;
    for (const run of runs) {
      for (const series of this.about.series) {
        const curve = curves.get(run.id)?.[series.name];
        if (!curve) continue;
        wild += curve.wild ?? 0;
        const place = bases.indexOf(series.label.replace(/, validation$/, "")), tone = several ? run_colour(run.id) : colour(place);
        const label = !several ? series.label : this.about.series.length > 1 ? `${run.name}, ${series.label}` : run.name;
        const common = {label, tone, run, series, borderColor: tone, backgroundColor: tone, borderDash: several ? dashes[place % dashes.length] : [],
          hidden: this.hidden.has(`run ${run.id}`) || this.hidden.has(series.label), pointRadius: 0, pointHitRadius: 0};
        if (series.validation) {
          sets.push({...common, data: points(curve, curve.y), borderWidth: 1.4, borderDash: [3, 3], pointRadius: curve.x.length <= 40 ? 2.5 : 0});
        } else if (smoothing > 0 && curve.s && curve.x.length > 2) {
          sets.push({...common, data: points(curve, curve.s), single: curve.y, borderWidth: 2});
          sets.push({...common, data: points(curve, curve.y), raw: true, borderColor: fade(tone, 0.28), backgroundColor: fade(tone, 0.28), borderDash: [], borderWidth: 1});
        } else {
          sets.push({...common, data: points(curve, curve.y), borderWidth: 1.8, pointRadius: curve.x.length === 1 ? 3 : 0});
        }
      }
    }
    this.wild.textContent = wild > 0 ? `${wild} not finite` : "";
    return sets;
  }

  draw() {
    if (!this.sources) return;
    this.dirty = false;
    const sets = this.datasets(), equal = [...part_equals(sets)];
    this.equal.textContent = equal.map((names) => `Equal, number by number: ${names}.`).join(" ");
    this.equal.hidden = equal.length === 0;
    this.node.hidden = sets.length === 0;
    const setup = options(this.about.format, this.log);
    if (!this.log) Object.assign(setup.scales.y, bounds(sets, this.about.format));
    if (this.chart && this.chart.options.scales.y.type !== setup.scales.y.type) this.drop();
    if (this.chart) {
      this.chart.options = setup;
      this.chart.data.datasets = sets;
      this.chart.update("none");
    } else {
      this.chart = new Chart(this.canvas, {type: "line", data: {datasets: sets}, options: setup, plugins: [crosshair]});
    }
    this.describe(sets);
  }

  describe(sets) {
    const named = sets.filter((set) => !set.raw);
    const last = (set) => { for (let i = set.data.length - 1; i >= 0; --i) if (!Number.isNaN(set.data[i].y)) return set.data[i].y; return null; };
    this.canvas.setAttribute("aria-label", `${this.about.title}: ` +
      named.map((set) => `${set.label} ${format(last(set), this.about.format)} at the end`).join("; "));
    this.legend.replaceChildren(...(named.length < 2 ? [] : this.entries(named).map((entry, place) => {
      const button = el("button", {type: "button", title: "Show or hide", onclick: () => {
        if (this.hidden.has(entry.key)) this.hidden.delete(entry.key); else this.hidden.add(entry.key);
        this.draw();
        this.legend.children[place]?.focus();
      }}, el("span", {class: "key", style: {"border-color": entry.tone, "border-top-style": entry.dashed ? "dashed" : "solid"}}), el("span", {}, entry.label));
      button.setAttribute("aria-pressed", String(!this.hidden.has(entry.key)));
      return button;
    })));
  }

  // Of several runs, each run once and each curve once.
  entries(sets) {
    const found = new Map(), several = this.sources.runs.length > 1, many = this.about.series.length > 1;
    for (const set of sets) {
      if (several) found.set(`run ${set.run.id}`, {key: `run ${set.run.id}`, label: set.run.name, tone: set.tone});
    }
    for (const set of sets) {
      if (!several || many) found.set(set.series.label, {key: set.series.label, label: set.series.label, tone: several ? css("--soft") : set.tone, dashed: (set.pattern ?? set.borderDash).length > 0});
    }
    return [...found.values()];
  }

  drop() { this.chart?.destroy(); this.chart = null; }
}

// All curves. Charts that are not on the screen wait until they are.
export class CurvesPanel {
  constructor() {
    this.smoothing = Number(recall("smoothing") ?? 0.6);
    if (!(this.smoothing >= 0 && this.smoothing < 1)) this.smoothing = 0;
    this.cards = new Map();
    this.main = el("div", {class: "grid"});
    this.rest = el("div", {class: "grid"});
    this.more = el("details", {class: "more", ontoggle: () => this.refresh()}, el("summary", {}, "More: everything else that the runs log"), this.rest);
    this.shown = el("output", {}, "");
    this.slider = el("input", {type: "range", min: "0", max: "0.99", step: "0.01", value: String(this.smoothing), id: "smoothing",
      oninput: () => this.smooth(Number(this.slider.value))});
    this.note = el("span", {class: "muted small right"});
    this.node = el("div", {}, el("div", {class: "bar"}, field("Smoothing", this.slider), this.shown, this.note), this.main, this.more);
    this.watch = new IntersectionObserver((entries) => {
      for (const entry of entries) {
        const card = entry.target.card;
        card.visible = entry.isIntersecting;
        if (card.visible && card.dirty) card.draw();
      }
    }, {rootMargin: "200px"});
    this.curves = {main: new Map(), more: new Map()};
    this.versions = new Map();
    this.fetchSoon = debounce(() => this.refresh(), 90);
    this.tell();
  }

  tell() { this.shown.textContent = this.smoothing > 0 ? this.smoothing.toFixed(2) : "off"; }

  smooth(value) {
    this.smoothing = Math.min(0.99, Math.max(0, Math.round(value * 100) / 100));
    this.slider.value = String(this.smoothing);
    remember("smoothing", String(this.smoothing));
    this.tell();
    this.fetchSoon();
  }

  async turn_more() {
    this.more.open = !this.more.open;
    if (!this.more.open) return;
    await this.refresh();
    this.more.scrollIntoView({block: "start"});
  }

  // `runs`: those that are shown. Asks only for what is new.
  async show(runs) {
    this.runs = runs;
    await this.refresh();
  }

  // Asks for everything that is new at once.
  async refresh() {
    if (!this.runs) return;
    const runs = this.runs, names = runs.map((run) => `${run.id}:${run.version}`).join(), asked = [];
    if (names !== this.known) {
      asked.push(ask("charts", {runs: runs.map((run) => run.id).join()}).then((told) => {
        this.known = names;
        this.layout(told.charts);
      }));
    }
    for (const place of this.more.open ? ["main", "more"] : ["main"]) {
      for (const run of runs) {
        const key = `${place}:${run.id}`, version = `${run.version}:${this.smoothing}`;
        if (this.versions.get(key) === version) continue;
        asked.push(ask("series", {run: run.id, smooth: this.smoothing, points: kPoints, more: place === "more" ? 1 : 0}).then((told) => {
          this.versions.set(key, version);
          this.curves[place].set(run.id, told.series);
        }));
      }
    }
    if (!asked.length && this.painted === names) return;
    await Promise.all(asked);
    this.painted = names;
    this.paint();
  }

  layout(charts) {
    const wanted = new Set(charts.map((chart) => chart.id));
    for (const [id, card] of this.cards) if (!wanted.has(id)) { card.drop(); this.watch.unobserve(card.node); card.node.remove(); this.cards.delete(id); }
    for (const about of charts) {
      let card = this.cards.get(about.id);
      if (card) { card.about = about; continue; }
      card = new ChartCard(about);
      card.node.card = card;
      this.cards.set(about.id, card);
      this.watch.observe(card.node);
    }
    const place = (home, main) => {
      const nodes = charts.filter((chart) => chart.main === main).map((chart) => this.cards.get(chart.id).node);
      nodes.forEach((node, at) => { if (home.children[at] !== node) home.insertBefore(node, home.children[at] ?? null); });
    };
    place(this.main, true);
    place(this.rest, false);
    this.main.querySelector(".empty")?.remove();
    if (!charts.length) this.main.append(empty(this.runs.length ? "no numbers yet: the first step is not done" : "no run is shown: choose one above"));
    this.more.hidden = !charts.some((chart) => !chart.main);
  }

  paint() {
    for (const card of this.cards.values()) card.show(this.runs, card.about.main ? this.curves.main : this.curves.more, this.smoothing);
    const most = Math.max(0, ...this.runs.flatMap((run) => Object.values(this.curves.main.get(run.id) ?? {}).map((curve) => curve.n)));
    this.note.textContent = most > kPoints ? `${format(most)} points a curve, drawn with their extremes` : "";
  }

  repaint() { for (const card of this.cards.values()) { card.drop(); if (card.visible) card.draw(); else card.dirty = true; } }
}

// Where the time of a step goes: a chart of stacked bars for every run, and the shares.
export class TimingPanel {
  constructor() { this.node = el("div", {class: "grid"}); this.cards = new Map(); this.hidden = new Set(); }

  async show(runs) {
    this.runs = runs;
    const told = await Promise.all(runs.map((run) => ask("timing", {run: run.id, bars: 60})));
    for (const card of this.cards.values()) card.chart?.destroy();
    this.cards.clear();
    this.node.replaceChildren(...runs.map((run, place) => this.card(run, told[place])));
    if (!runs.length) this.node.append(empty("no run is shown: choose one above"));
  }

  card(run, told) {
    const home = el("article", {class: "card wide timing"}, el("div", {class: "card-head"}, el("h3", {}, run.name), el("span", {class: "unit"}, "seconds a step")));
    if (!told.from.length) { home.append(empty("no times yet: the first step is not done")); return home; }
    const canvas = el("canvas", {role: "img"}), legend = el("div", {class: "legend"});
    home.append(el("div", {class: "plot"}, canvas), legend, this.table(told));
    const labels = told.from.map((from, i) => from === told.to[i] ? `${from}` : `${from}–${told.to[i]}`);
    const sets = told.parts.map((part, place) => ({label: part.label, data: part.seconds, backgroundColor: part.label === "the rest" ? css("--faint") : colour(place),
      hidden: this.hidden.has(part.label), categoryPercentage: 1, barPercentage: labels.length > 30 ? 0.92 : 0.8}));
    const setup = options("seconds", false);
    delete setup.interaction;
    setup.parsing = true;
    setup.normalized = false;
    setup.interaction = {mode: "index", intersect: false};
    setup.scales.x = {...setup.scales.x, type: "category", stacked: true};
    setup.scales.y = {...setup.scales.y, stacked: true, grace: 0};
    setup.plugins.tooltip.itemSort = (a, b) => b.datasetIndex - a.datasetIndex;
    setup.plugins.tooltip.callbacks = {
      title: (items) => items.length ? `step ${items[0].label}` : "",
      label: (item) => ` ${item.dataset.label}: ${duration(item.parsed.y)}`,
      footer: (items) => `together ${duration(items.reduce((sum, item) => sum + item.parsed.y, 0))}`,
      labelColor: (item) => ({borderColor: item.dataset.backgroundColor, backgroundColor: item.dataset.backgroundColor}),
    };
    setup.plugins.tooltip.usePointStyle = false;
    const chart = new Chart(canvas, {type: "bar", data: {labels, datasets: sets}, options: setup});
    canvas.setAttribute("aria-label", `Times of steps of ${run.name}; the table below has the means`);
    this.cards.set(run.id, {chart});
    legend.append(...sets.map((set, place) => {
      const button = el("button", {type: "button", onclick: () => {
        if (this.hidden.has(set.label)) this.hidden.delete(set.label); else this.hidden.add(set.label);
        chart.data.datasets[place].hidden = this.hidden.has(set.label);
        button.setAttribute("aria-pressed", String(!this.hidden.has(set.label)));
        chart.update("none");
      }}, el("span", {class: "key box", style: {background: set.backgroundColor}}), el("span", {}, set.label));
      button.setAttribute("aria-pressed", String(!this.hidden.has(set.label)));
      return button;
    }));
    return home;
  }

  // Means over all steps, as kedge report has them.
  table(told) {
    const means = told.parts.map((part) => part.mean), all = means.reduce((sum, value) => sum + value, 0);
    return el("div", {class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, el("th", {}, "part"), el("th", {class: "number"}, "mean"), el("th", {class: "number"}, "share"))),
      el("tbody", {}, told.parts.map((part, place) => el("tr", {}, el("td", {}, part.label), el("td", {class: "number"}, duration(means[place])),
        el("td", {class: "number"}, format(all > 0 ? means[place] / all : 0, "share")))))));
  }

  repaint() { if (this.runs) this.show(this.runs); }
}
