// The server's problems in words for people. What it says by itself is for clients of the HTTP API, and speaks of
// methods and parameters.
import { capital } from "./text.js";

// texts are [what is wrong, what to do] by the name of ZooKeeper's error.
const texts = {
  NONODE: ["There is no znode", "It was never created, or it has been deleted. Search finds it by a part of its name."],
  NODEEXISTS: ["It exists already", "Choose another name, or edit the one that is there."],
  NOAUTH: ["You are not permitted to do this", "Its permissions say who has. Log in as one of them."],
  AUTHFAILED: ["The login was refused", "Compare the name and the password, or the token."],
  BADVERSION: ["It was changed meanwhile", "Nothing was written. Look at it again before you decide."],
  NOTEMPTY: ["It has children", "Delete them first, or all with it."],
  NOCHILDRENFOREPHEMERALS: ["An ephemeral znode has no children", "Create it below another one."],
  SESSIONEXPIRED: ["The session has expired", "Try again: the page opens a new one."],
  SESSIONMOVED: ["The session has moved to another server", "Try again."],
  INVALIDACL: ["This is no list of permissions", "An entry is scheme:id:perms, such as world:anyone:r or auth::cdrwa."],
  CONNECTIONLOSS: ["The ensemble has not answered", "Try again in a moment. The state above says how it stands."],
  OPERATIONTIMEOUT: ["It is not known whether it was done", "Look before you try again."],
  THROTTLEDOP: ["The server has too much to do", "Try again in a moment."],
  UNIMPLEMENTED: ["This server does not do that", "It may have to be switched on in its settings."],
};

// fields are the page's names of parameters.
const fields = { owner: "Session", after: "More", path: "Path", id: "Number", address: "Address", role: "Role" };

// advices are by the title of a problem that ZooKeeper has no error for, or of a status.
const advices = {
  "no answer": "Is it running? The page goes on when it is.",
  "no quorum": "The page goes on by itself when there is a majority.",
  "another tree": "Search again from the beginning.",
  "no such server": "It may have been removed meanwhile.",
  "too few would be left": "Bring another voter back first, or add one.",
  "a reconfiguration is in progress": "Try again when it has ended; the leader's log says what it waits for.",
};

// sentence says what is wrong.
export function sentence({ error, title, detail = "", path, parameter }) {
  if (path && texts[error] && title !== "no quorum") return `${texts[error][0]}: ${path}`;
  const field = fields[parameter];
  const text = parameter && detail.startsWith(parameter + ": ") ? detail.slice(parameter.length + 2) : detail;
  return field ? `${field}: ${text}` : capital(text);
}

// advice says what to do, or nothing.
export const advice = ({ error, title, path }) =>
  advices[title] ?? (error === "NOAUTH" && !path ? "Log in as an administrator." : texts[error]?.[1]);
