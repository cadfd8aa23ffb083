// The dialogs that change one znode. Each change names the version that was seen, and leaves a way back.
import { html, useState } from "./vendor/preact.js";
import { get, send, znode } from "./api.js";
import { done, useAsync } from "./store.js";
import { Ask, Diff, Field, open } from "./parts.js";
import { aclText, base, bytes, decode, diff, join, parent, plural, visible } from "./text.js";
import { link, below } from "./tree.js";
import { collect, creates } from "./subtree.js";
import { pageSession } from "./session.js";

const etag = (stat) => ({ "If-Match": `"${stat.mzxid}"` });
const bodyOf = (text, encoding) => (encoding === "base64" ? decode({ data: text, encoding }) : text);
const isBase64 = (text) => {
  try {
    atob(text);
    return true;
  } catch {
    return false;
  }
};

const put = (path, text, encoding, stat) => ({
  method: "PUT",
  path: znode(path),
  headers: etag(stat),
  body: bodyOf(text, encoding),
});

export const editData = (z) => open(html`<${Edit} z=${z} />`);

function Edit({ z }) {
  const [before, setBefore] = useState(z); // what the change is compared with
  const [text, setText] = useState(z.data);
  const [review, setReview] = useState(false);
  const { path, encoding } = z;
  const fits = encoding !== "base64" || isBase64(text);
  const then = async (answer) => {
    if (!review) return setReview(true);
    const { stat } = answer.body;
    done(`${path} is at version ${stat.version} now.`, async () => {
      await send(put(path, before.data, before.encoding, stat));
      done(`${path} has its data of before again.`);
    });
  };
  const takeTheirs = async () => setBefore(await get(znode(path)));
  const check = (problem) =>
    problem.code === "BADVERSION" &&
    html`<p class="note">Somebody else has changed it since you looked.
    <button type="button" onClick=${takeTheirs}>Compare mine with theirs</button></p>`;
  return html`<${Ask} title=${`Edit ${path}`} action=${review ? "Write" : "Review"} then=${then} check=${check}
    request=${review ? () => put(path, text, encoding, before.stat) : undefined}
    what=${review && html`This replaces version ${before.stat.version}, and nothing if that is not the present one.`}
    fields=${
      review
        ? html`<${Diff} lines=${around(diff(before.data, text))} /><p>
          <button type="button" onClick=${() => setReview(false)}>Edit again</button></p>`
        : html`<${Field} label=${encoding === "base64" ? "Data, in base64 since they are no text" : "Data"} rows="14"
          value=${text} onInput=${setText} />
        ${!fits && html`<p class="error">This is not base64.</p>`}`
    } />`;
}

// around leaves of a comparison what has changed, with three lines around it.
function around(lines) {
  const near = (i) => lines.slice(Math.max(0, i - 3), i + 4).some(([sign]) => sign !== " ");
  const kept = lines.filter((_, i) => near(i)).slice(0, 2000);
  return kept.length ? kept : [[" ", "nothing changes"]];
}

export const editACL = (z) => open(html`<${EditACL} z=${z} />`);

function EditACL({ z }) {
  const [text, setText] = useState(aclText(z.acl));
  const request = (acl, version) => ({ method: "PUT", path: znode(z.path), query: { acl, version } });
  return html`<${Ask} title=${`Permissions of ${z.path}`} action="Set"
    request=${() => text && request(text, z.stat.aversion)}
    fields=${html`<${Field} label="Entries" rows="4" value=${text} onInput=${setText}
      hint="scheme:id:perms, separated by commas. perms are c (create children), d (delete children), r (read), w (write), a (change permissions). auth::perms is you." />
      <${Diff} lines=${diff(aclText(z.acl).replaceAll(",", "\n"), text.replaceAll(",", "\n"))} />`}
    then=${({ body }) =>
      done(`The permissions of ${z.path} are set.`, async () => {
        await send(request(aclText(z.acl), body.stat.aversion));
        done(`${z.path} has its permissions of before again.`);
      })} />`;
}

