// The form of a new text: files that are chosen, dropped or pasted, and what the server makes of them.

import { useRef, useState } from "preact/hooks";
import { postWorkspace, uploadPart } from "/explorer/api.js";
import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Select } from "/explorer/components/form-fields.js";
import { Failure } from "/explorer/components/server-request.js";
import { act, refresh } from "/explorer/components/workspace-store.js";

const PART_BYTES = 1 << 20; // of a file, sent at once
const DEFAULTS = { model: "new:novel", segment: "", documents: "auto", encoding: "auto", names: false, epochs: "" };
const ENCODINGS = ["auto", "utf-8", "gb18030", "big5", "utf-16", "shift_jis", "latin-1"];
const NEW = ["novel", "tiny", "small"];

export function CorpusForm({ choices, limits }) {
  const [title, setTitle] = useState("");
  const [files, setFiles] = useState([]);
  const [pasted, setPasted] = useState("");
  const [settings, setSettings] = useState(DEFAULTS);
  const [sending, setSending] = useState(null);
  const [problem, setProblem] = useState(null);
  const isEmpty = !files.length && !pasted.trim();
  const addFiles = (added) => {
    const names = new Set(added.map(({ name }) => name));
    setFiles((before) => [...before.filter(({ name }) => !names.has(name)), ...added]);
    setProblem(null);
  };
  const submit = async (event) => {
    event.preventDefault();
    if (sending) return;
    if (isEmpty) return setProblem({ hint: t("workspace.needText") });
    setProblem(null);
    const chosenTitle = title.trim() || files[0]?.name.replace(/\.\w+$/, "").slice(0, 80) || t("workspace.untitled");
    const texts = pasted.trim() ? [...files, new File([pasted], `${fileName(chosenTitle)}.txt`)] : files;
    try {
      await send(chosenTitle, texts, toRequest(settings), limits, setSending);
      [setTitle(""), setFiles([]), setPasted("")];
    } catch (error) {
      setProblem({ error });
    }
    setSending(null);
  };
  return html`
    <form class="corpus-form" onSubmit=${submit}>
      <${DropZone} addFiles=${addFiles} hint=${t("workspace.filesHint", { limit: sizeText(limits.bytes) })} />
      ${files.length > 0 && html`<${FileList} files=${files} remove=${(file) => setFiles(files.filter((other) => other !== file))} />`}
      <label class="field">
        <span>${t("workspace.paste")}</span>
        <textarea rows="3" dir="auto" spellcheck=${false} value=${pasted} onInput=${(event) => setPasted(event.target.value)}></textarea>
      </label>
      <div class="form">
        <label class="field grow">
          <span>${t("workspace.title")}</span>
          <input maxlength="80" value=${title} onInput=${(event) => setTitle(event.target.value)} />
        </label>
      </div>
      <${SettingsFields} choices=${choices} settings=${settings} change=${(next) => setSettings({ ...settings, ...next })} />
      <p>
        <button type="submit" class="primary" aria-disabled=${String(Boolean(sending))}>${t("workspace.start")}</button>
        ${sending && html` <span role="status">${t("workspace.sending", { ...sending, share: percent(sending.share) })}</span>`}
      </p>
      ${problem?.hint && html`<p class="hint" role="status">${problem.hint}</p>`}
      ${problem?.error && html`<${Failure} error=${problem.error} retry=${() => setProblem(null)} busy=${false} />`}
    </form>
  `;
}

function DropZone({ addFiles, hint }) {
  const input = useRef(null);
  const [isOver, setOver] = useState(false);
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    addFiles([...event.dataTransfer.files]);
  };
  const over = (event) => {
    event.preventDefault();
    setOver(true);
  };
  const choose = () => {
    addFiles([...input.current.files]);
    input.current.value = ""; // so that the same file can be chosen again
  };
  return html`
    <label class=${`drop ${isOver ? "over" : ""}`} onDragOver=${over} onDragLeave=${() => setOver(false)} onDrop=${drop}>
      <span>${t("workspace.files")}</span>
      <input ref=${input} class="visually-hidden" type="file" multiple accept=".txt,.md,text/plain,text/markdown" onChange=${choose} />
      <span class="hint">${hint}</span>
    </label>
  `;
}

function FileList({ files, remove }) {
  return html`
    <ul class="files">
      ${files.map(
        (file) => html`
          <li key=${file.name}>
            ${t("workspace.chosen", { name: file.name, size: sizeText(file.size) })}${" "}
            <button type="button" class="small" aria-label=${t("workspace.remove", { name: file.name })} onClick=${() => remove(file)}>×</button>
          </li>
        `,
      )}
    </ul>
  `;
}

