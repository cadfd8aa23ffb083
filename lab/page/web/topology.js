// The processes as the slides draw them, with the messages that are under way: a ring, a full
// graph, or a star round the service.

import { svg } from "./svg.js";

const SIZE = 440;
const CENTRE = SIZE / 2;
const RADIUS = 152;
// Of the letters of a label, at their largest.
const LETTER = 8.5;
const HIGH = 15;

// layout gives each process its place.
function layout(trace) {
  const outer = trace.processes.filter((p) => !p.service);
  const places = new Map();
  outer.forEach((p, i) => {
    const angle = (2 * Math.PI * i) / outer.length - Math.PI / 2;
    places.set(p.id, { angle, x: CENTRE + RADIUS * Math.cos(angle), y: CENTRE + RADIUS * Math.sin(angle) });
  });
  for (const p of trace.processes.filter((q) => q.service)) places.set(p.id, { x: CENTRE, y: CENTRE });
  return { outer, places, size: Math.max(9, Math.min(25, 300 / outer.length)) };
}

// side is where a text starts that stands outside the circle at an angle, or inside it.
function side(angle, inside) {
  const right = Math.cos(angle ?? Math.PI / 2);
  if (Math.abs(right) < 0.3) return "middle";
  return right > 0 === Boolean(inside) ? "end" : "start";
}

// edges are the lines between processes, behind everything.
function edges(trace, { outer, places }) {
  const line = (a, b) => svg("line", { class: "edge", x1: a.x, y1: a.y, x2: b.x, y2: b.y });
  if (trace.topology === "ring") {
    return [svg("circle", { class: "edge", cx: CENTRE, cy: CENTRE, r: RADIUS, fill: "none" })];
  }
  if (trace.topology === "star") {
    const hub = trace.processes.find((p) => p.service);
    return hub ? outer.map((p) => line(places.get(p.id), places.get(hub.id))) : [];
  }
  if (outer.length > 24) return [];
  return outer.flatMap((p, i) => outer.slice(i + 1).map((q) => line(places.get(p.id), places.get(q.id))));
}

// along is the point at a fraction of a message's way: on a ring round it, else straight.
function along(trace, places, m, fraction) {
  const a = places.get(m.from);
  const b = places.get(m.to);
  if (trace.topology === "ring" && a.angle !== undefined && b.angle !== undefined) {
    let turn = b.angle - a.angle;
    if (turn > Math.PI) turn -= 2 * Math.PI;
    if (turn < -Math.PI) turn += 2 * Math.PI;
    // With two processes both ways are as long: clockwise, as the messages go.
    if (Math.abs(Math.abs(turn) - Math.PI) < 1e-9) turn = Math.PI;
    const angle = a.angle + turn * fraction;
    return { x: CENTRE + RADIUS * Math.cos(angle), y: CENTRE + RADIUS * Math.sin(angle), angle };
  }
  return { x: a.x + (b.x - a.x) * fraction, y: a.y + (b.y - a.y) * fraction };
}

// statusOf is what stands below a process.
export function statusOf(state) {
  if (!state.up) return "down";
  if (/^(N|S)\d*$/.test(state.status)) return "→ " + state.status;
  return state.status === "-" ? "" : state.status;
}

export const lookOf = (state) => ({ down: "down", LEADS: "leads", INSIDE: "inside", asks: "asks" }[
  state.up ? state.status : "down"] || "up");

export class Topology {
  constructor(root, pick) {
    this.root = root;
    this.pick = pick;
  }

  load(player, palette) {
    this.player = player;
    this.palette = palette;
    const { trace } = player;
    this.plan = layout(trace);
    this.moving = svg("g", {});
    this.ghosts = svg("g", { class: "ghosts" });
    this.nodes = new Map(trace.processes.map((p) => [p.id, this.node(p)]));
    this.root.classList.toggle("crowd", this.plan.outer.length > 16);
    this.root.replaceChildren(...edges(trace, this.plan), this.ghosts, ...[...this.nodes.values()].map((n) => n.group),
      this.moving);
  }

