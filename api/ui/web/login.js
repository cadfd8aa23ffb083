// Who looks at the page, and as whom the server takes them.
import { token } from "./handover.js";
import { html, useState } from "./vendor/preact.js";
import { logIn, whoAmI } from "./api.js";
import { set, useStore, failed, done } from "./store.js";
import { Dialog, Failure, Field, open } from "./parts.js";

const schemes = [
  ["token", "Token"],
  ["password", "Name and password"],
  ["certificate", "Certificate of the browser"],
];

// refresh finds out at the start who looks at the page; the token of `zk-lite ui` logs in.
export async function refresh() {
  try {
    if (token) return loggedIn(await logIn("token", "", token));
  } catch (error) {
    failed(error);
  }
  return whoAmI().then((identity) => set({ identity }), failed);
}

function loggedIn(identity) {
  set({ identity });
  done(`Logged in as ${names(identity)}.`);
}

export function Login() {
  const { identity } = useStore();
  const logOut = async () => {
    set({ identity: await logIn("none") });
    done("Logged out.");
  };
  if (!identity) return null;
  if (identity.anonymous)
    return html`<button id="login" onClick=${() => open(html`<${Ask} />`)}>Log in to change something</button>`;
  return html`<span id="identity"><bdi>${names(identity)}</bdi></span>
    <button id="logout" onClick=${logOut}>Log out</button>`;
}

const short = ({ scheme, id }) => (scheme === "digest" ? id.split(":")[0] : id || scheme);

// names says in few words who somebody is.
function names({ identities, administrator }) {
  const own = identities.filter(({ scheme }) => scheme !== "ip" && scheme !== "super").map(short);
  return [...own, ...(administrator ? ["administrator"] : [])].join(", ");
}

function Ask() {
  const { tokenFile } = useStore().identity;
  const [x, setX] = useState({ scheme: tokenFile ? "token" : "password", name: "", secret: "" });
  const [error, setError] = useState(null);
  const field = (name) => ({ value: x[name], onInput: (value) => setX({ ...x, [name]: value }) });
  const submit = async (event) => {
    event.preventDefault();
    try {
      const identity = await logIn(x.scheme, x.name, x.scheme === "token" ? x.secret.trim() : x.secret);
      if (identity.anonymous) throw new Error("The browser has shown no certificate.");
      loggedIn(identity);
    } catch (e) {
      setError(e);
    }
  };
  return html`<${Dialog} title="Log in"><form onSubmit=${submit}>
    <${Field} label="By" options=${schemes} ...${field("scheme")} />
    ${
      x.scheme === "password" &&
      html`<${Field} label="Name" autocomplete="username" ...${field("name")} />
      <${Field} label="Password" type="password" autocomplete="current-password" ...${field("secret")}
        hint="As in ZooKeeper, a name and a password need no account: together they are an identity, which ACLs name." />`
    }
    ${
      x.scheme === "token" &&
      html`<${Field} label="Token" type="password" ...${field("secret")}
      hint=${
        tokenFile
          ? `No administrator is configured. The first line of ${tokenFile} makes you one; the command "zk-lite ui" logs in with it.`
          : "One of the server's file of tokens (http.tokenFile)."
      } />`
    }
    ${x.scheme === "certificate" && html`<p
      class="note">The browser shows it when the connection is made, if this port asks for one (admin.needClientAuth) and you have chosen one.</p>`}
    <p class="note">It stays in the memory of this page, until you leave it.</p>
    <${Failure} error=${error} />
    <p class="buttons"><button type="button" onClick=${() => set({ dialog: null })}>Cancel</button>
      <button class="main">Log in</button></p>
  </form></${Dialog}>`;
}
