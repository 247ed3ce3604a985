// The workspace as the server describes it, for all components that show it; asked again each second while a job works.

import { useEffect, useState } from "preact/hooks";
import { clearCache, postWorkspace, getWorkspace } from "/explorer/api.js";

const [ACTIVE_MS, RETRY_MS] = [1000, 3000]; // between two requests; after one that failed
const ACTIVE = ["waiting", "running", "stopping"];

let state = { data: null, error: null };
let timer = 0;
let loading = null;
const listeners = new Set();

export function isActive(corpus) {
  return ACTIVE.includes(corpus.state);
}

export function refresh() {
  clearTimeout(timer);
  loading ??= load().finally(() => (loading = null));
  return loading;
}

async function load() {
  const ready = namesOfReady();
  try {
    state = { data: await getWorkspace(""), error: null };
  } catch (error) {
    state = { ...state, error };
  }
  if (namesOfReady() !== ready) clearCache(); // a corpus that was made again has other answers
  listeners.forEach((listener) => listener(state));
  if (!listeners.size) return;
  if (state.error) timer = setTimeout(refresh, RETRY_MS);
  else if (state.data.corpora.some(isActive)) timer = setTimeout(refresh, ACTIVE_MS);
}

function namesOfReady() {
  return (state.data?.corpora ?? []).filter(({ state }) => state === "ready").map(({ name }) => name).join("\n");
}

// {data, error}; nothing is requested while `enabled` is false.
export function useWorkspace(enabled = true) {
  const [value, setValue] = useState(state);
  useEffect(() => {
    if (!enabled) return undefined;
    listeners.add(setValue);
    refresh();
    return () => listeners.delete(setValue);
  }, [enabled]);
  return value;
}

// The curves of a corpus, as far as they are when `version` changes.
export function useCorpusDetail(name, version) {
  const [detail, setDetail] = useState(null);
  useEffect(() => {
    let isCurrent = true;
    getWorkspace(`/${encodeURIComponent(name)}`).then(
      (data) => isCurrent && setDetail(data),
      () => {}, // the list, which is requested as often, shows the error
    );
    return () => (isCurrent = false);
  }, [name, version]);
  return detail;
}

// start, pause, resume, cancel or delete; the list is up to date afterwards.
export async function act(name, action, body = {}) {
  try {
    return await postWorkspace(`/${encodeURIComponent(name)}/${action}`, body);
  } finally {
    await refresh();
  }
}
