/**
 * Starts the web UI: sends the requests of the first view, then loads the program that draws it.
 *
 * Decision: this file and what it imports are small, so that the requests do not wait for React. The document names the
 * rest as a module to preload (vite.config.ts), so it comes at the same time.
 */
import { requestFirst } from "./api/first";
import { applyTheme, savedTheme } from "./logic/theme";
import "./style/index.css";

applyTheme(savedTheme());
// After an upgrade, chunks of the previous build do not exist any more: load the current build.
addEventListener("vite:preloadError", () => location.reload());
void requestFirst(location.hash);
void import("./start");
