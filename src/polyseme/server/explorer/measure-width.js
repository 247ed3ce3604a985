// An element in, its width on the screen out, so that the letters of a chart stay readable where it is narrow;
// a word in, its width in pixels out.

import { useEffect, useRef, useState } from "preact/hooks";

const USUAL = 560;

export function useWidth() {
  const element = useRef(null);
  const [width, setWidth] = useState(USUAL);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) =>
      setWidth(Math.max(240, Math.round(entry.contentRect.width)) || USUAL),
    );
    watch.observe(element.current);
    return () => watch.disconnect();
  }, []);
  return [element, width];
}

// Near enough without drawing it: a Chinese character is as wide as it is high, other letters about half of it.
export function widthOf(word, size) {
  return Array.from(word).reduce((sum, letter) => sum + (letter > "\u2e80" ? size : size * 0.58), 0);
}
