// A route and a body in, the server's answer out; what goes wrong becomes a ServerError with a sentence.

const KEPT = 80;
const answers = new Map(); // the last answers by their request, so that going back is instant

let key = null; // the API key, if the server asks for one; kept in memory only
let guarded = false; // whether /info said that requests need a key: the browser may know it and not tell

export class ServerError extends Error {
  constructor(message, { status = 0, type = "network", retryAfter = null, code = null, values = {} } = {}) {
    super(message);
    this.status = status;
    this.type = type;
    this.code = code; // which refusal it is, where the server says so, and what it tells
    this.values = values;
    this.retryAfter = retryAfter; // seconds, where trying again makes sense
  }
}

export function setKey(value) {
  key = value;
}

export function noteGuarded(value) {
  guarded = value;
}

export function needsKey() {
  return guarded || key !== null;
}

export function nameOf(path, body) {
  return body === undefined ? path : `${path} ${JSON.stringify(body)}`;
}

export function known(name) {
  return answers.get(name);
}

// GET without a body, POST with one.
export async function ask(path, body, signal) {
  const response = await send(path, body, signal);
  const answer = await read(response, signal);
  if (!response.ok) throw refusal(response, answer);
  keep(nameOf(path, body), answer);
  return answer;
}

async function send(path, body, signal) {
  const headers = key === null ? {} : { Authorization: `Bearer ${key}` };
  const post = {
    method: "POST",
    body: JSON.stringify(body),
    headers: { ...headers, "Content-Type": "application/json" },
  };
  try {
    return await fetch(path, { ...(body === undefined ? { headers } : post), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServerError("");
  }
}

async function read(response, signal) {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServerError("", { status: response.status, type: "internal" });
  }
}

function refusal(response, answer) {
  const again = response.status === 429 || response.status === 503;
  const seconds = Number(response.headers.get("Retry-After"));
  return new ServerError(answer.error ?? "", {
    status: response.status,
    type: answer.error_type ?? "internal",
    code: answer.code,
    values: answer.values,
    retryAfter: again ? Math.min(Math.max(seconds || 1, 1), 60) : null,
  });
}

function keep(name, answer) {
  answers.delete(name);
  answers.set(name, answer);
  if (answers.size > KEPT) answers.delete(answers.keys().next().value);
}
