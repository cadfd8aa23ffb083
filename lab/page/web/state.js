// What a trace says of the run after its first k steps: see doc.go of package trace.

export class Replay {
  constructor(trace) {
    this.trace = trace;
    this.index();
    this.restart();
  }

  // index notes the steps that send and end each message. Both of a copy's are its original's
  // sending and its own end; -1 is no step.
  index() {
    const { steps, messages } = this.trace;
    this.sentBy = messages.map(() => -1);
    this.endedBy = messages.map(() => -1);
    steps.forEach((s, i) => {
      for (const m of s.sends) this.sentBy[m] = i;
      if (s.message >= 0) this.endedBy[s.message] = i;
    });
    const originals = new Map();
    messages.forEach((m, i) => { if (!m.copy) originals.set(m.type + "@" + m.nth, i); });
    messages.forEach((m, i) => { if (m.copy) this.sentBy[i] = this.sentBy[originals.get(m.type + "@" + m.nth)]; });
  }

  restart() {
    this.k = 0;
    this.states = new Map(this.trace.processes.map((p) => [p.id,
      { up: true, status: "-", variables: new Map(), timers: new Map(), changed: new Set() }]));
  }

  // to goes to the state after k steps.
  to(k) {
    if (k < this.k) this.restart();
    while (this.k < k) this.apply(this.trace.steps[this.k++]);
    return this.states;
  }

  apply(step) {
    for (const s of this.states.values()) s.changed.clear();
    const s = this.states.get(step.process);
    if (step.kind === "crashed") s.up = false;
    if (step.kind === "recovered") s.up = true;
    if (step.status) s.status = step.status;
    for (const t of step.timers) {
      if (t.due === null) s.timers.delete(t.name);
      else s.timers.set(t.name, { set: step.at, due: t.due });
    }
    for (const c of step.changes) {
      s.variables.set(c.name, c.value);
      s.changed.add(c.name);
    }
  }

  // underWay are the places of the messages that were sent in the first k steps and have not
  // ended by then, or by the time now.
  underWay(k, now) {
    const found = [];
    this.trace.messages.forEach((m, i) => {
      if (this.sentBy[i] < 0 || this.sentBy[i] >= k || m.ends < now) return;
      if (this.endedBy[i] >= 0 ? this.endedBy[i] >= k : m.ends > now) found.push(i);
    });
    return found;
  }

  // counts are the messages sent in the first k steps by type, as the result counts them.
  counts(k) {
    const counts = new Map();
    const until = this.trace.counted_until ?? Infinity;
    for (const step of this.trace.steps.slice(0, k)) {
      if (step.at > until) break;
      for (const m of step.sends) {
        const type = this.trace.messages[m].type;
        counts.set(type, (counts.get(type) || 0) + 1);
      }
    }
    return counts;
  }

  // stepsUntil is how many steps have happened by a time.
  stepsUntil(time) {
    const { steps } = this.trace;
    let low = 0;
    let high = steps.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (steps[middle].at <= time) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
