// The page's own session, for ephemeral znodes: it is opened when it is needed first, and expires with the page.
import { send } from "./api.js";

let session; // a promise of {id, header}

export function pageSession() {
  session ??= openSession();
  session.catch(() => {
    session = undefined;
  });
  return session;
}

async function openSession() {
  const { body } = await send({ method: "POST", path: "/v1/sessions", body: `{"timeout":"30s"}` });
  const it = { id: body.id, header: `${body.id}.${body.secret}` };
  const timer = setInterval(async () => {
    try {
      await send({ method: "POST", path: `/v1/sessions/${it.id}/keepalive`, headers: { "Zk-Session": it.header } });
    } catch (error) {
      if (error.status !== 410) return; // the next one may arrive
      clearInterval(timer);
      session = undefined;
    }
  }, 8000);
  return it;
}
