/** Tells the styles how high a sticky head is, so that what sticks below it neither hides under it nor leaves a gap. */
import { useCallback } from "react";

const PROPERTY = "--height-run-head";

/** Returns the ref of a head; the property is set on its parent. */
export function useHeadHeight(): (head: HTMLElement | null) => (() => void) | undefined {
  return useCallback((head: HTMLElement | null) => {
    const view = head?.parentElement;
    if (!head || !view) return undefined;
    // Observers are called at once and after layout, so that reading the height forces none.
    const watch = new ResizeObserver(() => view.style.setProperty(PROPERTY, `${head.offsetHeight}px`));
    watch.observe(head);
    return () => watch.disconnect();
  }, []);
}
