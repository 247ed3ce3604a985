// Python, curl and command line that give what is on screen; `note` says why one is missing.
//
// Python and the command line use the paths that the server was started with, HTTP uses the names in /info.

import { addressOf, needsKey, toModel } from "/explorer/api.js";
import { t } from "/explorer/i18n.js";
import { bracketToken, occurrenceOf } from "/explorer/text-spans.js";

// A JSON string is also a Python string.
export const py = (value) => JSON.stringify(value);

export function sh(value) {
  const text = String(value);
  return /^[\p{L}\p{N}_./-]+$/u.test(text) && !text.startsWith("-") ? text : quote(text);
}

function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

// Texts that begin with a dash go after --, and the options before it.
export function command(verb, path, texts, options) {
  const hasDash = texts.some((text) => String(text).startsWith("-"));
  const parts = hasDash ? [...options, "--", ...texts.map(sh)] : [...texts.map(sh), ...options];
  return ["polyseme", verb, sh(path), ...parts].filter(Boolean).join(" ");
}

export function curl(...request) {
  const [path, body] = toModel(...request);
  const key = needsKey() ? ' -H "Authorization: Bearer $POLYSEME_KEY"' : "";
  if (body === undefined) return `curl ${addressOf(path)}${key}`;
  const json = JSON.stringify(body);
  return `curl ${addressOf(path)}${key} -H 'Content-Type: application/json' -d ${sh(json)}`;
}

// weights: the mix if it differs from the index, else null. candidates: how many usages it reranks.
export function nearestUsages({ text, words, position, index, sameWord, k, weights, candidates }) {
  const word = words[position];
  const body = { word, tokens: words, position, index: index.name, k, same_word: sameWord };
  if (weights) return reranked({ ...body, k: candidates, layers: true }, weights, k);
  const which = occurrenceOf(words, position);
  const python = [py(word), py(text), k, sameWord && "same_word=True", which && `which=${which}`];
  const options = [`--context=${sh(text)}`, sameWord && "--same-word", which && `--which ${which}`, `-k ${k}`];
  return {
    python: script(
      `index = polyseme.open_index(${py(index.path)})`,
      `for usage in index.usages(${list(python)}):`,
      '    print(f"{usage.cosine:.3f}", usage.marked())',
    ),
    curl: curl("/nearest", body),
    cli: command("nearest", index.path, [word], options),
  };
}

// The response holds dot products of the layers, from which Python computes the cosines of the mix.
function reranked(body, weights, k) {
  const key = needsKey() ? ', "Authorization": "Bearer " + os.environ["POLYSEME_KEY"]' : "";
  const python = [
    `import json${key && ", os"}`,
    "from urllib.request import Request, urlopen",
    "",
    "import numpy as np",
    "",
    `mix = np.array([${list(weights)}])`,
    `body = ${py(JSON.stringify(toModel("/nearest", body)[1]))}`,
    `headers = {"Content-Type": "application/json"${key}}`,
    `request = Request("${addressOf("/nearest")}", body.encode(), headers)`,
    "response = json.load(urlopen(request))",
    "",
    "",
    "def product(layers):",
    "    return mix @ np.array(layers) @ mix",
    "",
    "",
    "def cosine(usage):",
    '    return product(usage["cross"]) / np.sqrt(product(usage["own"]) * product(response["query"]["own"]))',
    "",
    "",
    'candidates = response["usages"] + response["others"]',
    "candidates.sort(key=lambda usage: -round(cosine(usage), 6))",
    `for usage in candidates[:${k}]:`,
    '    print(f"{cosine(usage):.3f}", usage["sentence"])',
  ];
  return { python: python.join("\n"), curl: curl("/nearest", body), note: t("code.noMix") };
}

export function nearestWords({ word, index, model, k, minCount }) {
  const path = (index ?? model).path;
  const hasMinimum = minCount > 1;
  return {
    python: script(`print(polyseme.nearest(${py(path)}, ${py(word)}, ${k}${hasMinimum ? `, min_count=${minCount}` : ""}))`),
    curl: curl("/nearest", { word, index: index?.name, k, min_count: hasMinimum ? minCount : undefined }),
    cli: command("nearest", path, [word], [`-k ${k}`, hasMinimum && `--min-count ${minCount}`]),
  };
}

export function substitutes({ text, token, words, position, model, k }) {
  const marked = bracketToken(text, token);
  return {
    python: script(
      `model = polyseme.load(${py(model.path)})`,
      `substitutes = polyseme.substitutes(model, ${py(marked)}, ${k})`,
      "print(substitutes.joint.best)",
    ),
    curl: curl("/substitutes", { tokens: words, position, k }),
    cli: command("substitutes", model.path, [marked], [`-k ${k}`]),
  };
}

export function compare({ texts, layer, model, index }) {
  if (index) return compareInIndex({ texts, index });
  const value = typeof layer === "number" ? layer : py(layer);
  return {
    python: script(
      `result = polyseme.similarity(${list([model.path, ...texts].map(py))}, layer=${value})`,
      "print(round(result.cosine, 3))",
      "print(result.compare_tokens().round(2))",
    ),
    curl: curl("/similarity", { texts, layer }),
    cli: command("similarity", model.path, texts, [`--layer ${layer}`]),
    note: t("code.noMatrix"),
  };
}

