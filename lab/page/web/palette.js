// Each type of message has one of eight colours, in the order in which types first appear. Nothing
// is told by colour alone: the type always stands beside it.

export class Palette {
  constructor(...traces) {
    this.places = new Map();
    for (const trace of traces) {
      for (const m of trace?.messages || []) {
        if (!this.places.has(m.type)) this.places.set(m.type, this.places.size % 8);
      }
    }
  }

  of(type) { return `kind-${this.places.get(type) ?? 0}`; }
}
