// The panels that read: what just happened, the lamps, the counters, the processes, and the
// messages under way.

import { html, byId, number } from "./svg.js";
import { statusOf, lookOf } from "./topology.js";

// happened is a sentence on the step that was last taken.
export function happened(player) {
  const { step } = player;
  if (!step) return "Nothing has happened yet: predict first.";
  return [step.text, ...step.facts].join(" · ");
}

// safety is the lamp for safe at the moment shown: broken promises stay broken.
function safety(trace, now, atEnd) {
  const broken = trace.broken.filter((b) => (b.end ? atEnd : b.at <= now));
  if (broken.length > 0 || (atEnd && !trace.safe)) {
    const text = trace.family === "detector" ? "somebody was suspected wrongly" : "";
    return { look: "bad", word: "NOT SAFE", broken, text };
  }
  return { look: "good", word: atEnd ? "safe" : "safe so far", broken, text: "no promise is broken" };
}

// liveness is the lamp for live: it can only be told at the end.
function liveness(trace, states, atEnd) {
  if (!atEnd) return { look: "open", word: "live: not yet known", text: "told at the end of the run" };
  if (trace.live) return { look: "good", word: "live", text: "everybody who should has got there" };
  const missing = trace.processes.filter((p) => !p.service && states.get(p.id).up
    && (trace.family === "election" ? states.get(p.id).status === "-" : states.get(p.id).status === "asks"));
  const who = missing.map((p) => p.name).join(", ");
  const what = trace.family === "election" ? "hold no leader" : "still wait";
  const cut = trace.cut_off === null ? "" : `it did not end: cut off at ${number(trace.cut_off)}`;
  return { look: "bad", word: "NOT LIVE", text: [who && `${who} ${what} at the end`, cut].filter(Boolean).join("; ") };
}

function lamp({ look, word, text, broken }) {
  const sign = { good: "✓", bad: "✗", open: "…" }[look];
  return html("div", { class: `lamp ${look}` }, html("span", { class: "bulb", "aria-hidden": "true" }, sign),
    html("div", {}, html("strong", {}, word), broken?.length
      ? html("ul", {}, broken.slice(0, 4).map((b) => html("li", {}, b.sentence)),
        broken.length > 4 && html("li", {}, `and ${broken.length - 4} more`))
      : html("p", {}, text)));
}

export function drawLamps(player) {
  const atEnd = player.atEnd && player.now >= player.end - 1e-9;
  const ended = atEnd || player.atEnd;
  byId("lamps").replaceChildren(lamp(safety(player.trace, player.now, ended)),
    lamp(liveness(player.trace, player.replay.to(player.k), ended)));
}

const sum = (counts, types) => [...counts].reduce(
  (all, [type, n]) => (types && !types.includes(type) ? all : all + n), 0);

// bar is a count that grows towards a bound.
function bar({ name, note, count, most, bound, best, kind, other, unit }) {
  const share = (n) => `${Math.min(100, (100 * n) / Math.max(most, 1e-9))}%`;
  const over = bound !== undefined && !best && count > bound + 1e-9 ? " over" : "";
  const fill = html("div", { class: `fill ${kind || ""}${over}` });
  fill.style.width = share(count);
  const track = html("div", { class: "track" }, fill);
  if (bound !== undefined) {
    const line = html("div", { class: "bound" });
    line.style.left = share(bound);
    track.append(line);
  }
  if (other !== undefined) {
    const ghost = html("div", { class: "fill other" });
    ghost.style.width = share(other);
    track.append(ghost);
  }
  const towards = bound !== undefined && (best ? ` (best ${number(bound)})` : ` of ${number(bound)}`);
  const figure = [number(count), towards, unit && ` ${unit}`].filter(Boolean).join("");
  const beside = other !== undefined && html("span", { class: "other" }, ` · other ${number(other)}`);
  return html("li", {},
    html("div", { class: "figure" }, html("span", {}, name), html("span", { class: "count" }, figure, beside)),
    track, note && html("p", { class: "note" }, note));
}

