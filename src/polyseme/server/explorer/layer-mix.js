// Ranks usages by any mix of layers, in the browser: the server sends Gram matrices of the layers instead of vectors.
//
// L layers. own[i][j] = h_i · h_j within a usage, cross[i][j] = q_i · c_j from the query to a usage. A mix with
// weights w is the vector sum_l w_l h_l, so its dot products are quadratic forms of w in these matrices.

function quadraticForm(weights, gram) {
  let sum = 0;
  for (let i = 0; i < weights.length; i++) {
    for (let j = 0; j < weights.length; j++) sum += weights[i] * weights[j] * gram[i][j];
  }
  return sum;
}

export function cosine(weights, query, usage) {
  const lengths = quadraticForm(weights, query.own) * quadraticForm(weights, usage.own);
  // The zero vector has no direction.
  return lengths > 0 ? quadraticForm(weights, usage.cross) / Math.sqrt(lengths) : 0;
}

export function oneLayer(layer, layers) {
  return Array.from({ length: layers }, (_, i) => (i === layer ? 1 : 0));
}

// The weights of an index, whose layer is "top", "mean" or a number.
export function weightsOf(layer, layers) {
  if (layer === "mean") return Array(layers).fill(1);
  const number = layer === "top" || layer === undefined ? layers - 1 : Number(layer);
  return oneLayer(Number.isInteger(number) && number < layers ? number : layers - 1, layers);
}

// The weights of a permalink, "0,0.5,1"; null if they are missing, invalid or equal to those of the index.
export function parseMix(text, indexWeights) {
  const weights = (text ?? "").split(",").map(Number);
  const valid = weights.length === indexWeights.length && weights.every((weight) => weight >= 0 && weight <= 1);
  return text && valid && String(weights) !== String(indexWeights) ? weights : null;
}

export function isContextView(index) {
  return index.view === "context";
}

// The usages that a mix ranks: the nearest in the layer of the index, then the nearest in layer 0.
export function candidatesOf(response) {
  return [...response.usages, ...(response.others ?? [])];
}

// Whether the candidates contain the best usages of this layer alone. The server searches the layer of the index
// and layer 0; for an index of contexts it does not search layer 0.
export function isExact(layer, indexWeights, index) {
  return (layer === 0 && !isContextView(index)) || String(indexWeights) === String(oneLayer(layer, indexWeights.length));
}

// Candidates sorted by cosine in the mix. Each gets `cosine`, `layers` (its cosine in each layer alone) and
// `indexRank` (its rank in the server's list from 0, or null). If weights are null or all zero, the server's list and
// cosines are kept. Cosines are compared to six digits; ties keep the server's order.
export function rank(response, weights, limit) {
  const count = response.query.own.length;
  const layers = Array.from({ length: count }, (_, layer) => oneLayer(layer, count));
  const mixed = weights?.some((weight) => weight > 0);
  const ranked = (mixed ? candidatesOf(response) : response.usages).map((usage, id) => ({
    ...usage,
    id,
    indexRank: id < response.usages.length ? id : null,
    cosine: mixed ? cosine(weights, response.query, usage) : usage.cosine,
    layers: layers.map((layer) => cosine(layer, response.query, usage)),
  }));
  if (mixed) ranked.sort((a, b) => millionths(b) - millionths(a) || a.id - b.id);
  return ranked.slice(0, limit);
}

function millionths(usage) {
  return Math.round(usage.cosine * 1e6);
}

// The best candidates of one layer alone: how many are the same word, and their mean cosine.
export function summarizeLayer(response, layer, layers, word, limit) {
  const best = rank(response, oneLayer(layer, layers), limit);
  return {
    same: best.filter((usage) => usage.word === word).length,
    total: best.length,
    cosine: best.reduce((sum, usage) => sum + usage.cosine, 0) / Math.max(best.length, 1),
  };
}
