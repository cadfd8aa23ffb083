// What can be done to a process or a message: each choice is an option of the command line.

import { html, byId, number } from "./svg.js";
import { statusOf } from "./topology.js";

// momentFor is a time for a fault that leaves what is shown as it is: between the last step and
// the next one, as the slides say "at 4.5".
function momentFor(player) {
  const { step, now, trace, k } = player;
  if (!step || now > step.at) return Math.round(now * 1000) / 1000;
  const next = trace.steps.slice(k).find((s) => s.at > step.at)?.at ?? step.at + 1;
  if (step.at === 0 && k < trace.steps.filter((s) => s.kind === "started").length) return 0;
  return Math.round(Math.min(step.at + 0.5, (step.at + next) / 2) * 1000) / 1000;
}

export class Inspector {
  // change is called with the name of an option, its value, and the time to show afterwards.
  constructor(change) {
    this.root = byId("inspector");
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
    const body = what.process !== undefined ? this.process(player, what.process) : this.message(player, player.trace.messages[what.message]);
    this.root.replaceChildren(...body.filter(Boolean), html("button", { type: "button", class: "quiet", onclick: () => this.close(true) }, "Cancel"));
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

  process(player, id) {
    const p = player.trace.processes.find((q) => q.id === id);
    const state = player.replay.to(player.k).get(id);
    const name = p.service ? "S" : String(id);
    if (!state) return [html("h2", {}, name)];
    const time = html("input", { type: "number", min: 0, step: "any", value: number(momentFor(player)), id: "inspector-time" });
    const act = (option) => () => {
      const at = Math.max(0, Number(time.value) || 0);
      this.close(false);
      this.change(option, `${name}@${number(at)}`, at);
    };
    return [
      html("h2", {}, `${p.name}`, html("small", {}, statusOf(state) || "up")),
      html("label", { for: "inspector-time" }, "at time ", time),
      state.up ? html("button", { type: "button", "data-act": "crash", onclick: act("crash") }, `Crash ${p.name}`)
        : html("button", { type: "button", "data-act": "recover", onclick: act("recover") }, `Recover ${p.name}`),
    ];
  }

  message(player, m) {
    const which = `${m.type}@${m.nth}`;
    const delay = html("input", { type: "number", min: 0.001, step: "any", value: number((m.ends - m.sent) * 3 || 3), id: "inspector-delay" });
    const act = (option, value) => () => {
      this.close(false);
      this.change(option, value(), m.sent);
    };
    const name = (id) => player.trace.processes.find((p) => p.id === id)?.name;
    return [
      html("h2", {}, m.label, html("small", {}, `${which}, ${name(m.from)} → ${name(m.to)}`)),
      html("button", { type: "button", "data-act": "drop", onclick: act("drop", () => which) }, "Lose it"),
      html("button", { type: "button", "data-act": "duplicate", onclick: act("duplicate", () => which) }, "Repeat it"),
      html("label", { for: "inspector-delay" }, "it takes ", delay, " units"),
      html("button", { type: "button", "data-act": "late", onclick: act("late", () => `${which}=${Math.max(0.001, Number(delay.value) || 1)}`) }, "Delay it"),
    ];
  }
}
