// The view of the servers, and what an administrator does with them.
import { html, useState } from "./vendor/preact.js";
import { get, start } from "./api.js";
import { disks, election, halt, label, leads, role, useServers } from "./servers.js";
import { done, failed, usePoll, useStore } from "./store.js";
import { Ask, Failure, Field, Name, Silent, open, save } from "./parts.js";
import { bytes, millis, plural, when } from "./text.js";

const every = 3000; // milliseconds

const days = (seconds) => (seconds < 0 ? "expired" : `${(seconds / 86400).toFixed(1)} days`);

export function Ensemble() {
  const store = useStore();
  const administrator = store.identity?.administrator;
  const { value: c, error } = usePoll(
    async (signal) => (administrator ? get("/v1/cluster", {}, signal) : null),
    every,
    [store.identity, store.changes],
  );
  const servers = useServers();
  const led = c && !c.incomplete;
  const member = (id) => c?.members.find((m) => m.id === id);
  return html`<div><section aria-label="Ensemble"><h1>Ensemble</h1>
      <${Failure} error=${servers.error ?? error} />
      ${servers.rows.length > 0 && html`<p role="status">${summary(servers.rows)}</p>`}
      <div class="wide" tabindex="0"><table id="members"><thead><tr><th>Server</th><th>Role</th><th>Serves</th>
        <th>Zxid</th><th>Lag</th><th>Version</th><th>Disk free</th><th>Certificate</th><th></th></tr></thead>
        <tbody>${servers.rows.map(
          ({ id, m, error: why }) => html`<tr key=${id}><td>${id} <small>${address(member(id))}</small></td>
          ${m ? standing(m, member(id)) : html`<td colspan="7" class="whole">${why ? gone(why) : "asking …"}</td>`}
          <td class="actions"><span class="buttons">${
            c &&
            html`<button aria-label=${`Make server ${id} lead`}
              disabled=${!led || !m || member(id)?.role !== "follower"} onClick=${() => transfer(id)}>Lead</button>
            <button aria-label=${m?.draining ? `Undrain server ${id}` : `Drain server ${id}`} disabled=${!m || !(led || m.draining)}
              onClick=${() => drain(id, m.draining)}>${m?.draining ? "Undrain" : "Drain"}</button>
            <button aria-label=${`Remove server ${id}`} disabled=${!led} onClick=${() =>
              open(html`<${Remove}
              id=${id} />`)}>Remove</button>`
          }</span></td></tr>`,
        )}</tbody></table></div>
      ${
        c
          ? html`<p class="buttons"><button disabled=${!led} onClick=${() => open(html`<${Add} />`)}>Add a server</button>
        <button disabled=${!led} onClick=${backup}>Take a backup</button>
          <button disabled=${!led} onClick=${() => open(html`<${Restore} />`)}>Restore a backup</button></p>
        ${
          !led &&
          html`<div class="note">The leader cannot be asked: how far each server is, and all changes, wait for one.
          <details><summary>Details</summary><${Name} text=${c.incomplete} /></details></div>`
        }`
          : store.identity &&
            !administrator &&
            html`<p class="note">Log in as an administrator to see how the leader knows them, and to change something.</p>`
      }
    </section></div>`;
}

// address is where a member is: for clients, if its configuration says that, or else for the other servers.
export const address = (member) =>
  member?.client && !member.client.startsWith("0.0.0.0:") ? member.client : member?.peer?.replace(/:\d+$/, "");

// standing are the cells of a server that answers.
const standing = (m, known) =>
  html`<td data-label="Role">${role(m)}${known?.role === "joining" ? ", joining" : ""}</td>
  <td data-label="Serves">${m.halted ? `halted: ${halt(m)}` : m.draining ? "drained" : m.serving ? "yes" : "no"}</td>
  <td data-label="Zxid"><code>0x${BigInt(m.last_zxid).toString(16)}</code></td>
  <td data-label="Lag">${known?.lag ?? "–"}</td><td data-label="Version">${label(m, "zk_lite_info", "version")}</td>
  <td data-label="Disk free">${disks(m).map(bytes).join(", ")}</td><td data-label="Certificate">${certificates(m)}</td>`;

const gone = (error) =>
  error.reason
    ? html`<${Silent} error=${error} />`
    : html`<span class="error"><${Name} text=${error.message} /></span>`;

// certificates says for how long those of a server are good that come from files.
function certificates(m) {
  const known = [
    ["clients", m.tls_certificate_expiry_seconds],
    ["servers", m.tls_peer_certificate_expiry_seconds],
  ].filter(([, seconds]) => seconds !== undefined);
  return known.map(([whose, seconds]) => `${days(seconds)} for ${whose}`).join(", ") || "none";
}