const modes = [
  ["persistent", "Persistent"],
  ["persistent_sequential", "Persistent, with a number"],
  ["ephemeral", "Ephemeral: as long as this page is open"],
  ["ephemeral_sequential", "Ephemeral, with a number"],
  ["container", "Container: until its last child goes"],
  ["ttl", "With a time to live"],
  ["ttl_sequential", "With a time to live and a number"],
];

export const create = (z) => open(html`<${Create} above=${z.path} />`);

function Create({ above }) {
  const [x, setX] = useState({ name: "", mode: "persistent", ttl: "10m", data: "", acl: "world:anyone:cdrwa" });
  const [session, setSession] = useState(null);
  const field = (name) => ({ value: x[name], onInput: (value) => setX({ ...x, [name]: value }) });
  const ephemeral = x.mode.startsWith("ephemeral"),
    ttl = x.mode.startsWith("ttl") ? x.ttl : undefined;
  if (ephemeral && !session) pageSession().then(setSession, setSession);
  const request = () =>
    (x.name || x.mode.endsWith("sequential")) &&
    !x.name.includes("/") &&
    (!ephemeral || session?.header) && {
      method: "POST",
      path: znode(join(above, x.name)),
      query: { mode: x.mode, ttl, acl: x.acl },
      body: x.data,
      headers: ephemeral ? { "Zk-Session": session.header } : {},
    };
  return html`<${Ask} title=${`Create below ${above}`} action="Create" request=${request}
    fields=${html`<${Field} label="Name" ...${field("name")}
      hint=${x.name.includes("/") ? "A name has no slash." : ""} />
      <${Field} label="Kind" options=${modes} ...${field("mode")} />
      ${ttl !== undefined && html`<${Field} label="Time to live" ...${field("ttl")} hint="such as 30s, 10m or 24h" />`}
      <${Field} label="Data" rows="5" ...${field("data")} />
      <${Field} label="Permissions" ...${field("acl")} hint="auth::cdrwa is you alone" />`}
    then=${({ body }) => {
      done(`${body.path} is created.`, async () => {
        await send({ method: "DELETE", path: znode(body.path), headers: etag(body.stat) });
        done(`${body.path} is deleted again.`);
      });
      location.hash = link(body.path);
    }} />`;
}

export const remove = (z) => open(html`<${Delete} z=${z} />`);

function Delete({ z }) {
  const { path, about, stat } = z;
  const many = about.below.znodes > 0;
  const [sure, setSure] = useState(false);
  // To undo it: what there is, or why it cannot be read. Nothing is deleted before that is known.
  const { value: records, error } = useAsync(() => collect(path), []);
  const request = () =>
    (records || error) &&
    (!many || sure) && { method: "DELETE", path: znode(path), query: { recursive: many }, headers: etag(stat) };
  const then = () => {
    const undo =
      records &&
      (async () => {
        const ops = creates(records, path);
        await send({
          method: "POST",
          path: "/v1/multi",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ ops }),
        });
        done(
          `${path} is created again${ops.length < records.length ? ", without what was ephemeral" : ""}; versions begin at 0.`,
        );
      });
    done(
      `${path} is deleted${many ? `, and ${below(about)} with it` : ""}.${undo ? "" : ` It cannot be undone: ${error.message}.`}`,
      undo,
    );
    location.hash = link(parent(path));
  };
  return html`<${Ask} title=${`Delete ${path}`} action="Delete" danger request=${request} then=${then}
    what=${html`This deletes ${visible(base(path))} with ${bytes(stat.dataLength)} of data${many ? html`, and <strong>
      ${below(about)}</strong> below it, in one transaction` : ""}.
      ${about.below.more && " One transaction deletes 10,000 znodes at most: delete the parts of it first."}`}
    fields=${
      many &&
      html`<label class="check"><input type="checkbox" checked=${sure} onChange=${(e) => setSure(e.target.checked)} />
      Delete ${about.below.more ? "all of it" : plural(about.below.znodes + 1, "znode")}</label>`
    } />`;
}
