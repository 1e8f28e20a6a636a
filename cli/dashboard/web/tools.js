// Small helpers: elements without markup from data, requests, numbers for people, colours.

// el("div", {class: "x", onclick: f}, "text", child, null): text is text, never markup.
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
    else if (name in node && name !== "list") node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
  return node;
}

export class ServerError extends Error {}

// The answer as JSON; a ServerError with what the server said against it. Other errors: it is not there.
export async function ask(what, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const response = await fetch(`/api/${what}?${new URLSearchParams(given)}`, {cache: "no-store"});
  const body = await response.json();
  if (!response.ok) throw new ServerError(body.error ?? `status ${response.status}`);
  return body;
}

const plain = new Intl.NumberFormat("en", {maximumSignificantDigits: 4, useGrouping: true});
const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});

// "number", "share", "seconds" and "tiny", as the server names the formats of charts.
export function format(value, kind = "number") {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (kind === "share") return `${plain.format(Math.round(value * 1000) / 10)} %`;
  if (kind === "seconds") return duration(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(2).replace(/\.?0+e/, "e").replace("e+", "e");
  return size >= 10000 ? whole.format(value) : plain.format(value);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.9995) return `${plain.format(Math.round(seconds * 1e4) / 10)} ms`;
  if (seconds < 60) return `${plain.format(Math.round(seconds * 100) / 100)} s`;
  const total = Math.round(seconds), days = Math.floor(total / 86400), hours = Math.floor(total / 3600) % 24;
  const minutes = Math.floor(total / 60) % 60;
  if (days > 0) return `${days}d ${hours}h`;
  return hours > 0 ? `${hours}h ${minutes}m` : `${minutes}m ${total % 60}s`;
}

export function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (count >= 1024 && place + 1 < units.length) { count /= 1024; place += 1; }
  return `${plain.format(count)} ${units[place]}`;
}

export function debounce(action, wait) {
  let timer = 0;
  return (...given) => { clearTimeout(timer); timer = setTimeout(() => action(...given), wait); };
}

// Colours that differ in lightness too, for people who see fewer hues (after Okabe and Ito).
const colours = {
  light: ["#0072b2", "#d55e00", "#009e73", "#b0508a", "#c98a00", "#3fa0d8", "#5b4b9a", "#6b7785", "#7a4419", "#c2185b", "#4b7d13", "#00838f"],
  dark: ["#4ba6e6", "#f28a4b", "#2dc498", "#e093c0", "#eec04e", "#9bd4f7", "#a99be6", "#98a4b3", "#c99a6b", "#ff6f9f", "#a5d06a", "#4dd0e1"],
};
export const narrow = matchMedia("(max-width: 760px)");
export const dark = () => document.documentElement.dataset.theme === "dark";
export const colour = (place) => { const all = colours[dark() ? "dark" : "light"]; return all[place % all.length]; };
// Runs that are shown together have different colours while there are enough of them; a run keeps its own as long as it is shown.
const taken = new Map();
export function share_colours(ids) {
  for (const id of [...taken.keys()]) if (!ids.includes(id)) taken.delete(id);
  const count = (place) => [...taken.values()].filter((one) => one === place).length;
  const places = colours.light.map((_, place) => place);
  for (const id of ids) if (!taken.has(id)) taken.set(id, places.reduce((best, place) => count(place) < count(best) ? place : best, 0));
}
export const run_colour = (id) => colour(taken.get(id) ?? id);
export const fade = (hex, share) => hex + Math.round(share * 255).toString(16).padStart(2, "0");
export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// What is remembered between visits; a browser that keeps nothing is no error.
export function remember(name, value) { try { localStorage.setItem(`kedge.${name}`, value); } catch { /* not kept */ } }
export function recall(name) { try { return localStorage.getItem(`kedge.${name}`); } catch { return null; } }

// The text with every place of `wanted` marked.
export function marked(text, wanted) {
  if (!wanted) return [text];
  const parts = [], low = text.toLowerCase(), search = wanted.toLowerCase();
  if (low.length !== text.length) return [text];  // letters that grow when they are made small
  let from = 0;
  for (let at = low.indexOf(search); at >= 0; at = low.indexOf(search, from)) {
    parts.push(text.slice(from, at), el("mark", {}, text.slice(at, at + search.length)));
    from = at + search.length;
  }
  parts.push(text.slice(from));
  return parts;
}

export const empty = (text) => el("p", {class: "empty"}, text);

export function field(label, control) { return el("label", {class: "field"}, label, control); }
export function choice(options, value, change) {
  const select = el("select", {onchange: () => change(select.value)},
    options.map(([key, text]) => el("option", {value: String(key), selected: String(key) === String(value)}, text)));
  return select;
}
