// What is on screen in, the same as Python, curl and command line out, to copy; `note` says why a kind is missing.
//
// Models and indexes stand in the lines as they were named when the server was started. Over HTTP they have names.

import { needsKey } from "/explorer/api.js";
import { t } from "/explorer/i18n.js";
import { bracketed, whichOf } from "/explorer/text-spans.js";

// A JSON string is a Python string, too.
const py = (value) => JSON.stringify(value);

function sh(value) {
  const text = String(value);
  return /^[\p{L}\p{N}_./-]+$/u.test(text) && !text.startsWith("-") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// Behind -- everything is text, also what begins with a dash; options stand before it, then.
function command(verb, path, texts, options) {
  const dashed = texts.some((text) => String(text).startsWith("-"));
  const parts = dashed ? [...options, "--", ...texts.map(sh)] : [...texts.map(sh), ...options];
  return ["polyseme", verb, sh(path), ...parts].filter(Boolean).join(" ");
}

export function curl(path, body) {
  const key = needsKey() ? ' -H "Authorization: Bearer $POLYSEME_KEY"' : "";
  if (body === undefined) return `curl ${location.origin}${path}${key}`;
  const json = JSON.stringify(body);
  return `curl ${location.origin}${path}${key} -H 'Content-Type: application/json' -d ${sh(json)}`;
}

// weights: the mix where it is not the index's own, else null. asked: how many usages are ranked again by it.
export function usages({ text, words, place, index, same, k, weights, asked }) {
  const word = words[place];
  const body = { word, tokens: words, place, index: index.name, k, same_word: same };
  if (weights) return mixed({ ...body, k: asked, layers: true }, weights, k);
  const which = whichOf(words, place);
  const python = [py(word), py(text), k, same && "same_word=True", which && `which=${which}`];
  const options = [`--in=${sh(text)}`, same && "--word", which && `--which ${which}`, `-k ${k}`];
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

// The answer has the products of the layers; a mix of its own is made of them where the answer is read.
function mixed(body, weights, k) {
  const key = needsKey() ? ', "Authorization": "Bearer " + os.environ["POLYSEME_KEY"]' : "";
  const python = [
    `import json${key && ", os"}`,
    "from urllib.request import Request, urlopen",
    "",
    "import numpy as np",
    "",
    `mix = np.array([${list(weights)}])`,
    `body = ${py(JSON.stringify(body))}`,
    `headers = {"Content-Type": "application/json"${key}}`,
    `request = Request("${location.origin}/nearest", body.encode(), headers)`,
    "found = json.load(urlopen(request))",
    "",
    "",
    "def product(layers):",
    "    return mix @ np.array(layers) @ mix",
    "",
    "",
    "def cosine(usage):",
    '    return product(usage["cross"]) / np.sqrt(product(usage["own"]) * product(found["query"]["own"]))',
    "",
    "",
    'candidates = found["usages"] + found["others"]',
    "candidates.sort(key=lambda usage: -round(cosine(usage), 6))",
    `for usage in candidates[:${k}]:`,
    '    print(f"{cosine(usage):.3f}", usage["sentence"])',
  ];
  return { python: python.join("\n"), curl: curl("/nearest", body), note: t("code.noMix") };
}

export function types({ word, index, model, k, least }) {
  const path = (index ?? model).path;
  const common = least > 1;
  return {
    python: script(`print(polyseme.nearest(${py(path)}, ${py(word)}, ${k}${common ? `, min_count=${least}` : ""}))`),
    curl: curl("/nearest", { word, index: index?.name, k, min_count: common ? least : undefined }),
    cli: command("nearest", path, [word], [`-k ${k}`, common && `--min-count ${least}`]),
  };
}

export function substitutes({ text, token, words, place, model, k }) {
  const marked = bracketed(text, token);
  return {
    python: script(
      `model = polyseme.load(${py(model.path)})`,
      `found = polyseme.substitutes(model, ${py(marked)}, ${k})`,
      "print(found.joint.best)",
    ),
    curl: curl("/substitutes", { tokens: words, place, k }),
    cli: command("substitutes", model.path, [marked], [`-k ${k}`]),
  };
}

export function compare({ texts, layer, model }) {
  const chosen = layer === "mean" ? "" : `, layer=${typeof layer === "number" ? layer : py(layer)}`;
  return {
    python: [
      "from numpy.linalg import norm",
      "",
      "import polyseme",
      "",
      `one, other = polyseme.load(${py(model.path)}).embed([${list(texts.map(py))}]${chosen})`,
      "means = one.mean(axis=0), other.mean(axis=0)",
      "print((means[0] @ means[1] / norm(means[0]) / norm(means[1])).round(3))",
      "one = one / norm(one, axis=1, keepdims=True)",
      "other = other / norm(other, axis=1, keepdims=True)",
      "print((one @ other.T).round(2))",
    ].join("\n"),
    curl: curl("/similarity", { texts, layer }),
    cli: command("similarity", model.path, texts, [`--layer ${layer}`]),
    note: t("code.noMatrix"),
  };
}

export function senses({ word, index, most }) {
  return {
    python: script(
      `index = polyseme.open_index(${py(index.path)})`,
      `for sense in polyseme.senses(index, ${py(word)}, most=${most}).senses:`,
      '    print(f"{sense.share:.0%}", *sense.neighbours)',
    ),
    curl: curl("/senses", { word, index: index.name, most }),
    cli: command("senses", index.path, [word], [`--most ${most}`]),
  };
}

// one, other: indexes.
export function change({ one, other, words, k }) {
  const asked = words ? `, ${py(words)}` : "";
  return {
    python: script(
      `for change in polyseme.change(${py(one.path)}, ${py(other.path)}${asked})[:${k}]:`,
      '    print(change.word, f"{change.prototype:.3f}", change.changed)',
    ),
    curl: curl("/change", { one: one.name, other: other.name, words, k }),
    cli: command("change", one.path, [other.path, ...(words ?? [])], [`-k ${k}`]),
  };
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

export function newIndex({ path }) {
  return `polyseme index ${sh(path)} corpus.txt --out corpus-index\npolyseme serve ${sh(path)} corpus-index`;
}

function script(...lines) {
  return ["import polyseme", "", ...lines].join("\n");
}

function list(values) {
  return values.filter((value) => value !== false && value !== null).join(", ");
}
