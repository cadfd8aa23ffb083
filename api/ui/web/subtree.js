// Export, import and comparison of a znode with all below it, by the public API. The format is that of
// zk-lite export: lines of JSON.
import { html, useState } from "./vendor/preact.js";
import { get, send, znode } from "./api.js";
import { done, failed } from "./store.js";
import { Ask, Field, Name, open, save } from "./parts.js";
import { aclText, base, join, plural } from "./text.js";

const format = "zk-lite-export-1";
const most = 10_000; // znodes, which are as many as one transaction changes
const mostBytes = 3 << 20; // of one transaction
const atOnce = 8; // requests

const system = (path) => path === "/zookeeper" || path.startsWith("/zookeeper/");

// collect reads a znode and all below it: [{path, data, encoding, acl: ["scheme:id:perms"], ephemeral}], parents first,
// paths relative to the znode.
export async function collect(root) {
  const records = [],
    paths = [root];
  const top = await get(znode(root));
  records.push({ ...top, path: "" });
  for (let i = 0; i < paths.length; i++) {
    if (records[i].stat.numChildren === 0) continue;
    for (let after; after !== null;) {
      const page = await get(znode(paths[i]), { children: true, stat: true, data: true, after });
      for (const child of page.children) {
        const path = join(paths[i], child.name);
        if (system(path)) continue;
        if (child.error) throw new Error(`${path} may not be read`);
        paths.push(path);
        records.push({ ...child, path: path.slice(root === "/" ? 0 : root.length) });
      }
      if (records.length > most)
        throw new Error(`more than ${plural(most, "znode")}: zk-lite export has no such limit`);
      after = page.next ?? null;
    }
  }
  let next = 0;
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (next < paths.length) {
        const i = next++;
        records[i].acl = aclText((await get(znode(paths[i]), { acl: true })).acl).split(",");
      }
    }),
  );
  return records.map(({ path, data, encoding, acl, stat }) => ({
    path,
    data,
    encoding,
    acl,
    ephemeral: stat.ephemeralOwner !== "0x0" || undefined,
  }));
}

// creates are the operations that make what was collected below a path; ephemerals are left out.
export const creates = (records, root) =>
  records
    .filter((r) => !r.ephemeral)
    .map(({ path, data, encoding, acl }) => ({
      op: "create",
      path: (root === "/" ? path : root + path) || "/",
      data: data ?? "",
      encoding: encoding || "utf-8",
      acl: acl.join(","),
    }));

export async function exportTree({ path }) {
  try {
    const records = await collect(path);
    save(
      `${base(path) || "root"}.jsonl`,
      [{ format, root: path }, ...records, { end: records.length }].map((line) => JSON.stringify(line) + "\n").join(""),
    );
    done(`${plural(records.length, "znode")} exported.`);
  } catch (error) {
    failed(error);
  }
}

// read is the inverse of what exportTree saves.
function read(text) {
  const lines = text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  if (lines[0]?.format !== format) throw new Error(`it does not begin as an export: {"format":"${format}", ...}`);
  const records = lines.slice(1, -1);
  if (lines.at(-1).end !== records.length) throw new Error("its end is missing");
  return records;
}

function File({ onRead, onError }) {
  const change = async (event) => {
    try {
      onRead(read(await event.target.files[0].text()));
    } catch (error) {
      onError(new Error(`This is no export: ${error.message}`));
    }
  };
  return html`<label class="field"><span>An export</span><input type="file" accept=".jsonl" onChange=${change} />
    </label>`;
}

export const importTree = (z) => open(html`<${Import} z=${z} />`);

function Import({ z }) {
  const [records, setRecords] = useState(null);
  const [problem, setProblem] = useState(null);
  const wanted = records && creates(records, z.path).filter((op) => op.path !== z.path);
  const then = async () => {
    const body = JSON.stringify({ ops: wanted });
    if (body.length > mostBytes || wanted.length > most)
      throw new Error("this is more than one transaction takes: zk-lite import has no such limit");
    await send({ method: "POST", path: "/v1/multi", headers: { "Content-Type": "application/json" }, body });
    done(`${plural(wanted.length, "znode")} imported below ${z.path}.`);
  };
  return html`<${Ask} title=${`Import below ${z.path}`} action="Import" then=${then} request=${undefined}
    what=${
      wanted
        ? html`This creates ${plural(wanted.length, "znode")} in one transaction, or none if one of them exists. The export's topmost znode is ${z.path}, which stays as it is.`
        : "Choose a file that Export, or zk-lite export, has made."
    }
    fields=${html`<${File} onRead=${(r) => (setRecords(r), setProblem(null))} onError=${setProblem} />
      ${problem && html`<p class="error" role="alert">${problem.message}</p>`}`} />`;
}

export const compareTree = (z) => open(html`<${Compare} z=${z} />`);

// compare lists how two subtrees differ: [[path, how], ...].
function compare(here, there) {
  const a = new Map(here.map((r) => [r.path, r])),
    b = new Map(there.map((r) => [r.path, r]));
  return [...new Set([...a.keys(), ...b.keys()])]
    .sort()
    .map((path) => {
      const x = a.get(path),
        y = b.get(path);
      if (!x || !y) return [path, x ? "only here" : "only there"];
      const what = [
        x.data !== y.data || x.encoding !== y.encoding ? "data" : "",
        String(x.acl) !== String(y.acl) ? "permissions" : "",
      ].filter(Boolean);
      return [path, what.length ? `other ${what.join(" and ")}` : ""];
    })
    .filter(([, how]) => how);
}

function Compare({ z }) {
  const [path, setPath] = useState("");
  const [file, setFile] = useState(null);
  const [problem, setProblem] = useState(null);
  const [result, setResult] = useState(null);
  const then = async () => {
    const [here, there] = await Promise.all([collect(z.path), file ?? collect(path)]);
    setResult(compare(here, there));
  };
  return html`<${Ask} title=${`Compare ${z.path}`} action="Compare" then=${then} request=${undefined}
    fields=${html`<${Field} label="With the znode" value=${path} onInput=${setPath} placeholder="/other" />
      <${File} onRead=${(r) => (setFile(r), setProblem(null))} onError=${setProblem} />
      ${problem && html`<p class="error" role="alert">${problem.message}</p>`}
      ${
        result &&
        html`<div role="status"><p>${result.length ? plural(result.length, "difference") : "They are equal."}</p>
        <ul class="plain">${result.slice(0, 500).map(([p, how]) => html`<li>
          <${Name} text=${p || "the topmost znode"} />: ${how}</li>`)}</ul></div>`
      }`} />`;
}
