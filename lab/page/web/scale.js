// A scale from time to length, on which idle stretches are short: between two moments at which
// something happens lies at least LEAST and at most MOST.

const UNIT = 46;
const LEAST = 16;
const MOST = 104;

export class Scale {
  constructor(times) {
    this.times = [...new Set([0, ...times])].sort((a, b) => a - b);
    this.raw = [0];
    for (let i = 1; i < this.times.length; i++) {
      const gap = (this.times[i] - this.times[i - 1]) * UNIT;
      this.raw.push(this.raw[i - 1] + Math.min(MOST, Math.max(LEAST, gap)));
    }
    this.end = this.times.at(-1);
    this.fit(0, 1);
  }

  // fit stretches the scale to a length, within bounds: a short run fills the chart, a long one is scrolled.
  fit(length, least) {
    const stretch = Math.max(least, Math.min(4, length / Math.max(1, this.raw.at(-1))));
    this.at = this.raw.map((y) => y * stretch);
    this.length = this.at.at(-1);
  }

  y(time) { return between(this.times, this.at, time); }

  time(y) { return between(this.at, this.times, y); }
}

// between maps x from one rising list to the other, straight between two entries.
function between(from, to, x) {
  let low = 0;
  let high = from.length - 1;
  if (x <= from[0] || high === 0) return to[0];
  if (x >= from[high]) return to[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= x) low = middle;
    else high = middle;
  }
  return to[low] + ((x - from[low]) / (from[high] - from[low])) * (to[high] - to[low]);
}

// momentsOf are the times at which something happens in a trace.
export function momentsOf(trace) {
  if (!trace) return [];
  return [
    ...trace.steps.map((s) => s.at), ...trace.messages.map((m) => m.ends), ...trace.spans.map((s) => s.until),
    ...[trace.time, trace.cut_off].filter((t) => t !== null),
  ];
}
