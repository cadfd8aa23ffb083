// The space-time chart: a column a process, time downwards. What has not happened yet is pale.
// Only what can be seen is drawn, so that thousands of messages can be scrolled through.

import { svg, number } from "./svg.js";

const LEFT = 46; // for the times
const TOP = 12;
const MOST = 1200; // messages drawn at a time
const LETTER = 6.1; // width of one in a label

export class Chart {
  constructor(parts, pick, seek) {
    this.box = parts.box;
    this.heads = parts.heads;
    this.body = parts.body;
    this.pick = pick;
    this.box.addEventListener("scroll", () => this.schedule());
    new ResizeObserver(() => { if (this.player) { this.measure(); this.draw(); } }).observe(this.box);
    this.body.addEventListener("click", (e) => {
      if (e.target.closest(".arrow")) return;
      seek(this.player.scale.time(e.clientY - this.body.getBoundingClientRect().top - TOP));
    });
  }

  load(player, palette) {
    this.player = player;
    this.palette = palette;
    const names = new Map([...player.trace.processes, ...(player.other?.processes || [])].map((p) => [p.id, p.name]));
    this.columns = [...names.keys()];
    this.names = names;
    this.measure();
    this.box.scrollTop = 0;
  }

  measure() {
    const n = this.columns.length;
    this.step = Math.max(40, Math.min(190, (this.box.clientWidth - LEFT - 18) / n));
    this.width = Math.max(this.box.clientWidth - 2, LEFT + this.step * n + 12);
    this.height = this.player.scale.length + TOP + 22;
    for (const [part, height] of [[this.heads, 28], [this.body, this.height]]) {
      part.setAttribute("width", this.width);
      part.setAttribute("height", height);
    }
    this.heads.replaceChildren(...this.columns.map((id) => svg("g",
      { class: "head", onclick: (e) => this.pick({ process: id }, e) },
      svg("rect", { x: this.x(id) - 19, y: 3, width: 38, height: 22, rx: 11 }),
      svg("text", { x: this.x(id), y: 18, "text-anchor": "middle" }, this.names.get(id)))));
  }

  x(id) { return LEFT + this.step * (this.columns.indexOf(id) + 0.5); }

  y(time) { return TOP + this.player.scale.y(time); }