// summary says how the ensemble stands, by what the servers answer.
function summary(servers) {
  const all = servers.filter(({ m }) => m);
  const leader = all.find(leads);
  if (!leader) return servers.some(({ m, error }) => !m && !error) ? "asking all servers …" : "No leader answers.";
  const { id, m } = leader;
  const voters = m.quorum_size ?? 1;
  const since = m.leader_uptime === undefined ? "" : `, since ${when(Date.now() - m.leader_uptime)}`;
  return [
    `Server ${id} leads in term ${m.raft_term}${since}.`,
    `${plural(voters, "voter")} survive ${plural(Math.floor((voters - 1) / 2), "failure")} when all are up`,
    `and ${plural(m.failures_tolerated_now ?? 0, "failure")} now.`,
    outageText(all),
  ].join(" ");
}

// outageText says how long nobody was served at the last election: each server gives a bound.
function outageText(rows) {
  const last = election(rows);
  return last
    ? `The last election ended at ${when(last.at)}; for at most ${millis(last.outage)} nobody was served.`
    : "";
}

const json = { "Content-Type": "application/json" };

const transfer = (id) =>
  open(html`<${Ask} title=${`Make server ${id} the leader`} action="Hand over"
  what="The present leader stops taking writes, brings this server up to date and hands over. Writes wait for some milliseconds; nothing is lost."
  request=${() => ({ method: "POST", path: "/v1/cluster/transfer", headers: json, body: JSON.stringify({ to: id }) })}
  then=${({ body }) => done(`Server ${body.leader} leads in term ${body.term}.`)} />`);

const drain = (id, draining) =>
  open(
    draining
      ? html`<${Ask} title=${`Let server ${id} take clients again`} action="Undrain" what="It serves clients as before."
    request=${() => ({ method: "DELETE", path: "/v1/cluster/drain", query: { server: id } })}
      then=${() => done(`Server ${id} takes clients again.`)} />`
      : html`<${Ask} title=${`Drain server ${id}`} action="Drain" danger
    what="This prepares the server for its stop, if the others can spare it: it hands over leadership, takes no new clients and sends its clients to other servers, with their sessions. The same button undoes it."
    request=${() => ({ method: "POST", path: "/v1/cluster/drain", query: { server: id } })}
      then=${() => done(`Server ${id} is drained and can be stopped.`)} />`,
  );

function Add() {
  const [x, setX] = useState({ id: "", address: "", role: "voter" });
  const field = (name) => ({ value: x[name], onInput: (value) => setX({ ...x, [name]: value }) });
  return html`<${Ask} title="Add a server" action="Add"
    what="The ensemble takes it in without a vote until it has caught up. It may be started before or after."
    fields=${html`<${Field} label="Number" inputmode="numeric" ...${field("id")}
      hint="1 to 254, that of no other server" />
      <${Field} label="Address" placeholder="zk4:2888:3888;2181" ...${field("address")}
        hint="what follows server.N= in a configuration" />
      <${Field} label="Role" options=${[
        ["voter", "Voter"],
        ["observer", "Observer, without a vote"],
      ]} ...${field("role")} />`}
    request=${() => /^\d+$/.test(x.id) && x.address && { method: "POST", path: "/v1/cluster/members", headers: json, body: JSON.stringify({ ...x, id: Number(x.id) }) }}
    then=${() => done(`Server ${x.id} is a member.`)} />`;
}

function Remove({ id }) {
  const [text, setText] = useState("");
  return html`<${Ask} title=${`Remove server ${id}`} action="Remove" danger
    what="It is no member any more, votes no more and stops serving clients. To come back it has to be added again, with an empty directory."
    fields=${html`<${Field} label=${`Type ${id} to confirm`} value=${text} onInput=${setText} />`}
    request=${() => text === String(id) && { method: "DELETE", path: `/v1/cluster/members/${id}` }}
      then=${() => done(`Server ${id} is removed.`)} />`;
}

async function backup() {
  try {
    save("backup.zks", await (await start({ path: "/v1/snapshot" })).blob());
    done("The backup is in your downloads.");
  } catch (error) {
    failed(error);
  }
}

function Restore() {
  const [file, setFile] = useState(null);
  const [plan, setPlan] = useState(null);
  const request = (query) => ({
    method: "POST",
    path: "/v1/snapshot",
    query,
    headers: { "Content-Type": "application/octet-stream" },
    body: file,
  });
  const choose = async (event) => {
    const f = event.target.files[0];
    setPlan(null);
    setFile(f ? new Uint8Array(await f.arrayBuffer()) : null);
  };
  return html`<${Ask} title="Restore a backup" action=${plan ? "Restore" : "Try it without changing anything"}
    danger=${Boolean(plan)}
    what=${
      plan
        ? html`The tree becomes that of ${plan.backup_zxid}, in one transaction: <strong>
          ${plan.created} created, ${plan.changed} changed, ${plan.deleted} deleted</strong>; ${plan.kept_ephemerals} ephemerals stay.`
        : "Choose a backup. What it would change is shown first."
    }
    fields=${html`<label class="field"><span>The backup</span><input type="file" onChange=${choose} /></label>`}
    request=${() => file && request(plan ? { replace: true } : { dry_run: true })}
    then=${({ body }) => (plan ? done(`Restored: ${body.created} created, ${body.changed} changed, ${body.deleted} deleted.`) : setPlan(body))} />`;
}
