// Command lines: between text, words and the options in them, and between a run and a link.

export const PROGRAM = "zk-lite lab ";

// split cuts a line into words as a shell does; quotes keep a word whole.
export function split(line) {
  const text = line.trim().replace(/^\$\s*/, "").replace(/^zk-lite\s+lab\s+/, "");
  const words = [];
  for (const found of text.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g)) {
    words.push(found[0].replace(/'([^']*)'|"([^"]*)"/g, (_, a, b) => a ?? b));
  }
  return words;
}

export function join(words) {
  return words.map((w) => (/[^\w@=,.:\/+-]/.test(w) || w === "" ? `'${w}'` : w)).join(" ");
}

// options returns the options of a line in order, each with its value; a switch has none.
function options(words) {
  const found = [];
  for (let i = 1; i < words.length; i++) {
    const [name, value] = words[i].replace(/^--/, "").split(/=(.*)/s);
    const next = words[i + 1];
    if (value !== undefined) found.push({ name, value });
    else if (next !== undefined && !next.startsWith("--")) found.push({ name, value: words[++i] });
    else found.push({ name });
  }
  return found;
}

// value returns the values of an option, joined by commas; undefined if it is not given.
export function value(words, name) {
  const given = options(words).filter((o) => o.name === name);
  return given.length ? given.map((o) => o.value ?? "true").join(",") : undefined;
}

// set gives an option one value, in the place of those that it has; undefined takes it away.
export function set(words, name, text) {
  const kept = options(words).filter((o) => o.name !== name);
  if (text === true) kept.push({ name });
  else if (text !== undefined && text !== "") kept.push({ name, value: text });
  return [words[0], ...kept.flatMap((o) => (o.value === undefined ? ["--" + o.name] : ["--" + o.name, o.value]))];
}

// add puts an option behind the others.
export const add = (words, name, text) => [...words, "--" + name, text];

// The fragment of a link: c is the command, o the one laid over it, t the time, k the step, s the story with its step,
// and present shows it as on a wall.
export function toFragment(run) {
  const p = new URLSearchParams();
  if (run.story) p.set("s", run.story);
  p.set("c", join(run.words));
  if (run.other) p.set("o", join(run.other));
  if (run.step) p.set("k", run.step);
  if (run.time) p.set("t", run.time);
  return `#${p}${run.present ? "&present" : ""}`;
}

export function fromFragment(fragment) {
  const p = new URLSearchParams(fragment.replace(/^#/, ""));
  const words = (name) => (p.get(name) ? split(p.get(name)) : undefined);
  return {
    words: words("c"), other: words("o"), story: p.get("s") || undefined,
    step: Number(p.get("k")) || 0, time: Number(p.get("t")) || 0, present: p.has("present"),
  };
}
