// The one place that asks the server. A request is {method, path, query, headers, body}: send() performs it, curl()
// writes it as the command that does the same.

import { hasMajority, isLocal, lost } from "./store.js";
import { advice, sentence } from "./errors.js";

let authorization = ""; // the header; kept in memory only
let hint = ""; // how curl gives it
let certificate = false; // the browser has shown one

// Problem is an answer that is no success, an RFC 9457 document or no answer at all, in words for people: those of the
// server are for clients of the HTTP API.
export class Problem extends Error {
  constructor(status, document) {
    super(sentence(document));
    const { error: code, path, reason, cause, title } = document;
    Object.assign(this, { status, hint: advice(document), code, path, reason, cause, lost: title === "no quorum" });
  }
}

// parse reads JSON; integers that a double cannot hold become BigInt.
export function parse(text) {
  return JSON.parse(text, (_, value, context) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value) && context?.source
      ? BigInt(context.source)
      : value,
  );
}

// znode is the resource of a znode.
export const znode = (path, kind = "znodes") => `/v1/${kind}${path === "/" ? "/" : escapePath(path)}`;
export const escapePath = (path) => path.split("/").map(encodeURIComponent).join("/");

export function target({ path, query = {} }) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== false);
  const list = given.flatMap(([name, value]) =>
    value === true ? name : [value].flat().map((v) => `${name}=${encodeURIComponent(v)}`),
  );
  return path + (list.length ? "?" + list.join("&") : "");
}

// send performs a request and returns {body, headers}. Anything but success is thrown as a Problem.
export async function send(request, signal) {
  const response = await start(request, signal);
  const text = await response.text();
  return { body: /json/.test(response.headers.get("Content-Type")) ? parse(text) : text, headers: response.headers };
}

// start performs a request up to its answer's headers. Of a server without a majority, which has done nothing then, it
// asks again a few times: an election takes less. So it does where too many read at once. Once the majority is known to be
// lost, main.js looks for it.
export async function start(request, signal) {
  for (let left = hasMajority() ? tries : 0; ; left--) {
    const response = await ask(request, signal);
    if (response.ok) return response;
    const text = await response.text();
    const document = /json/.test(response.headers.get("Content-Type")) ? parse(text) : { detail: text };
    const busy = response.status === 429 && (request.method ?? "GET") === "GET";
    if ((response.status !== 503 && !busy) || !left) {
      const problem = new Problem(response.status, document);
      if (problem.lost) lost();
      throw problem;
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

const tries = 4; // after the first one
const pause = 500; // milliseconds

async function ask({ method = "GET", headers = {}, body, ...rest }, signal) {
  const all = authorization ? { ...headers, Authorization: authorization } : headers;
  // With "omit" the browser does not ask for a password by itself when it sees 401; a certificate needs the other.
  const credentials = certificate ? "same-origin" : "omit";
  try {
    // The ETag is of the data alone: an answer of the browser's cache could have an old number of children.
    return await fetch(target(rest), { method, headers: all, body, signal, credentials, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, { title: "no answer", detail: "The server of this page does not answer." });
  }
}

const ofMajority = /^\/v1\/(znodes\/|search\/|recipes$)/; // which reads need one, unless they ask for what this server has

export const get = async (path, query, signal) => {
  const consistency = isLocal() && ofMajority.test(path) ? "local" : undefined;
  return (await send({ path, query: { ...query, consistency } }, signal)).body;
};

// readiness is what a server says of whether it serves, also if it does not: the checks of /readyz?verbose.
export async function readiness(server, signal) {
  const response = await ask({ path: "/readyz", query: { verbose: true, server } }, signal);
  const answer = parse(await response.text());
  if (!answer.checks) throw new Problem(response.status, answer);
  return answer;
}

// everywhere is what load(server) resolves to for each server: [{id, ...}, {id, error}, ...].
export async function everywhere(load, signal) {
  const { servers } = await get("/v1/servers", {}, signal);
  return Promise.all(
    servers.map(async ({ id }) => {
      try {
        return { ...(await load(id)), id };
      } catch (error) {
        return { id, error };
      }
    }),
  );
}

const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
const longest = 4096; // of a body that the command shows

// curl writes a request as a command for a shell. Secrets are left out: curl asks for the password.
export function curl({ method = "GET", headers = {}, body, ...rest }) {
  const words = ["curl"];
  if (method !== "GET") words.push("-X", method);
  if (hint) words.push(hint);
  for (const [name, value] of Object.entries(headers))
    words.push("-H", name === "Zk-Session" ? '"Zk-Session: $SESSION"' : quote(`${name}: ${value}`));
  let before = "";
  if (body instanceof Uint8Array) {
    before = `base64 -d <<<'${body.length > longest ? "..." : (body.toBase64?.() ?? btoa(String.fromCharCode(...body)))}' | `;
    words.push("--data-binary", "@-");
  } else if (body !== undefined) {
    words.push(
      ...(body.length > longest || body.includes("\0") ? ["--data-binary", "@file"] : ["--data-raw", quote(body)]),
    );
  }
  return before + [...words, quote(location.origin + target(rest))].join(" ");
}

const base64 = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));

// logIn takes credentials if the server does, and returns the identity.
export async function logIn(scheme, name = "", secret = "") {
  const before = [authorization, hint];
  authorization =
    scheme === "password" ? "Basic " + base64(`${name}:${secret}`) : scheme === "token" ? "Bearer " + secret : "";
  hint = { password: "-u " + quote(name), token: `-H "Authorization: Bearer $TOKEN"` }[scheme] ?? "";
  try {
    return await whoAmI();
  } catch (error) {
    [authorization, hint] = before;
    throw error;
  }
}

// whoAmI asks as whom the server takes this page.
export async function whoAmI() {
  if (!authorization) certificate = true; // show one, if there is any
  const { body: identity, headers } = await send({ path: "/v1/identity" });
  identity.tokenFile = headers.get("Zk-Token-File"); // if no administrator is configured
  certificate = identity.identities.some(({ scheme }) => scheme === "x509");
  if (certificate && !authorization) hint = "--cert client.pem --key client.pem";
  return identity;
}
