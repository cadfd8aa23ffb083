// The view of the servers' load over the last hour.
import { html, useState } from "./vendor/preact.js";
import { gauge, marks, mean, rate, useHistory } from "./history.js";
import { Legend, Marks, Plot } from "./plot.js";
import { Slow } from "./slow.js";
import { Failure, Failures } from "./parts.js";
import { bytes } from "./text.js";

export const requests = ["Requests of ZooKeeper clients, a second", rate("packets_received")];
export const slowest = ["99 % of the replies within, milliseconds", gauge("request_duration_seconds_p99", 1000)];

const plots = [
  requests,
  ["Half of the replies within, milliseconds", gauge("request_duration_seconds_p50", 1000)],
  slowest,
  ["Requests in progress", gauge("outstanding_requests")],
  ["Writes that await their result", gauge("pending_commands")],
  ["Syncs of the log, a second", rate("log_fsync_seconds_count")],
  ["Mean time of a sync, milliseconds", mean("log_fsync_seconds")],
  ["99 % of the syncs within, milliseconds", gauge("log_fsync_seconds_p99", 1000)],
  ["Processors in use", rate("process_cpu_seconds_total")],
  ["Memory of the process", gauge("process_resident_memory_bytes"), bytes],
  ["Connections", gauge("num_alive_connections")],
  ["Watches", gauge("watch_count")],
];

export function Load() {
  const { servers, error } = useHistory();
  const [at, choose] = useState(null);
  const events = marks(servers);
  return html`<div><section aria-label="Load"><h1>Load</h1>
    <p class="note">The last hour, as each server has kept it; a restart begins a new one. Point at a chart, or press ← and →
      in it, to read a moment in all.</p>
      <${Legend} servers=${servers} /><${Marks} of=${events} />
      <${Failure} error=${error} /><${Failures} of=${servers.map(([id, { error: e }]) => ({ id, error: e }))} /></section>
    <div class="plots">${plots.map(
      ([title, value, unit]) => html`<${Plot} key=${title} title=${title} value=${value}
      unit=${unit} servers=${servers} marks=${events} at=${at} choose=${choose} />`,
    )}</div><${Slow} /></div>`;
}