export function drawCounters(player, palette) {
  const { trace } = player;
  const now = player.replay.counts(player.k);
  const all = player.replay.counts(trace.steps.length);
  const others = player.other && player.otherReplay.counts(player.otherReplay.stepsUntil(player.now));
  const otherAll = player.other ? player.otherReplay.counts(player.other.steps.length) : new Map();
  const most = Math.max(1, ...all.values(), ...otherAll.values());
  const types = [...new Set([...all.keys(), ...otherAll.keys()])];
  const ended = player.atEnd && trace.time !== null ? trace.time : player.now;
  const entries = trace.spans.filter((s) => s.what === "inside").length;
  const bounds = trace.bounds.map((b) => {
    const time = b.quantity === "time";
    if (/delay/.test(b.quantity)) return null; // of single turns, which have no moment
    const turns = b.quantity === "messages per entry" ? entries : 1;
    const value = b.value * turns;
    const count = time ? Math.min(ended, trace.time ?? ended) : sum(now, b.types);
    return bar({ name: turns > 1 ? `messages for ${turns} entries` : b.quantity,
      count, bound: value, best: /best|alone/.test(b.case),
      note: `${b.case}: ${b.formula} = ${number(b.value)}${turns > 1 ? ` an entry` : ""}`,
      most: Math.max(value, time ? trace.time ?? 0 : sum(all, b.types)) * 1.02, unit: time ? player.unit : "" });
  });
  const total = sum(now);
  byId("total").textContent = `${total} of ${sum(all)} messages`;
  byId("total").dataset.total = total;
  byId("counters").replaceChildren(
    ...types.map((type) => bar({ name: type, count: now.get(type) || 0, most, kind: palette.of(type),
      other: others && (others.get(type) || 0) })), ...bounds.filter(Boolean));
}

// timer shows how much of its time is left.
function timer(name, { set, due }, now) {
  const left = Math.max(0, due - now);
  const fill = html("div", { class: "fill" });
  fill.style.width = `${due > set ? (100 * left) / (due - set) : 0}%`;
  return html("li", { class: "timer" },
    html("span", {}, `◷ ${name}`), html("span", {}, `at ${number(due)}, in ${number(left)}`),
    html("div", { class: "track" }, fill));
}

export class Processes {
  constructor(root, pick) {
    this.root = root;
    this.pick = pick;
  }

  load(player) {
    this.player = player;
    this.cards = new Map(player.trace.processes.map((p) => {
      const status = html("span", { class: "state" });
      const body = html("div", {});
      const button = html("button", { type: "button", "data-process": p.id,
        "aria-label": `${p.name}: break or repair it`, onclick: (e) => this.pick({ process: p.id }, e) }, p.name);
      return [p.id, { card: html("li", {}, html("div", { class: "top" }, button, status), body), status, body }];
    }));
    this.root.replaceChildren(...[...this.cards.values()].map((c) => c.card));
  }

  draw() {
    const states = this.player.replay.to(this.player.k);
    for (const [id, { card, status, body }] of this.cards) {
      const s = states.get(id);
      const touched = this.player.step?.process === id;
      card.className = `card ${lookOf(s)}${touched ? " now" : ""}`;
      status.textContent = statusOf(s) || "up";
      const rows = [...s.variables].flatMap(([name, value]) => [html("dt", {}, name),
        html("dd", { class: touched && s.changed.has(name) ? "changed" : undefined }, value)]);
      const timers = [...s.timers].map(([name, t]) => timer(name, t, this.player.now));
      body.replaceChildren(rows.length ? html("dl", {}, rows) : "", timers.length ? html("ul", {}, timers) : "");
    }
  }
}

export function drawUnderWay(player, palette, pick) {
  const { trace, replay } = player;
  const name = (id) => trace.processes.find((p) => p.id === id)?.name;
  const places = replay.underWay(player.k, player.now).filter((i) => player.upkeep || !trace.messages[i].quiet);
  const list = byId("underway");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.message : undefined;
  list.replaceChildren(...places.slice(0, 60).map((i) => {
    const m = trace.messages[i];
    return html("li", {}, html("button",
      { type: "button", "data-message": i, class: palette.of(m.type), onclick: (e) => pick({ message: i }, e) },
      html("span", { class: "swatch", "aria-hidden": "true" }), `${m.label}  ${name(m.from)} → ${name(m.to)}`,
      html("small", {}, m.lost ? `lost: ${m.lost}` : `arrives at ${player.clock(m.ends)}`)));
  }), places.length === 0 ? html("li", { class: "none" }, "no message is under way") : "");
  if (focused !== undefined) list.querySelector(`[data-message="${focused}"]`)?.focus();
}
