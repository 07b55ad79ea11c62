/** Measures the box of a chart, and follows its size. */
import { useLayoutEffect, useRef, useState } from "react";

/** Pixels around the drawing, for the labels of the axes; and between a bar and the mark above it. */
export const EDGE = { left: 48, right: 20, top: 14, bottom: 24, mark: 4 } as const;
/** Pixels of the label of a day with its distance to the next. */
export const LABEL = 64;

export function useSize() {
  const box = useRef<SVGSVGElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      const { width, height } = element.getBoundingClientRect();
      setSize({ width: Math.max(0, width - EDGE.left - EDGE.right), height: Math.max(0, height - EDGE.top - EDGE.bottom) });
    };
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return { box, ...size };
}