// In the layer and the corrected space of an index.
function compareInIndex({ texts, index }) {
  return {
    python: script(
      `result = polyseme.similarity(${list([index.path, ...texts].map(py))})`,
      "print(round(result.cosine, 3))",
      "print(result.compare_tokens().round(2))",
      "print(result.usual)",
    ),
    curl: curl("/similarity", { texts, index: index.name }),
    cli: command("similarity", index.path, texts, []),
    note: t("code.noMatrix"),
  };
}

export function senses({ word, index, max, groups }) {
  return {
    python: script(
      `index = polyseme.open_index(${py(index.path)})`,
      `for sense in polyseme.senses(index, ${py(word)}, max_senses=${max}${groups ? ", groups=True" : ""}).senses:`,
      '    print(f"{sense.share:.0%}", *sense.neighbours)',
    ),
    curl: curl("/senses", { word, index: index.name, max_senses: max, groups: groups || undefined }),
    cli: command("senses", index.path, [word], [`--max-senses ${max}`, ...(groups ? ["--groups"] : [])]),
  };
}

// from, to: indexes.
export function change({ from, to, words, k }) {
  const wordList = words ? `, ${py(words)}` : "";
  return {
    python: script(
      `for change in polyseme.change(${py(from.path)}, ${py(to.path)}${wordList}, k=${k}):`,
      '    print(change.word, f"{change.prototype:.3f}", change.changed)',
    ),
    curl: curl("/change", { first: from.name, second: to.name, words: words ?? undefined, k }),
    cli: command("change", from.path, [to.path, ...(words ?? [])], [`-k ${k}`]),
  };
}

export function changeOfParts({ index, words, documents, against, k }) {
  const path = py(index.path);
  const wordList = words ? `${py(words)}, ` : "";
  return {
    python: script(
      `for change in polyseme.change(${path}, ${path}, ${wordList}k=${k}, documents=${py(documents)}, against=${py(against)}):`,
      '    print(change.word, f"{change.prototype:.3f}", change.changed)',
    ),
    curl: curl("/change", { first: index.name, second: index.name, words: words ?? undefined, k, documents, against }),
    cli: command("change", index.path, [index.path, ...(words ?? [])], [
      `-k ${k}`,
      `--documents=${sh(documents)}`,
      `--against=${sh(against)}`,
    ]),
  };
}

export function timeline({ word, index, by, groups }) {
  return {
    python: script(
      `for period in polyseme.timeline(${py(index.path)}, ${py(word)}, by=${py(by)}${groups ? ", groups=True" : ""}).periods:`,
      "    print(period.name, period.count, period.interval, period.shares)",
    ),
    curl: curl("/timeline", { word, index: index.name, by, groups: groups || undefined }),
    cli: command("timeline", index.path, [word], [`--by ${sh(by)}`, groups && "--groups"]),
  };
}

export function characters({ index, name }) {
  const lines = name
    ? [`person = polyseme.characters(${py(index.path)}).find(${py(name)})`, "print(person.count, person.companions, person.nearest)"]
    : [`print(polyseme.characters(${py(index.path)}))`];
  return {
    python: script(...lines),
    curl: curl("/characters", { index: index.name }),
    cli: command("characters", index.path, [], []),
  };
}

// question: a text, or a list of texts.
export function predict({ task, question }) {
  const several = Array.isArray(question);
  const file = several ? `${question.join("\t")}` : question;
  return {
    python: script(
      `model = polyseme.load_task(${py(task.path)})`,
      `print(model.predict(${several ? `(${list(question.map(py))})` : py(question)}))`,
    ),
    curl: curl("/predict", { task: task.name, texts: [question] }),
    cli: `printf '%s\\n' ${quote(file)} | polyseme predict ${sh(task.path)} - --plain-text`,
  };
}

export function newTask({ path }) {
  return `polyseme train tagging ${sh(path)} --train train.conll --dev dev.conll --out my-tagger\npolyseme serve ${sh(path)} my-tagger`;
}

export function model({ model: { path } }) {
  return {
    python: script(
      `print(polyseme.info(${py(path)}))`,
      `model = polyseme.load(${py(path)})`,
      'vectors = model.embed(["…"])',
    ),
    curl: curl("/info"),
    cli: `polyseme info ${sh(path)}`,
  };
}

export function contextIndex({ model, index }) {
  const out = `${index.name}-contexts`;
  return `polyseme index ${sh(model.path)} corpus.txt --out ${sh(out)} --view context\npolyseme serve ${sh(model.path)} ${sh(index.path)} ${sh(out)}`;
}

export function newIndex({ path }) {
  return `polyseme index ${sh(path)} corpus.txt --out corpus-index\npolyseme serve ${sh(path)} corpus-index`;
}

export function script(...lines) {
  return ["import polyseme", "", ...lines].join("\n");
}

export function list(values) {
  return values.filter((value) => value !== false && value !== null).join(", ");
}
