// The moment that is shown: after k steps, at a time from the last of them until the next one.

import { Scale, momentsOf } from "./scale.js";
import { Replay } from "./state.js";
import { number } from "./svg.js";

const SPEED = 46; // lengths of the scale a second: one unit, where something happens

export class Player {
  // changed is called with every new moment.
  constructor(changed) {
    this.changed = changed;
    this.k = 0;
    this.now = 0;
    this.playing = false;
    this.speed = 1;
    this.upkeep = false;
  }

  load(trace, other) {
    this.pause();
    this.trace = trace;
    this.replay = new Replay(trace);
    this.other = other;
    this.otherReplay = other && new Replay(other);
    this.scale = new Scale([...momentsOf(trace), ...momentsOf(other)]);
    this.end = this.scale.end;
    this.choose();
  }

  // choose lists the steps at which next and back stop: all but upkeep.
  choose() {
    this.stops = this.trace.steps.flatMap((s, i) => (s.quiet && !this.upkeep ? [] : [i + 1]));
  }

  // unit is that of the times: real servers are timed in milliseconds.
  get unit() { return this.trace.family === "ensemble" ? "ms" : "units"; }

  // clock writes a time as it is shown.
  clock(time) { return `${number(time)}${this.unit === "ms" ? " ms" : ""}`; }

  get step() { return this.k > 0 ? this.trace.steps[this.k - 1] : undefined; }

  // place is how many stops lie behind.
  get place() { return this.stops.filter((k) => k <= this.k).length; }

  get atEnd() { return this.k >= this.trace.steps.length; }

  go(k, now) {
    this.k = Math.max(0, Math.min(k, this.trace.steps.length));
    this.now = now ?? (this.k > 0 ? this.trace.steps[this.k - 1].at : 0);
    this.changed();
  }

  next() {
    this.pause();
    const k = this.stops.find((stop) => stop > this.k);
    if (k === undefined) this.last();
    else this.go(k);
  }

  back() {
    this.pause();
    const before = this.stops.filter((stop) => stop < this.k);
    this.go(before.at(-1) ?? 0);
  }

  first() { this.pause(); this.go(0, 0); }

  last() { this.pause(); this.go(this.trace.steps.length, this.end); }

  toPlace(n) { this.pause(); this.go(n === 0 ? 0 : this.stops[n - 1]); }

  toTime(time) {
    const now = Math.max(0, Math.min(time, this.end));
    this.go(this.replay.stepsUntil(now), now);
  }

  // playTo plays on until a time, or goes there at once if it lies behind or nothing should move.
  playTo(time) {
    this.pause();
    if (time <= this.now || matchMedia("(prefers-reduced-motion: reduce)").matches) { this.toTime(time); return; }
    this.toggle();
    this.until = time;
  }

  toggle() {
    if (this.playing) { this.pause(); this.changed(); return; }
    if (this.atEnd && this.now >= this.end) { this.k = 0; this.now = 0; }
    this.playing = true;
    this.until = this.end;
    let before = performance.now();
    const frame = (at) => {
      if (!this.playing) return;
      const y = this.scale.y(this.now) + ((at - before) / 1000) * SPEED * this.speed;
      before = at;
      if (y >= this.scale.y(this.until)) {
        const { until } = this;
        this.pause();
        if (until < this.end) this.toTime(until);
        else this.last();
        return;
      }
      this.toTime(this.scale.time(y));
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    this.changed();
  }

  pause() { this.playing = false; }
}
