// What can be done to a process, a link or a message: each choice is an option of the command line.

import { html, byId, number } from "./svg.js";
import { statusOf } from "./topology.js";

const LEAST = 0.001; // the shortest time that the simulator knows

// momentFor is a time for a fault that leaves what is shown as it is: between the last step and
// the next one, as the slides say "at 4.5".
function momentFor(player) {
  const { step, now, trace, k } = player;
  if (!step || now > step.at) return Math.round(now * 1000) / 1000;
  const next = trace.steps.slice(k).find((s) => s.at > step.at)?.at ?? step.at + 1;
  if (step.at === 0 && k < trace.steps.filter((s) => s.kind === "started").length) return 0;
  return Math.round(Math.min(step.at + 0.5, (step.at + next) / 2) * 1000) / 1000;
}

// id is a process on the command line.
const id = (p) => (p.service ? "S" : String(p.id));

// time is a field for a time in units, read by its value() as one that is at least min.
function time(name, value, min = LEAST) {
  const field = html("input", { type: "number", min, step: "any", value: number(value), id: name });
  return { field, value: () => number(Math.max(min, Number(field.value) || min)) };
}

export class Inspector {
  // offers says whether the command has an option. change is called with the name of an option,
  // its value, and the time to show afterwards.
  constructor(offers, change) {
    this.root = byId("inspector");
    this.offers = offers;
    this.change = change;
    this.root.addEventListener("keydown", (e) => { if (e.key === "Escape") this.close(true); });
    document.addEventListener("pointerdown", (e) => {
      if (!this.root.hidden && !this.root.contains(e.target)) this.close(false);
    });
  }

  close(back) {
    if (this.root.hidden) return;
    this.root.hidden = true;
    if (back && this.opener?.isConnected) this.opener.focus();
  }

  open(player, what, event) {
    player.pause();
    this.opener = document.activeElement;
    const { processes, messages } = player.trace;
    const process = processes.find((p) => p.id === what.process);
    const body = what.message !== undefined ? this.message(processes, messages[what.message])
      : process ? this.process(player, process) : [html("h2", {}, "not in this run")];
    if (!body.some((e) => e && e.matches("[data-act]"))) {
      body.push(html("p", {}, "Nothing can be done to it in this command."));
    }
    const cancel = html("button", { type: "button", class: "quiet", onclick: () => this.close(true) }, "Cancel");
    this.root.replaceChildren(...body.filter(Boolean), cancel);
    this.root.hidden = false;
    this.place(event);
    this.root.querySelector("button:not(.quiet)")?.focus();
  }

  // place puts the panel beside what was clicked, within the window.
  place(event) {
    const box = event.currentTarget.getBoundingClientRect?.() ?? { right: event.clientX, top: event.clientY };
    const [x, y] = event.clientX ? [event.clientX + 12, event.clientY + 8] : [box.right + 8, box.top];
    const { offsetWidth, offsetHeight } = this.root;
    this.root.style.left = `${Math.max(8, Math.min(x, innerWidth - offsetWidth - 8))}px`;
    this.root.style.top = `${Math.max(8, Math.min(y, innerHeight - offsetHeight - 8))}px`;
  }

  // act is a button that adds an option, with the fields that its value needs before it; nothing
  // if the command has no such option.
  act(option, words, value, show, ...fields) {
    if (!this.offers(option)) return [];
    const click = () => {
      this.close(false);
      this.change(option, value(), show());
    };
    return [...fields, html("button", { type: "button", "data-act": option, onclick: click }, words)];
  }

  process(player, p) {
    const state = player.replay.to(player.k).get(p.id);
    const at = time("inspector-time", momentFor(player), 0);
    const when = () => Number(at.value());
    const others = player.trace.processes.filter((q) => q.id !== p.id);
    const [act, words] = state.up ? ["crash", "Crash"] : ["recover", "Recover"];
    return [
      html("h2", {}, p.name, html("small", {}, statusOf(state) || "up")),
      this.offers(act) && html("label", { for: "inspector-time" }, "at time ", at.field),
      ...this.act(act, `${words} ${p.name}`, () => `${id(p)}@${at.value()}`, when),
      ...this.cut(p, others.filter((q) => !q.service), at, when),
      ...this.slow(p, others, player.now),
    ];
  }

  // cut parts a process, and others whom the user names, from the rest. The service is with the
  // first group, and cannot be cut off itself.
  cut(p, others, at, when) {
    if (p.service || others.length === 0) return [];
    const side = html("input", { type: "text", value: id(p), id: "inspector-side", autocomplete: "off" });
    const length = time("inspector-length", 20);
    const value = () => {
      const inside = side.value.split(",").map((word) => word.trim().replace(/^N/, ""));
      const rest = others.map(id).filter((q) => !inside.includes(q));
      const groups = [rest, inside].filter((group) => group.length).map((group) => group.join(","));
      return `${groups.join("|")}@${at.value()}-${number(when() + Number(length.value()))}`;
    };
    return this.act("partition", "Cut off", value, when,
      html("label", { for: "inspector-side" }, "cut off: ", side),
      html("label", { for: "inspector-length" }, "for ", length.field, " units"));
  }

  // slow sets the delay of the link from a process to another.
  slow(p, others, now) {
    if (others.length === 0) return [];
    const to = html("select", { id: "inspector-to" }, others.map((q) => html("option", { value: id(q) }, q.name)));
    const delay = time("inspector-slow", 5);
    return this.act("slow", "Slow the link", () => `${id(p)}-${to.value}@${delay.value()}`, () => now,
      html("label", { for: "inspector-to" }, "link to ", to),
      html("label", { for: "inspector-slow" }, "takes ", delay.field, " units"));
  }

  message(processes, m) {
    const which = `${m.type}@${m.nth}`;
    const [from, to] = [m.from, m.to].map((n) => processes.find((p) => p.id === n));
    const delay = time("inspector-delay", (m.ends - m.sent) * 3 || 3);
    const sent = () => m.sent;
    return [
      html("h2", {}, m.label, html("small", {}, `${which}, ${from?.name} → ${to?.name}`)),
      ...this.act("drop", "Lose it", () => which, sent),
      ...this.act("duplicate", "Repeat it", () => which, sent),
      ...this.act("late", "Delay it", () => `${which}=${delay.value()}`, sent,
        html("label", { for: "inspector-delay" }, "it takes ", delay.field, " units")),
      ...from && to ? this.act("slow", "Slow its link", () => `${id(from)}-${id(to)}@${delay.value()}`, sent) : [],
    ];
  }
}
