// Sends requests to the server and caches the responses. Every failure becomes a ServerError.

const CACHE_SIZE = 80;
const cache = new Map(); // responses by request, the oldest first; going back is instant

let base = ""; // before all paths: "/corpora/NAME" if the page reads a text of the workspace
let model = null; // the name of the model that the page reads; null for the server's first
let apiKey = null; // kept in memory only
let keyRequired = false; // from /info: the browser may hold the key itself, so `apiKey` alone does not tell

export class ServerError extends Error {
  constructor(message, { status = 0, type = "network", retryAfter = null, code = null, values = {} } = {}) {
    super(message);
    this.status = status;
    this.type = type;
    this.code = code; // names the reason, so that the page can translate it with `values`
    this.values = values;
    this.retryAfter = retryAfter; // seconds, or null if a retry would not help
  }
}

export function setCorpus(name) {
  base = name ? `/corpora/${encodeURIComponent(name)}` : "";
}

export function setModel(name) {
  model = name ?? null;
}

// The whole address of a route, for code to copy.
export function addressOf(path) {
  return `${location.origin}${base}${path}`;
}

// A request to the model that the page reads: [path, body].
export function toModel(path, body) {
  if (model === null) return [path, body];
  return body === undefined ? [`${path}?model=${encodeURIComponent(model)}`, body] : [path, { ...body, model }];
}

export function clearCache() {
  cache.clear();
}

export function setKey(value) {
  apiKey = value;
}

export function setKeyRequired(value) {
  keyRequired = value;
}

export function needsKey() {
  return keyRequired || apiKey !== null;
}

export function requestKey(...request) {
  const [path, body] = toModel(...request);
  return body === undefined ? `${base}${path}` : `${base}${path} ${JSON.stringify(body)}`;
}

export function cachedResponse(name) {
  return cache.get(name);
}

// GET without a body, POST with one.
export async function fetchJson(path, body, signal) {
  const key = requestKey(path, body);
  const [address, content] = toModel(path, body);
  const data = await request(`${base}${address}`, content, signal);
  addToCache(key, data);
  return data;
}

// Routes of the workspace, which belong to the server whatever the page reads; never cached.
export function getWorkspace(path) {
  return request(`/workspace${path}`);
}

export function postWorkspace(path, body) {
  return request(`/workspace${path}`, body);
}

// `bytes` is a Blob: a part of a file, in any encoding.
export function uploadPart(path, bytes) {
  return request(`/workspace${path}`, bytes);
}

async function request(path, body, signal) {
  const response = await send(path, body, signal);
  const data = await parseJson(response, signal);
  if (!response.ok) throw errorFrom(response, data);
  return data;
}

async function send(path, body, signal) {
  const headers = apiKey === null ? {} : { Authorization: `Bearer ${apiKey}` };
  const isFile = body instanceof Blob;
  const post = {
    method: "POST",
    body: isFile ? body : JSON.stringify(body),
    headers: { ...headers, "Content-Type": isFile ? "application/octet-stream" : "application/json" },
  };
  try {
    return await fetch(path, { ...(body === undefined ? { headers } : post), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServerError("");
  }
}

async function parseJson(response, signal) {
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ServerError("", { status: response.status, type: "internal" });
  }
}

function errorFrom(response, data) {
  const isTemporary = response.status === 429 || response.status === 503;
  const seconds = Number(response.headers.get("Retry-After"));
  return new ServerError(data.error ?? "", {
    status: response.status,
    type: data.error_type ?? "internal",
    code: data.code,
    values: data.values,
    retryAfter: isTemporary ? Math.min(Math.max(seconds || 1, 1), 60) : null,
  });
}

function addToCache(name, data) {
  cache.delete(name);
  cache.set(name, data);
  if (cache.size > CACHE_SIZE) cache.delete(cache.keys().next().value);
}
