// The first view: whether the ensemble serves, what needs attention, and how it does.
import { html, useState } from "./vendor/preact.js";
import { get } from "./api.js";
import { lastBackup, useHealth } from "./health.js";
import { disks, election, lag, label, leads, role, useServers } from "./servers.js";
import { usePoll, useStore } from "./store.js";
import { marks, points, useHistory } from "./history.js";
import { Legend, Marks, Plot, short } from "./plot.js";
import { requests, slowest } from "./load.js";
import { Majority } from "./majority.js";
import { Failures, Name, Text } from "./parts.js";
import { address } from "./ensemble.js";
import { ago, bytes, capital, millis, plural, when } from "./text.js";

export function Overview() {
  const { identity, majority } = useStore();
  const { rows, before } = useServers();
  const { level, text, needs } = useHealth();
  const { servers: history } = useHistory();
  const [at, choose] = useState(null);
  const administrator = identity?.administrator;
  const { value: cluster } = usePoll(
    async (signal) => (administrator ? get("/v1/cluster", {}, signal) : null),
    10_000,
    [identity],
  );
  const events = marks(history);
  const plot = ([title, value]) =>
    html`<${Plot} title=${title} value=${value} servers=${history} marks=${events} at=${at} choose=${choose} />`;
  return html`<section aria-label="Overview"><h1>Overview</h1>
      ${
        majority
          ? html`<p id="health" class=${level} role="status"><span class="dot" aria-hidden="true"></span><strong>
        <${Text} text=${text} /></strong></p>`
          : html`<${Majority} />`
      }
      ${
        needs.length > 0 &&
        html`<h2>What needs attention</h2><ul id="needs">${needs.map(
          (n) =>
            html`<li><strong><${Name} text=${capital(n.text)} /></strong> <${Text} text=${n.advice} />${
              n.detail && html` <details><summary>Details</summary><${Name} text=${n.detail} /></details>`
            }</li>`,
        )}</ul>`
      }
      <dl class="facts">${facts(rows, before, history).map(
        ([name, value, more]) =>
          html`<div><dt>${name}</dt><dd>${value}${more && html` <small>${more}</small>`}</dd></div>`,
      )}</dl>
      ${
        identity &&
        !administrator &&
        html`<p class="note">Log in as an administrator to see addresses, slow requests and expired sessions, and to change the ensemble.</p>`
      }</section>
    <div class="cards">${rows.map(
      (row) => html`<${Card} key=${row.id} row=${row} before=${before}
      needs=${needs.filter(({ id }) => id === row.id)} member=${cluster?.members.find(({ id }) => id === row.id)} />`,
    )}</div>
    <section aria-label="The last hour"><h2>The last hour</h2><${Legend} servers=${history} /><${Marks} of=${events} />
      <${Failures} of=${history.map(([id, { error }]) => ({ id, error: error?.reason ? undefined : error }))} />
      <div class="plots">${plot(requests)}${plot(slowest)}</div><p><a href="#/load">More charts, and slow requests</a></p>
    </section>`;
}

// newest are the last values of a measure, of the servers that have any: [number, ...].
const newest = (history, [, value]) =>
  history
    .flatMap(([, { rows, error }]) => (error ? [] : (points(rows.slice(-2), value).at(-1)?.slice(-1) ?? [])))
    .map(([, v]) => v);

// facts are [name, value, more], from what the servers say that answer.
function facts(rows, before, history) {
  const up = rows.filter(({ m }) => m);
  if (!up.length) return [];
  const all = up.map(({ m }) => m);
  const leader = up.find(leads);
  const most = (f) => up.reduce((a, b) => (f(b.m) > f(a.m) ? b : a));
  const behind = most((m) => lag(m, before));
  const free = up.flatMap(({ id, m }) => disks(m).map((n) => [n, id])).sort(([a], [b]) => a - b)[0];
  const snapshot = Math.min(...all.map((m) => m.snapshot_last_success_timestamp_seconds ?? 0));
  const last = election(rows);
  const backup = lastBackup(rows);
  const perSecond = newest(history, requests);
  const p99 = Math.max(...newest(history, slowest));
  const p50 = Math.max(...newest(history, ["", (r) => 1000 * r.request_duration_seconds_p50]));
  const expired = Math.max(
    0,
    ...history.map(([, { rows: h }]) => h.length && h.at(-1).sessions_expired_total - h[0].sessions_expired_total),
  );
  return [
    leader
      ? [
          "Leader",
          `server ${leader.id}`,
          leader.m.leader_uptime && `since ${when(Date.now() - leader.m.leader_uptime)}`,
        ]
      : ["Leader", "none"],
    ["Requests", perSecond.length ? `${short(perSecond.reduce((a, b) => a + b, 0))} a second` : "–"],
    [
      "Replies",
      p50 > 0 ? `half within ${millis(p50)}` : "–",
      p50 > 0 ? `99 % within ${millis(p99)}` : "no request in 10 s",
    ],
    [
      "Sessions",
      Math.max(...all.map((m) => m.global_sessions)).toLocaleString("en"),
      `${plural(expired, "session").replace(/ .*/, "")} expired in the last hour`,
    ],
    [
      "Largest lag",
      lag(behind.m, before) ? plural(lag(behind.m, before), "entry", "entries") : "none",
      lag(behind.m, before) > 0 && `server ${behind.id}`,
    ],
    free && ["Disk", `${bytes(free[0])} free`, `server ${free[1]}, which has least`],
    [
      "Log",
      bytes(Math.max(...all.map((m) => m.raft_log_bytes ?? 0))),
      snapshot > 0 ? `snapshot ${ago(1000 * snapshot)}` : "no snapshot yet",
    ],
    [
      "Last election",
      last ? ago(last.at) : "none but the first",
      last && `at most ${millis(last.outage)} without service`,
    ],
    ["Last backup", backup ? ago(1000 * backup) : "none is known", !backup && html`<code>zk-lite backup</code>`],
  ].filter(Boolean);
}

// standing is the colour of a server, and why.
function standing({ m, error }, needs) {
  if (error) return ["bad", "no answer"];
  if (!m) return ["none", "asking …"];
  if (m.halted) return ["bad", "halted"];
  if (m.draining) return ["warn", "drained"];
  if (!m.serving) return ["bad", "not serving"];
  return needs.length ? ["warn", "needs attention"] : ["good", "well"];
}

function Card({ row, before, needs, member }) {
  const { id, m, error } = row;
  const [level, state] = standing(row, needs);
  return html`<section class="card" aria-label=${`Server ${id}`}><h2><span class=${"dot " + level} aria-hidden="true"></span> Server ${id}${" "}
      <small>${[m && role(m), state].filter(Boolean).join(", ")}</small></h2>
    ${member && html`<p><code>${address(member)}</code></p>`}
    ${error && html`<p class="error"><${Name} text=${error.reason ?? error.message} /></p>`}
    ${
      m &&
      html`<dl><dt>Version</dt><dd>${label(m, "zk_lite_info", "version")}</dd><dt>Started</dt><dd>${ago(Date.now() - m.uptime)}</dd>
      <dt>Lag</dt><dd>${lag(m, before) || "none"}</dd><dt>Connections</dt><dd>${m.num_alive_connections ?? 0}</dd>
      <dt>Memory</dt><dd>${bytes(m.process_resident_memory_bytes)}</dd><dt>Disk free</dt><dd>${disks(m).map(bytes).join(", ")}</dd></dl>`
    }</section>`;
}
