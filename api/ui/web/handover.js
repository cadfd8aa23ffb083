// The token that `zk-lite ui` has put into the address, behind #login=. It leaves the address, and so the history, before
// any other module runs: main.js imports this one first.
export const token = new URLSearchParams(location.hash.slice(1)).get("login");
if (token) history.replaceState(null, "", location.pathname);
