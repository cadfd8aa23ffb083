// The space-time chart: a column a process, time downwards. What has not happened yet is not drawn: it is to be
// predicted. Only what can be seen is drawn, so that thousands of messages can be scrolled through.

import { svg, number } from "./svg.js";

const LEFT = 46; // for the times
const TOP = 12;
const MOST = 1200; // messages drawn at a time
// The sizes of a label's letters, of a column's head and of the narrowest column, and the length that a run is
// stretched to: at a desk, where it may be scrolled, and on a wall, where it is squeezed, too.
const DESK = { letter: 6.1, high: 11, head: 19, column: 40, full: () => 470, least: 1 };
const WALL = { letter: 8.6, high: 15, head: 32, column: 16, full: (box) => box.clientHeight - 62, least: 0.5 };

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
    this.size = document.body.classList.contains("present") ? WALL : DESK;
    this.player.scale.fit(this.size.full(this.box), this.size.least);
    this.step = Math.max(this.size.column, Math.min(190, (this.box.clientWidth - LEFT - 18) / n));
    const head = Math.min(this.size.head, this.step / 2);
    this.heads.classList.toggle("tight", this.step < 40);
    this.width = Math.max(this.box.clientWidth - 2, LEFT + this.step * n + 12);
    this.height = this.player.scale.length + TOP + 22;
    for (const [part, height] of [[this.heads, 28], [this.body, this.height]]) {
      part.setAttribute("width", this.width);
      part.setAttribute("height", height);
    }
    this.heads.replaceChildren(...this.columns.map((id) => svg("g",
      { class: "head", onclick: (e) => this.pick({ process: id }, e) },
      svg("rect", { x: this.x(id) - head, y: 2, width: 2 * head, height: 25, rx: 12 }),
      svg("text", { x: this.x(id), y: head > 20 ? 21 : 18, "text-anchor": "middle" }, this.names.get(id)))));
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
    if (y < scrollTop + 20 || y > scrollTop + room - 70) this.box.scrollTop = Math.max(0, y - room * 0.7);
  }

  draw() {
    const { player } = this;
    this.from = this.box.scrollTop - 120;
    this.until = this.box.scrollTop + this.box.clientHeight + 120;
    this.lines = [];
    this.wanted = []; // labels, which stand in front of all arrows
    const nowY = this.y(player.now);
    const parts = [
      ...this.times(), ...this.lifelines(),
      ...(player.other ? this.spans(player.other, "other") : []), ...this.spans(player.trace, ""),
      ...(player.other ? this.arrows(player.other, player.otherReplay, "other") : []),
      ...this.arrows(player.trace, player.replay, ""), ...this.marks(),
      svg("line", { class: "now", x1: LEFT - 6, x2: this.width, y1: nowY, y2: nowY }),
      svg("text", { class: "now", x: 4, y: nowY + 4 }, player.clock(player.now)),
    ];
    this.body.replaceChildren(...[...parts, ...this.labels()].filter(Boolean));
  }

  seen(a, b) { return Math.max(a, b) >= this.from && Math.min(a, b) <= this.until; }

  times() {
    const nowY = this.y(this.player.now);
    let last = -100;
    return this.player.scale.times.filter((time) => time <= this.player.now).map((time) => {
      const y = this.y(time);
      if (y - last < this.size.high + 4 || !this.seen(y, y)) return null;
      last = y;
      return svg("g", { class: "tick" }, svg("line", { x1: LEFT - 6, x2: this.width, y1: y, y2: y }),
        Math.abs(y - nowY) > this.size.high + 1 && svg("text", { x: 4, y: y + 4 }, number(time)));
    });
  }

  lifelines() {
    const bottom = this.y(this.player.end) + 10;
    return this.columns.flatMap((id) => {
      const x = this.x(id);
      // A line ends where its process crashes, and goes on where it comes back.
      let from = TOP;
      const lines = [];
      for (const s of this.begun(this.player.trace).filter((d) => d.process === id && d.what === "down")) {
        lines.push([from, this.y(s.from)]);
        from = this.isOver(s) ? this.y(s.until) : bottom;
      }
      lines.push([from, bottom]);
      return lines.filter(([a, b]) => b > a)
        .map(([a, b]) => svg("line", { class: "life", x1: x, x2: x, y1: a, y2: b }));
    });
  }

  // begun are the spans that have begun, and isOver tells whether one has ended by now.
  begun(trace) { return trace.spans.filter((s) => s.from <= this.player.now); }

  isOver(s) { return !s.open && s.until <= this.player.now; }

  spans(trace, whose) {
    return this.begun(trace).map((s) => {
      const y = this.y(s.from);
      const bottom = s.what === "down" ? this.y(this.player.end) + 10 : Math.max(y + 3, this.y(this.player.now));
      const end = this.isOver(s) ? this.y(s.until) : bottom;
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
      const text = words && !whose && end - y > 4 * this.size.high && y >= this.from
        && svg("text", { x, y: y + 12, transform: `rotate(90 ${x} ${y + 12}) translate(0 3.5)` }, words);
      return svg("g", { class: `span ${s.what} ${whose}` },
        svg("title", {}, `${s.what} from ${number(s.from)}`),
        svg("rect", { x: x - wide / 2 + shift, y, width: wide, height: Math.max(3, end - y), rx: 3 }), text);
    });
  }

  arrows(trace, replay, whose) {
    const { player } = this;
    const k = whose ? replay.stepsUntil(player.now) : player.k;
    const drawn = [];
    trace.messages.forEach((m, i) => {
      if (drawn.length >= MOST || (m.quiet && !player.upkeep) || replay.sentBy[i] >= k) return;
      const [y1, y2] = [this.y(m.sent), this.y(m.ends)];
      if (!this.seen(y1, y2) || !this.columns.includes(m.from) || !this.columns.includes(m.to)) return;
      drawn.push(this.arrow(trace, m, i, y1, y2, whose));
    });
    return drawn;
  }

  arrow(trace, m, i, y1, y2, whose) {
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
    const classes = ["arrow", this.palette.of(m.type), whose, m.lost && "lost", m.copy && "copy"];
    this.lines.push(...pieces);
    if (!whose) this.wanted.push([m.label, pieces[0], `label ${this.palette.of(m.type)}`]);
    const onclick = whose ? undefined : (e) => this.pick({ message: i }, e);
    return svg("g", { class: classes.filter(Boolean).join(" "), onclick }, svg("title", {}, text),
      !whose && svg("path", { class: "target", d: path }), svg("path", { class: "line", d: path }),
      m.lost ? svg("path", { class: "mark", d: `M${tx - 5} ${ty - 5}l10 10m0 -10l-10 10` }) : head(hx, hy, tx, ty));
  }

  // labels puts a text beside each arrow: where no other text stands, and as few other arrows as possible cross it.
  // Without such a place it is left out: it is in the arrow's title.
  labels() {
    const boxes = [];
    const columns = this.columns.map((id) => [this.x(id), 0, this.x(id), this.height]);
    return this.wanted.map(([text, line, look]) => {
      const [x1, y1, x2, y2] = line;
      const width = text.length * this.size.letter + 4;
      let best;
      for (const f of [0.5, 0.36, 0.64, 0.24, 0.78, 0.86, 0.14]) {
        const x = x1 + (x2 - x1) * f;
        const y = y1 + (y2 - y1) * f - 4;
        const box = { l: x - width / 2, r: x + width / 2, t: y - this.size.high + 1, b: y + 3 };
        const overlaps = boxes.some((o) => o.l < box.r && box.l < o.r && o.t < box.b && box.t < o.b);
        if (overlaps || box.l < LEFT || box.r > this.width) continue;
        const crossed = this.lines.filter((l) => l !== line && crosses(l, box)).length
          + columns.filter((l) => width < this.step - 12 && crosses(l, box)).length;
        if (!best || crossed < best.crossed) best = { crossed, x, y, box };
        if (crossed === 0) break;
      }
      if (!best) return null;
      boxes.push(best.box);
      return svg("text", { class: look, x: best.x, y: best.y, "text-anchor": "middle" }, text);
    });
  }

  // marks are the timers that ran out and what processes were told.
  marks() {
    return this.player.trace.steps.slice(0, this.player.k).map((s) => {
      const y = this.y(s.at);
      if ((s.quiet && !this.player.upkeep) || !this.seen(y, y)) return null;
      if (!["timed-out", "told", "recovered"].includes(s.kind)) return null;
      const x = this.x(s.process);
      const shape = s.kind === "timed-out" ? svg("circle", { cx: x, cy: y, r: 4.5 })
        : svg("path", { d: s.kind === "told" ? `M${x} ${y - 6}l5 9h-10z` : `M${x - 5} ${y + 3}l5 -7l5 7` });
      return svg("g", { class: `moment ${s.kind}` }, svg("title", {}, s.text), shape);
    });
  }
}

// crosses tells whether a line goes through a box.
function crosses([x1, y1, x2, y2], box) {
  if (Math.max(x1, x2) < box.l || Math.min(x1, x2) > box.r || Math.max(y1, y2) < box.t || Math.min(y1, y2) > box.b) {
    return false;
  }
  const side = (x, y) => Math.sign((x2 - x1) * (y - y1) - (y2 - y1) * (x - x1));
  const sides = [side(box.l, box.t), side(box.r, box.t), side(box.l, box.b), side(box.r, box.b)];
  return !sides.every((s) => s === sides[0]);
}

// head is the point of an arrow.
function head(x1, y1, x2, y2) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const [u, v] = [(x2 - x1) / length, (y2 - y1) / length];
  const at = (back, side) => `${x2 - back * u + side * v} ${y2 - back * v - side * u}`;
  return svg("path", { class: "head", d: `M${x2} ${y2}L${at(9, 4)}L${at(9, -4)}Z` });
}