  schedule() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.draw(); });
  }

  // follow scrolls to the moment that is shown.
  follow() {
    const y = this.y(this.player.now);
    const { scrollTop, clientHeight } = this.box;
    const room = clientHeight - 40;
    if (y < scrollTop + 20 || y > scrollTop + room - 70) this.box.scrollTop = Math.max(0, y - room * 0.45);
  }

  draw() {
    const { player } = this;
    this.from = this.box.scrollTop - 120;
    this.until = this.box.scrollTop + this.box.clientHeight + 120;
    this.labels = [];
    this.texts = []; // in front of all arrows
    const nowY = this.y(player.now);
    const parts = [
      ...this.times(), ...this.lifelines(),
      ...(player.other ? this.spans(player.other, "other") : []), ...this.spans(player.trace, ""),
      ...(player.other ? this.arrows(player.other, player.otherReplay, "other") : []),
      ...this.arrows(player.trace, player.replay, ""), ...this.marks(),
      svg("line", { class: "now", x1: LEFT - 6, x2: this.width, y1: nowY, y2: nowY }),
      svg("text", { class: "now", x: 4, y: nowY + 4 }, number(player.now)),
    ];
    this.body.replaceChildren(...parts.filter(Boolean), ...this.texts);
  }

  seen(a, b) { return Math.max(a, b) >= this.from && Math.min(a, b) <= this.until; }

  times() {
    const nowY = this.y(this.player.now);
    let last = -100;
    return this.player.scale.times.map((time) => {
      const y = this.y(time);
      if (y - last < 15 || !this.seen(y, y)) return null;
      last = y;
      return svg("g", { class: "tick" }, svg("line", { x1: LEFT - 6, x2: this.width, y1: y, y2: y }),
        Math.abs(y - nowY) > 12 && svg("text", { x: 4, y: y + 4 }, number(time)));
    });
  }

  lifelines() {
    const bottom = this.y(this.player.end) + 10;
    return this.columns.flatMap((id) => {
      const x = this.x(id);
      // A line ends where its process crashes, and goes on where it comes back.
      let from = TOP;
      const lines = [];
      for (const s of this.player.trace.spans.filter((d) => d.process === id && d.what === "down")) {
        lines.push([from, this.y(s.from)]);
        from = s.open ? bottom : this.y(s.until);
      }
      lines.push([from, bottom]);
      return lines.filter(([a, b]) => b > a)
        .map(([a, b]) => svg("line", { class: "life", x1: x, x2: x, y1: a, y2: b }));
    });
  }

  spans(trace, whose) {
    return trace.spans.map((s) => {
      const y = this.y(s.from);
      const end = s.open ? this.y(this.player.end) + 10 : this.y(s.until);
      if (!this.columns.includes(s.process) || !this.seen(y, end)) return null;
      const x = this.x(s.process);
      if (s.what === "down") {
        return svg("g", { class: `down ${whose}` }, svg("title", {}, `down from ${number(s.from)}`),
          svg("line", { x1: x, x2: x, y1: y + 8, y2: end }),
          svg("path", { d: `M${x - 6} ${y - 6}l12 12m0 -12l-12 12` }));
      }
      const wide = { leads: 13, inside: 13, asks: 5 }[s.what];
      const shift = whose ? 9 : 0;
      const words = { leads: "leads", inside: "inside" }[s.what];
      const text = words && !whose && this.y(this.player.now) - y > 44 && y >= this.from
        && svg("text", { x, y: y + 12, transform: `rotate(90 ${x} ${y + 12}) translate(0 3.5)` }, words);
      // What lies behind the moment shown, and what is to come of it.
      const nowY = whose ? Infinity : Math.max(y, Math.min(end, this.y(this.player.now)));
      const left = x - wide / 2 + shift;
      const rect = (a, b, look) => b > a
        && svg("rect", { class: look, x: left, y: a, width: wide, height: b - a, rx: 3 });
      return svg("g", { class: `span ${s.what} ${whose}` },
        svg("title", {}, `${s.what} ${number(s.from)} to ${number(s.until)}`),
        rect(y, Math.min(nowY, Math.max(end, y + 3)), ""), rect(nowY, end, "future"), text);
    });
  }

  arrows(trace, replay, whose) {
    const { player } = this;
    const drawn = [];
    trace.messages.forEach((m, i) => {
      if (drawn.length >= MOST || (m.quiet && !player.upkeep)) return;
      const [y1, y2] = [this.y(m.sent), this.y(m.ends)];
      if (!this.seen(y1, y2) || !this.columns.includes(m.from) || !this.columns.includes(m.to)) return;
      const future = !whose && replay.sentBy[i] >= player.k;
      drawn.push(this.arrow(trace, m, i, y1, y2, whose, future));
    });
    return drawn;
  }

  arrow(trace, m, i, y1, y2, whose, future) {
    const [x1, x2] = [this.x(m.from), this.x(m.to)];
    const n = this.columns.length;
    const [a, b] = [this.columns.indexOf(m.from), this.columns.indexOf(m.to)];
    // Round the end of the ring a message leaves the chart on one side and enters it on the other.
    const wraps = trace.topology === "ring" && n > 2 && Math.abs(a - b) === n - 1;
    const half = (this.step * 0.55) * (a > b ? 1 : -1);
    const middle = (y1 + y2) / 2;
    const pieces = wraps ? [[x1, y1, x1 + half, middle], [x2 - half, middle, x2, y2]] : [[x1, y1, x2, y2]];
    const [hx, hy, tx, ty] = pieces.at(-1);
    const path = pieces.map(([p, q, r, s]) => `M${p} ${q}L${r} ${s}`).join("");
    const text = `${m.label} ${m.type}@${m.nth}, ${this.names.get(m.from)} to ${this.names.get(m.to)}`
      + (m.lost ? `: ${m.lost}` : "");
    const classes = ["arrow", this.palette.of(m.type), whose, m.lost && "lost", m.copy && "copy", future && "future"];
    if (!whose) this.label(m.label, pieces[0], `label ${this.palette.of(m.type)} ${future ? "future" : ""}`);
    const onclick = whose ? undefined : (e) => this.pick({ message: i }, e);
    return svg("g", { class: classes.filter(Boolean).join(" "), onclick }, svg("title", {}, text),
      !whose && svg("path", { class: "target", d: path }), svg("path", { class: "line", d: path }),
      m.lost ? svg("path", { class: "mark", d: `M${tx - 5} ${ty - 5}l10 10m0 -10l-10 10` }) : head(hx, hy, tx, ty));
  }

  // label puts a text beside an arrow where none stands yet, or leaves it out: it is in the
  // arrow's title.
  label(text, [x1, y1, x2, y2], look) {
    const width = text.length * LETTER + 4;
    for (const f of [0.5, 0.36, 0.64, 0.24, 0.78]) {
      const x = x1 + (x2 - x1) * f;
      const y = y1 + (y2 - y1) * f - 4;
      const box = { l: x - width / 2, r: x + width / 2, t: y - 10, b: y + 3 };
      const onLine = this.columns.some((id) => Math.abs(this.x(id) - x) < 9 && width > this.step - 12);
      const overlaps = this.labels.some((o) => o.l < box.r && box.l < o.r && o.t < box.b && box.t < o.b);
      if (onLine || overlaps || box.l < LEFT || box.r > this.width) continue;
      this.labels.push(box);
      this.texts.push(svg("text", { class: look, x, y, "text-anchor": "middle" }, text));
      return;
    }
  }

  // marks are the timers that ran out and what processes were told.
  marks() {
    return this.player.trace.steps.map((s, i) => {
      const y = this.y(s.at);
      if ((s.quiet && !this.player.upkeep) || !this.seen(y, y)) return null;
      if (!["timed-out", "told", "recovered"].includes(s.kind)) return null;
      const x = this.x(s.process);
      const future = i >= this.player.k ? " future" : "";
      const shape = s.kind === "timed-out" ? svg("circle", { cx: x, cy: y, r: 4.5 })
        : svg("path", { d: s.kind === "told" ? `M${x} ${y - 6}l5 9h-10z` : `M${x - 5} ${y + 3}l5 -7l5 7` });
      return svg("g", { class: `moment ${s.kind}${future}` }, svg("title", {}, s.text), shape);
    });
  }
}

// head is the point of an arrow.
function head(x1, y1, x2, y2) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  const at = (back, side) => `${x2 - back * u + side * v} ${y2 - back * v - side * u}`;
  return svg("path", { class: "head", d: `M${x2} ${y2}L${at(9, 4)}L${at(9, -4)}Z` });
}