  node(p) {
    const { x, y, angle } = this.plan.places.get(p.id);
    const r = this.plan.size;
    const out = r + (this.plan.outer.length > 24 ? 16 : 20);
    const label = angle === undefined ? { x, y: y + r + 16 }
      : { x: x + out * Math.cos(angle), y: y + out * Math.sin(angle) + 4 };
    const status = svg("text", { class: "status", x: label.x, y: label.y, "text-anchor": side(angle) });
    const shape = p.service
      ? svg("rect", { x: x - r, y: y - r, width: 2 * r, height: 2 * r, rx: 6 })
      : svg("circle", { cx: x, cy: y, r });
    const lines = `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`;
    const size = Math.max(8, Math.min(14, r * 0.68));
    const name = svg("text", { class: "name", x, y: y + 4, "text-anchor": "middle", "font-size": size }, p.name);
    const group = svg("g", { class: "node", onclick: (e) => this.pick({ process: p.id }, e) },
      shape, name, svg("path", { class: "cross", d: lines }), status);
    return { group, status };
  }

  draw() {
    const { player } = this;
    const states = player.replay.to(player.k);
    for (const [id, node] of this.nodes) {
      const state = states.get(id);
      const now = player.step?.process === id ? " now" : "";
      node.group.setAttribute("class", `node ${lookOf(state)}${now}`);
      node.status.textContent = statusOf(state);
    }
    this.texts = [...this.plan.places.values()].map(({ x, y }) => ({ left: x - this.plan.size,
      width: 2 * this.plan.size, y: y + 4, high: this.plan.size + 8 }));
    this.moving.replaceChildren(...player.replay.underWay(player.k, player.now)
      .map((i) => this.dot(player.trace, i, true)).filter(Boolean));
    const { otherReplay, now } = player;
    const ghosts = player.other ? otherReplay.underWay(otherReplay.stepsUntil(now), now) : [];
    this.ghosts.replaceChildren(...ghosts.map((i) => this.dot(player.other, i, false)).filter(Boolean));
  }

  dot(trace, i, mine) {
    const m = trace.messages[i];
    const { places } = this.plan;
    if ((m.quiet && !this.player.upkeep) || !places.has(m.from) || !places.has(m.to)) return null;
    const fraction = m.ends > m.sent ? Math.max(0, Math.min(1, (this.player.now - m.sent) / (m.ends - m.sent))) : 1;
    // A message that has just left is seen outside its sender, and one that arrives before its receiver.
    const at = along(trace, places, m, 0.26 + 0.5 * fraction);
    const kind = this.palette.of(m.type);
    if (!mine) return svg("circle", { class: `ghost ${kind}`, cx: at.x, cy: at.y, r: 6 });
    const low = at.angle === undefined ? { x: at.x, y: at.y - 11 }
      : { x: at.x - 16 * Math.cos(at.angle), y: at.y - 16 * Math.sin(at.angle) + 4 };
    return svg("g", { class: `message ${kind}${m.lost ? " lost" : ""}`, onclick: (e) => this.pick({ message: i }, e) },
      svg("circle", { class: "target", cx: at.x, cy: at.y, r: 14 }),
      m.lost ? svg("path", { class: "mark", d: `M${at.x - 5} ${at.y - 5}l10 10m0 -10l-10 10` })
        : svg("circle", { cx: at.x, cy: at.y, r: 6.5 }),
      this.plan.outer.length <= 16 && this.text(low, side(at.angle, true), m.label));
  }

  // text labels a message, above its dot or below it; where others stand it is left out: the lists have it, too.
  text({ x, y }, anchor, label) {
    const width = label.length * LETTER;
    const left = x - { start: 0, middle: width / 2, end: width }[anchor];
    const place = [y, y + 26, y - 15, y + 41].find((at) => this.texts.every((o) => o.left >= left + width
      || left >= o.left + o.width || Math.abs(o.y - at) >= o.high));
    if (place === undefined) return null;
    this.texts.push({ left, width, y: place, high: HIGH });
    return svg("text", { x, y: place, "text-anchor": anchor }, label);
  }
}
