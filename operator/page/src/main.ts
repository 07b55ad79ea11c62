/**
 * Sends the requests of the first view, before the program that draws it (start.tsx) is there.
 *
 * Decision: this file and what it imports are small, so that the requests do not wait for React. The program is the second
 * script of the document (vite.config.ts): it loads at the same time, and starts as soon as this one has run.
 */
import { requestFirst } from "./api/first";
import { applyTheme, savedTheme } from "./logic/theme";
import "./style/index.css";

applyTheme(savedTheme());
// After an upgrade, chunks of the previous build do not exist any more: load the current build.
addEventListener("vite:preloadError", () => location.reload());
void requestFirst(location.hash);
