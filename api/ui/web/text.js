// Texts about znodes, for people.

// visible writes characters that are not seen, or that reorder others, as escapes. Line breaks and tabs of data stay.
export function visible(text, data) {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}]/gu, (c) =>
    data && (c === "\n" || c === "\t") ? c : `\\u{${c.codePointAt(0).toString(16)}}`,
  );
}

export const plural = (n, one, many = one + "s") => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

export function bytes(n) {
  if (n < 1024) return plural(n, "byte");
  const unit = n < 1 << 20 ? ["KiB", 1024] : n < 1 << 30 ? ["MiB", 1 << 20] : ["GiB", 1 << 30];
  return `${(n / unit[1]).toFixed(1)} ${unit[0]}`;
}

// millis writes a duration given in milliseconds.
export const millis = (n) =>
  n >= 60e3
    ? `${(n / 60e3).toFixed(1)} min`
    : n >= 1e3
      ? `${(n / 1e3).toFixed(1)} s`
      : `${Number(n.toPrecision(2))} ms`;

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const pad = (n) => String(n).padStart(2, "0");

// when writes a moment, given in milliseconds since 1970, in the browser's time zone.
export function when(millis) {
  if (!millis) return "when the tree was made";
  const d = new Date(millis);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}

// lasting writes a duration, given in milliseconds, in round numbers.
export function lasting(n) {
  const s = Math.max(0, n) / 1000;
  const [value, unit] =
    s < 90 ? [s, "s"] : s < 5400 ? [s / 60, "min"] : s < 129600 ? [s / 3600, "hours"] : [s / 86400, "days"];
  return `${Math.round(value)} ${unit}`;
}

// ago says how long ago a moment was.
export const ago = (millis) => `${lasting(Date.now() - millis)} ago`;

// time is the time of day of a moment.
export const time = (millis) => when(millis).slice(11);

// contains says whether one of some texts has what has been typed.
export const contains = (parts, typed) =>
  parts.some((part) => part.toLowerCase().includes(typed.trim().toLowerCase()));

export const base = (path) => path.slice(path.lastIndexOf("/") + 1);
export const parent = (path) => path.slice(0, path.lastIndexOf("/")) || "/";
export const join = (path, name) => (path === "/" ? "" : path) + "/" + name;

const verbs = { r: "read", w: "write", c: "create children", d: "delete children", a: "change permissions" };
export function perms(letters) {
  const words = [..."rwcda"].filter((l) => letters.includes(l)).map((l) => verbs[l]);
  if (words.length === 5) return "do everything";
  return words.length > 1 ? `${words.slice(0, -1).join(", ")} and ${words.at(-1)}` : (words[0] ?? "do nothing");
}

// who says in words whom an ACL's entry, or an identity, means.
export function who({ scheme, id }) {
  switch (scheme) {
    case "world":
      return "Anybody";
    case "digest":
      return `Who knows the password of ${visible(id.split(":")[0])}`;
    case "ip":
      return `Clients at ${visible(id)}`;
    case "x509":
      return `The certificate of ${visible(id)}`;
    case "token":
      return `The token ${visible(id)}`;
    case "auth":
      return "You";
    case "super":
      return "Super user";
    default:
      return `${visible(scheme)} ${visible(id)}`;
  }
}
// names are those by which people know a client, of what it has proved: not that it has an address.
export const names = (identities = []) =>
  identities
    .filter(({ scheme }) => scheme !== "ip" && scheme !== "world")
    .map(({ scheme, id }) => (scheme === "digest" ? id.split(":")[0] : id) || scheme);
export const aclText = (acl) => acl.map(({ scheme, id, perms: p }) => `${scheme}:${id}:${p}`).join(",");

export function kind({ kind: k, ttl }, stat) {
  switch (k) {
    case "ephemeral":
      return `Ephemeral: goes with session ${stat.ephemeralOwner}`;
    case "container":
      return "Container: goes after its last child";
    case "ttl":
      return `Goes when it is unchanged for ${ttl}, without children`;
    default:
      return "Persistent";
  }
}

export const decode = ({ data, encoding }) =>
  encoding === "base64" ? Uint8Array.from(atob(data), (c) => c.charCodeAt(0)) : new TextEncoder().encode(data);

// hex writes bytes as offsets, hexadecimal and text, 16 in a line.
export function hex(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const part = [...data.subarray(at, at + 16)];
    const codes = part
      .map((b) => b.toString(16).padStart(2, "0"))
      .join(" ")
      .padEnd(47);
    const text = part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${codes}  ${text}`);
  }
  return lines.join("\n");
}

// pretty indents JSON and leaves its numbers as they are written. It throws what JSON.parse does.
export function pretty(text) {
  JSON.parse(text);
  let out = "",
    depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g)) {
    if ("{[".includes(token)) (depth++, (out += token + line()));
    else if ("}]".includes(token)) (depth--, (out += line() + token));
    else out += token === "," ? token + line() : token === ":" ? ": " : token;
  }
  return out.replace(/([{[])\n *\n *([}\]])/g, "$1$2");
}

// diff compares two texts line by line: [[" " | "-" | "+", line], ...].
export function diff(before, after) {
  const a = before.split("\n"),
    b = after.split("\n");
  let head = 0,
    tail = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const x = a.slice(head, a.length - tail),
    y = b.slice(head, b.length - tail);
  return [...a.slice(0, head).map((l) => [" ", l]), ...middle(x, y), ...a.slice(a.length - tail).map((l) => [" ", l])];
}

// middle finds the longest common sequence of lines, unless that would take long.
function middle(x, y) {
  if (x.length * y.length > 1e6) return [...x.map((l) => ["-", l]), ...y.map((l) => ["+", l])];
  const best = Array.from({ length: x.length + 1 }, () => new Uint32Array(y.length + 1));
  for (let i = x.length - 1; i >= 0; i--)
    for (let j = y.length - 1; j >= 0; j--)
      best[i][j] = x[i] === y[j] ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
  const out = [];
  for (let i = 0, j = 0; i < x.length || j < y.length;) {
    if (i < x.length && j < y.length && x[i] === y[j]) (out.push([" ", x[i++]]), j++);
    else if (j === y.length || (i < x.length && best[i + 1][j] >= best[i][j + 1])) out.push(["-", x[i++]]);
    else out.push(["+", y[j++]]);
  }
  return out;
}
