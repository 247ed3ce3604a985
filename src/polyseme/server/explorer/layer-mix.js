// Gram matrices of the layers of usages in, cosines of any mix of layers out: new ranks without the server.
//
// L layers. own[i][j] = h_i · h_j within a usage, cross[i][j] = q_i · c_j from the query to a usage. A mix with
// weights w is the vector sum_l w_l h_l, so its products are quadratic forms of w in these matrices.

function form(weights, gram) {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) {
    for (let j = 0; j < weights.length; j++) sum += weights[i] * weights[j] * gram[i][j];
  }
  return sum;
}

export function cosine(weights, query, usage) {
  const lengths = form(weights, query.own) * form(weights, usage.own);
  // All weights at zero leave no vector, and a vector of no length has no direction.
  return lengths > 0 ? form(weights, usage.cross) / Math.sqrt(lengths) : 0;
}

export function oneLayer(layer, layers) {
  return Array.from({ length: layers }, (_, at) => (at === layer ? 1 : 0));
}

// The weights that an index was made with: its layer is "top", "mean" or a number.
export function weightsOf(layer, layers) {
  if (layer === "mean") return Array(layers).fill(1);
  const number = layer === "top" || layer === undefined ? layers - 1 : Number(layer);
  return oneLayer(Number.isInteger(number) && number < layers ? number : layers - 1, layers);
}

// The weights that a permalink holds, 0,0.5,1, or null where it holds none that fit, or those of the index.
export function parseMix(text, usual) {
  const weights = (text ?? "").split(",").map(Number);
  const fits = weights.length === usual.length && weights.every((weight) => weight >= 0 && weight <= 1);
  return text && fits && String(weights) !== String(usual) ? weights : null;
}

// What a mix is ranked among: the nearest in the layer of the index, and behind them the nearest in layer 0.
export function candidatesOf(answer) {
  return [...answer.usages, ...(answer.others ?? [])];
}

// Whether no usage of the corpus can be missing from the best of this layer alone: the server looked for them there.
// In the token layer of an index of places it does not.
export function isWhole(layer, usual, view) {
  return (layer === 0 && view !== "context") || String(usual) === String(oneLayer(layer, usual.length));
}

// Candidates by falling cosine in the mix, each with `cosine`, the cosine in every layer alone, and `before`: where
// it stood in the index's own list, or null. Without a mix of its own (`weights` null, or nothing but zeros) the list
// is the server's, in order and in cosines. Cosines that differ by less than a millionth count as the same.
export function rank(answer, weights, most) {
  const count = answer.query.own.length;
  const layers = Array.from({ length: count }, (_, layer) => oneLayer(layer, count));
  const mixed = weights?.some((weight) => weight > 0);
  const ranked = (mixed ? candidatesOf(answer) : answer.usages).map((usage, at) => ({
    ...usage,
    at,
    before: at < answer.usages.length ? at : null,
    cosine: mixed ? cosine(weights, answer.query, usage) : usage.cosine,
    layers: layers.map((layer) => cosine(layer, answer.query, usage)),
  }));
  if (mixed) ranked.sort((one, other) => millionths(other) - millionths(one) || one.at - other.at);
  return ranked.slice(0, most);
}

function millionths(usage) {
  return Math.round(usage.cosine * 1e6);
}

// What a layer alone finds among the candidates: how many of its best are the same word, and their mean cosine.
export function layerAlone(answer, layer, layers, word, most) {
  const best = rank(answer, oneLayer(layer, layers), most);
  return {
    same: best.filter((usage) => usage.word === word).length,
    of: best.length,
    cosine: best.reduce((sum, usage) => sum + usage.cosine, 0) / Math.max(best.length, 1),
  };
}