// What the server makes of a text: the model, the language, and more behind a fold.
export function SettingsFields({ choices, settings, change }) {
  const field = (name, values) => html`
    <${Select}
      label=${t(`workspace.${name === "segment" ? "language" : name}`)}
      value=${settings[name]}
      options=${values.map((value) => [value, t(`workspace.${name}.${value}`) || value])}
      onCommit=${(value) => change({ [name]: value })}
    />
  `;
  return html`
    <div class="form">
      <${ModelSelect} choices=${choices} value=${settings.model} onCommit=${(model) => change({ model })} />
      ${field("segment", ["", "en", ...choices.segmentations.filter((name) => !["en", "auto"].includes(name)).reverse()])}
    </div>
    <details>
      <summary>${t("workspace.more")}</summary>
      <div class="form">
        ${field("documents", choices.documents)}
        ${field("encoding", ENCODINGS)}
        <label class="field">
          <span>${t("workspace.epochs")} (${t("workspace.epochsHint")})</span>
          <input type="number" min="0.1" max="1000" step="any" value=${settings.epochs} onInput=${(event) => change({ epochs: event.target.value })} />
        </label>
      </div>
      <label class="check">
        <input type="checkbox" checked=${settings.names} onChange=${(event) => change({ names: event.target.checked })} />
        ${t("workspace.names")}
      </label>
    </details>
  `;
}

function ModelSelect({ choices, value, onCommit }) {
  const groups = [
    ["new", NEW.filter((name) => choices.presets.includes(name)), (name) => t(`workspace.new.${name}`)],
    ["use", choices.bases, (name) => t("workspace.use", { name })],
    ["further", choices.bases, (name) => t("workspace.further", { name })],
  ];
  return html`
    <label class="field">
      <span>${t("workspace.model")}</span>
      <select value=${value} onChange=${(event) => onCommit(event.target.value)}>
        ${groups.map(
          ([kind, names, text]) => html`
            <optgroup key=${kind} label=${t(`workspace.group.${kind}`)}>
              ${names.map((name) => {
                const option = `${kind}:${name}`;
                return html`<option key=${option} value=${option} selected=${option === value}>${text(name)}</option>`;
              })}
            </optgroup>
          `,
        )}
      </select>
    </label>
  `;
}

// The choices of the form as the route `start` takes them.
export function toRequest({ model, segment, documents, encoding, names, epochs }) {
  const [kind, name] = model.split(/:(.*)/s);
  return {
    train: kind !== "use",
    ...(kind === "new" ? { config: name } : { base: name }),
    segment: segment || null,
    documents,
    encoding,
    names,
    epochs: epochs === "" ? null : Number(epochs),
  };
}

// The choices of the form that make a request of `start`.
export function fromRequest(request) {
  if (!request) return DEFAULTS;
  const { train, config, base, segment, documents, encoding, names, epochs } = request;
  const model = base === null ? `new:${config}` : `${train ? "further" : "use"}:${base}`;
  return { model, segment: segment ?? "", documents, encoding, names, epochs: epochs ?? "" };
}

// Makes a corpus, sends its files part by part, and starts its job. If something is refused, nothing is left.
async function send(title, files, request, limits, setSending) {
  const { name: corpus } = await postWorkspace("", { title });
  try {
    for (const file of files) {
      await sendFile(corpus, file, Math.min(PART_BYTES, limits.request_bytes), (share) => setSending({ name: file.name, share }));
    }
    await postWorkspace(`/${encodeURIComponent(corpus)}/start`, request);
  } catch (error) {
    await act(corpus, "delete").catch(() => {}); // the first error says what is wrong
    throw error;
  }
  await refresh();
}

async function sendFile(corpus, file, size, report) {
  for (let offset = 0; offset === 0 || offset < file.size; offset += size) {
    report(file.size ? offset / file.size : 0);
    const query = new URLSearchParams({ name: file.name, offset, size: file.size });
    await uploadPart(`/${encodeURIComponent(corpus)}/text?${query}`, file.slice(offset, offset + size));
  }
  report(1);
}

// A title as the name of a file, without what the server refuses.
function fileName(title) {
  return title.replace(/[\\/:*?"<>|\p{C}]/gu, "-").replace(/^[.~\s-]+/, "").slice(0, 60).trim() || "text";
}

export function sizeText(bytes) {
  if (bytes < 1000) return `${number(bytes)} B`;
  return bytes < 1e6 ? `${number(bytes / 1e3)} KB` : `${number(bytes / 1e6, bytes < 1e7 ? 1 : 0)} MB`;
}
