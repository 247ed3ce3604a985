// Widths in pixels: of an element, so that charts stay readable on narrow screens, and of a text.

import { useEffect, useRef, useState } from "preact/hooks";

const DEFAULT_WIDTH = 560;

export function useElementWidth() {
  const element = useRef(null);
  const [width, setWidth] = useState(DEFAULT_WIDTH);
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.max(240, Math.round(entry.contentRect.width)) || DEFAULT_WIDTH),
    );
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

// An estimate: a Chinese character is as wide as it is high, other characters about half as wide.
export function textWidth(text, fontSize) {
  return Array.from(text).reduce((sum, char) => sum + (char > "\u2e80" ? fontSize : fontSize * 0.58), 0);
}
